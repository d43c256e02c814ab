// Down-sampling loses nothing: hours and days have the sums of the minutes, in whatever order they were added.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "server/savings/job_history.h"

namespace perseus::savings {
namespace {

using store::HistoryRow;

/// Random minutes within three days, of up to three servers. Values are whole, so that sums are exact.
std::vector<HistoryRow> random_minutes() {
  std::map<std::pair<std::int64_t, std::string>, HistoryRow> minutes;
  const int count = *rc::gen::inRange(0, 200);
  for (int i = 0; i < count; ++i) {
    const std::int64_t start_s = 60 * *rc::gen::inRange<std::int64_t>(0, 3 * 1440);
    const std::string source(1, static_cast<char>('a' + *rc::gen::inRange(0, 3)));
    const std::int64_t n = *rc::gen::inRange<std::int64_t>(1, 50), slow = *rc::gen::inRange(1, 9);
    const std::int64_t version = *rc::gen::inRange<std::int64_t>(0, 4);
    const std::int64_t planned = version > 0 ? n : 0;
    const auto sum = [&](std::int64_t of, std::int64_t each) { return static_cast<double>(of * each); };
    minutes[{start_s, source}] = {"j",
                                  60,
                                  start_s,
                                  source,
                                  {n, sum(n, slow), sum(1, slow), sum(2, slow), n / 2, sum(n / 2, 100), planned,
                                   sum(planned, 2), sum(planned, 90), n / 3, version, version}};
  }
  std::vector<HistoryRow> rows;
  for (const auto& [key, row] : minutes) rows.push_back(row);
  return rows;
}

store::HistoryFigures sum_of(const std::vector<HistoryRow>& rows) {
  store::HistoryFigures sum;
  for (const HistoryRow& row : rows) sum.add(row.figures);
  return sum;
}

RC_GTEST_PROP(JobHistory, HoursHaveTheSumsOfTheirMinutes, ()) {
  const std::vector<HistoryRow> minutes = random_minutes();
  // The older minutes become hours in several turns, the others stay.
  std::vector<HistoryRow> left = minutes, rows;
  for (int turn = *rc::gen::inRange(0, 4); turn > 0; --turn) {
    const std::int64_t before_s = store::kHour_s * *rc::gen::inRange<std::int64_t>(0, 72);
    std::vector<HistoryRow> old;
    std::erase_if(left, [&](const HistoryRow& row) {
      if (row.start_s < before_s) old.push_back(row);
      return row.start_s < before_s;
    });
    for (const HistoryRow& hour : store::hours_of<&HistoryRow::job>(old)) rows.push_back(hour);
  }
  rows.insert(rows.end(), left.begin(), left.end());
  for (const std::int64_t step_s : {store::kHour_s, kDay_s}) {
    const HistoryQuery query{"j", step_s, 0, 4 * kDay_s, 1000};
    RC_ASSERT(history_view(query, rows).buckets == history_view(query, minutes).buckets);
    std::vector<HistoryRow> shown;
    for (const HistoryBucket& bucket : history_view(query, rows).buckets) {
      RC_ASSERT(bucket.figures.iterations > 0);
      shown.push_back({"j", step_s, bucket.start_s, "", bucket.figures});
    }
    RC_ASSERT(sum_of(shown) == sum_of(minutes));
  }
}

TEST(JobHistoryView, ContinuesBeyondItsLimit) {
  std::vector<HistoryRow> rows;
  for (int i = 0; i < 5; ++i) rows.push_back({"j", 60, 120 * i, "a", {1, 1, 1, 1}});
  HistoryQuery query{"j", 60, 100, 480, 2};
  const HistoryView first = history_view(query, rows);
  ASSERT_EQ(first.buckets.size(), 2U);
  EXPECT_EQ(first.buckets[0].start_s, 120) << "the minutes between them have no reports";
  EXPECT_EQ(first.next_s, 360);
  query.from_s = *first.next_s;
  const HistoryView second = history_view(query, rows);
  EXPECT_EQ(second.buckets.size(), 1U) << "480 is the end";
  EXPECT_EQ(second.next_s, std::nullopt);
}

}  // namespace
}  // namespace perseus::savings
