#include "server/store/group_commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <optional>
#include <vector>

#include "tests/support/store_executor.h"

namespace perseus::store {
namespace {

TEST(GroupCommit, AnswersInTheOrderOfTheCallsWhereAGroupTakesSeveralTurns) {
  constexpr int kFirst = 100, kSecond = 50;
  testing::StoreExecutor executor;
  std::vector<int> answered;
  std::vector<std::size_t> groups;
  {
    std::promise<void> alone, first_added, first_taken, second_added;
    GroupCommit group(executor.post(), [&](GroupCommit::Writes writes) -> std::optional<Error> {
      groups.push_back(writes.size());
      if (groups.size() == 2) first_taken.set_value();
      if (groups.size() == 2) second_added.get_future().wait();
      for (const auto& write : writes) write->run();
      return std::nullopt;
    });
    const auto hold = [&] {
      alone.set_value();
      first_added.get_future().wait();
    };
    group.add_work([](const Result<Ok>&) {}, hold);
    alone.get_future().wait();
    const auto add = [&](int i) { group.add_work([&, i](const Result<Ok>&) { answered.push_back(i); }, [] {}); };
    for (int i = 0; i < kFirst; ++i) add(i);
    first_added.set_value();
    first_taken.get_future().wait();
    for (int i = kFirst; i < kFirst + kSecond; ++i) add(i);
    second_added.set_value();
  }  // the second group is committed before the first group's answers are delivered
  ASSERT_THAT(groups, ::testing::ElementsAre(1, kFirst, kSecond));
  while (answered.size() < kFirst + kSecond) executor.run_one();
  EXPECT_TRUE(std::ranges::is_sorted(answered));
}

}  // namespace
}  // namespace perseus::store
