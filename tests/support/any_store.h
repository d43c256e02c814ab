// Tests of what every store promises. A test file that includes this header calls INSTANTIATE_TEST_SUITE_P for its
// kinds of stores.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "server/store/store.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/store_executor.h"

namespace perseus::testing {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Kind {
  const char* name;
  Result<std::unique_ptr<store::Store>> (*open)(const std::string& folder, store::Post post);
};
inline void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

inline store::Append to(const std::string& job, std::int64_t expected, std::vector<std::string> bodies) {
  store::Append append;
  append.job = job;
  append.expected_sequence = expected;
  append.bodies = std::move(bodies);
  append.index = {job, "registered", "name of " + job, 1.5, 2.5, std::nullopt, 0, ""};
  return append;
}

/// A minute with that many iterations of 2 s, 7 J each, all under plan 3.
inline store::HistoryRow minute(const std::string& job, std::int64_t start_s, const std::string& source,
                                std::int64_t iterations) {
  const auto n = static_cast<double>(iterations);
  return {job, 60, start_s, source, {iterations, 2 * n, 2, 2, iterations, 7 * n, iterations, n, 6 * n, 1, 3, 3}};
}

class AnyStore : public ::testing::TestWithParam<Kind> {
 protected:
  AnyStore() : store_(open()) {}

  std::unique_ptr<store::Store> open() {
    auto store = GetParam().open(folder_.path(), executor_.post());
    PERSEUS_CHECK(store.ok(), store.ok() ? "" : store.error().message.c_str());
    return std::move(*store);
  }
  Result<store::Appended> append(store::Append append) {
    return executor_.outcome<store::Appended>([&](auto done) { store_->append(std::move(append), done); });
  }
  void put_blob(const std::string& key, const std::string& bytes, std::vector<std::string> holds = {}) {
    const store::Blob blob{key, bytes, std::move(holds)};
    ASSERT_TRUE(executor_.outcome<Ok>([&](auto done) { store_->put_blob(blob, done); }).ok());
  }
  void remove_job(const std::string& job) {
    ASSERT_TRUE(executor_.outcome<Ok>([&](auto done) { store_->remove_job(job, done); }).ok());
  }
  /// Runs all pending work.
  void sweep(double now_s, double grace_s) {
    const store::Sweep asked{{"input/", "known/"}, now_s, grace_s};
    repeat([&](auto done) { store_->sweep(asked, done); });
  }
  void write_history(std::vector<store::HistoryRow> rows) {
    ASSERT_TRUE(executor_.outcome<Ok>([&](auto done) { store_->write_history(std::move(rows), done); }).ok());
  }
  void write_site_history(std::vector<store::SiteRow> rows) {
    ASSERT_TRUE(executor_.outcome<Ok>([&](auto done) { store_->write_site_history(std::move(rows), done); }).ok());
  }
  /// Runs all pending work.
  void age_history(std::int64_t minutes_before_s, std::int64_t hours_before_s = 0) {
    const store::AgeHistory age{minutes_before_s, hours_before_s};
    while (*executor_.outcome<bool>([&](auto done) { store_->age_history(age, done); })) {}
  }
  void pack(const std::string& job) {
    repeat([&](auto done) { store_->pack_job(job, done); });
  }
  /// Repeats a call until it reports that nothing is left.
  template <class Call>
  void repeat(Call call) {
    int calls = 0;
    while (*executor_.outcome<bool>(call)) ASSERT_LT(++calls, 100'000);
  }

  ScratchFolder folder_;
  StoreExecutor executor_;
  std::unique_ptr<store::Store> store_;
};

TEST_P(AnyStore, KeepsAJobsEventsInOrder) {
  EXPECT_EQ(*append(to("a", 0, {"{1}", "{2}"})), store::Appended::committed);
  EXPECT_EQ(*append(to("b", 0, {"{b}"})), store::Appended::committed);
  EXPECT_EQ(*append(to("a", 2, {"{3}"})), store::Appended::committed);
  EXPECT_THAT(*store_->read("a", 0),
              ElementsAre(store::StoredEvent{1, "{1}"}, store::StoredEvent{2, "{2}"}, store::StoredEvent{3, "{3}"}));
  EXPECT_THAT(*store_->read("a", 2), ElementsAre(store::StoredEvent{3, "{3}"}));
  EXPECT_THAT(*store_->read("a", 7), IsEmpty());
  EXPECT_THAT(*store_->read("absent", 0), IsEmpty());
}

TEST_P(AnyStore, RefusesAnAppendThatDidNotKnowTheLastEvent) {
  EXPECT_EQ(*append(to("a", 0, {"{1}"})), store::Appended::committed);
  EXPECT_EQ(*append(to("a", 0, {"{other}"})), store::Appended::conflict);
  EXPECT_EQ(*append(to("a", 2, {"{other}"})), store::Appended::conflict);
  EXPECT_EQ(*append(to("new", 1, {"{other}"})), store::Appended::conflict);
  EXPECT_THAT(*store_->read("a", 0), ElementsAre(store::StoredEvent{1, "{1}"}));
  EXPECT_THAT(*store_->read("new", 0), IsEmpty());
}

TEST_P(AnyStore, KeepsTheIndexAndTheBlobsOfAnAppend) {
  store::Append with_all = to("a", 0, {"{1}"});
  with_all.index.next_wake_s = 77.25;
  with_all.index.summary = R"({"ranks":8})";
  with_all.blobs = {{"frontier/1", std::string("\0\xff binary", 9)}};
  EXPECT_EQ(*append(with_all), store::Appended::committed);
  store::Append refused = to("a", 0, {"{2}"});
  refused.blobs = {{"frontier/2", "x"}};
  EXPECT_EQ(*append(refused), store::Appended::conflict);

  EXPECT_THAT(*store_->jobs(),
              ElementsAre(store::JobIndexRow{"a", "registered", "name of a", 1.5, 2.5, 77.25, 1, R"({"ranks":8})", 3}));
  EXPECT_EQ(*store_->blob("frontier/1"), std::string("\0\xff binary", 9));
  EXPECT_EQ(*store_->blob("frontier/2"), std::nullopt);
}

TEST_P(AnyStore, RemovesAJobAndLeavesTheOthers) {
  (void)append(to("a", 0, {"{1}"}));
  (void)append(to("b", 0, {"{1}"}));
  EXPECT_TRUE(executor_.outcome<Ok>([&](auto done) { store_->remove_job("a", done); }).ok());
  EXPECT_THAT(*store_->read("a", 0), IsEmpty());
  ASSERT_EQ(store_->jobs()->size(), 1U);
  EXPECT_EQ(store_->jobs()->front().job, "b");
  EXPECT_EQ(*append(to("a", 1, {"{2}"})), store::Appended::conflict);
}

TEST_P(AnyStore, PacksALogAndReadsTheSame) {
  std::vector<std::string> bodies;
  for (int i = 0; i < 3000; ++i) {
    bodies.push_back("{\"kind\":\"rank_registered\",\"rank\":" + std::to_string(i) + std::string(300, 'x') + "}");
  }
  bodies[7] = std::string("\xc3\xa4\n 5 ");
  bodies[8] = "";
  (void)append(to("a", 0, bodies));
  (void)append(to("b", 0, {"{b}"}));
  const auto before = *store_->read("a", 0);
  ASSERT_EQ(before.size(), bodies.size());
  const std::int64_t bytes = store_->jobs()->front().bytes;
  pack("a");
  EXPECT_EQ(store_->jobs()->front().packed, 3000);
  if (std::string(GetParam().name) != "memory") { EXPECT_LT(store_->jobs()->front().bytes, bytes / 10); }
  EXPECT_EQ(*store_->read("a", 0), before);
  EXPECT_EQ(*append(to("a", 3000, {"{late}"})), store::Appended::committed);
  EXPECT_EQ(store_->jobs()->front().last_sequence, 3001);
  for (const std::int64_t after : {1, 1500, 2999, 3000}) {
    const auto tail = *store_->read("a", after);
    ASSERT_EQ(tail.size(), static_cast<std::size_t>(3001 - after));
    EXPECT_EQ(tail.front().sequence, after + 1);
    EXPECT_EQ(tail.back().body, "{late}");
    if (after < 2999) { EXPECT_EQ(tail.front().body, bodies[static_cast<std::size_t>(after)]); }
  }
  EXPECT_THAT(*store_->read("b", 0), ElementsAre(store::StoredEvent{1, "{b}"}));
  pack("a");
  EXPECT_EQ(store_->read("a", 0)->size(), 3001U);
  pack("absent");
  remove_job("a");
  EXPECT_THAT(*store_->read("a", 0), IsEmpty());
  EXPECT_EQ(*append(to("a", 0, {"{new}"})), store::Appended::committed);
  EXPECT_THAT(*store_->read("a", 0), ElementsAre(store::StoredEvent{1, "{new}"}));
}

TEST_P(AnyStore, SweepsBlobsThatNothingHolds) {
  store::Append job = to("a", 0, {"{1}"});
  job.blobs = {{"input/of a", "1"}};
  job.holds = {"input/of a", "input/not yet there"};
  (void)append(job);
  put_blob("known/x", "1", {"input/of x"});
  for (const char* key : {"input/of x", "input/of absent", "profile/of absent"}) put_blob(key, "1");
  store::Append user = to("b", 0, {"{1}"});
  user.holds = {"known/x"};
  (void)append(user);
  const auto keys = [this] { return *store_->blob_keys(""); };

  sweep(1000, 100);
  sweep(1099, 100);
  EXPECT_EQ(keys().size(), 5U) << "not before its grace is over";
  put_blob("input/of absent", "2");  // a job may be about to use it
  sweep(1100, 100);
  EXPECT_EQ(keys().size(), 5U);
  sweep(1200, 100);
  EXPECT_THAT(keys(), ElementsAre("input/of a", "input/of x", "known/x", "profile/of absent"));
  put_blob("input/not yet there", "1");
  remove_job("b");
  sweep(2000, 100);
  sweep(2100, 100);
  EXPECT_THAT(keys(), ElementsAre("input/not yet there", "input/of a", "input/of x", "profile/of absent"));
  remove_job("a");
  sweep(3000, 100);
  store::Append late = to("c", 0, {"{1}"});
  late.holds = {"input/of a"};
  (void)append(late);
  sweep(3100, 100);
  EXPECT_THAT(keys(), ElementsAre("input/of a", "profile/of absent"));
}

TEST_P(AnyStore, FindsBlobsByPrefix) {
  for (const char* key : {"profile/b", "profile/a", "profile", "profile_other", "q"}) put_blob(key, key);
  EXPECT_THAT(*store_->blob_keys("profile/"), ElementsAre("profile/a", "profile/b"));
  put_blob("q", "second");
  EXPECT_EQ(*store_->blob("q"), "second");
  EXPECT_TRUE(executor_.outcome<Ok>([&](auto done) { store_->remove_blob("q", done); }).ok());
  EXPECT_EQ(*store_->blob("q"), std::nullopt);
}

TEST_P(AnyStore, KeepsTheMinutesOfEachServer) {
  (void)append(to("a", 0, {"{1}"}));
  (void)append(to("b", 0, {"{1}"}));
  const store::HistoryRow first = minute("a", 7200, "one", 5), other = minute("a", 7200, "two", 1);
  store::HistoryRow later = minute("a", 7260, "one", 1);
  later.figures.time_s = 0.1 + 0.2;  // read as it was written
  write_history({first, other, later, minute("b", 7200, "one", 9), minute("absent", 7200, "one", 9)});
  EXPECT_THAT(*store_->history("a", 0, 10'000), ElementsAre(first, other, later));
  EXPECT_THAT(*store_->history("a", 7201, 7261), ElementsAre(later));
  EXPECT_THAT(*store_->history("a", 0, 7200), IsEmpty());
  EXPECT_THAT(*store_->history("absent", 0, 10'000), IsEmpty());
  const store::HistoryRow again = minute("a", 7200, "one", 6);
  write_history({again});
  EXPECT_THAT(*store_->history("a", 7200, 7201), ElementsAre(again, other)) << "it replaces the row of its server";
  remove_job("a");
  EXPECT_THAT(*store_->history("a", 0, 10'000), IsEmpty());
  EXPECT_EQ(store_->history("b", 0, 10'000)->size(), 1U);
  EXPECT_EQ(store_->history_bytes()->size(), 1U);
}

TEST_P(AnyStore, KeepsTheSumOfAllJobsWithoutAnyJob) {
  const std::string all(store::kAllJobs);
  const store::HistoryRow first = minute(all, 7200, "one", 5), other = minute(all, 7260, "two", 1);
  write_history({first, other});
  EXPECT_THAT(*store_->history(all, 0, 10'000), ElementsAre(first, other));
  (void)append(to("a", 0, {"{1}"}));
  remove_job("a");
  EXPECT_THAT(*store_->history(all, 0, 10'000), ElementsAre(first, other));
  EXPECT_THAT(*store_->history_bytes(), IsEmpty()) << "no job has it";
  age_history(14'400);
  ASSERT_EQ(store_->history(all, 0, 10'000)->size(), 1U);
  EXPECT_EQ(store_->history(all, 0, 10'000)->front().figures.iterations, 6);
  age_history(14'400, 14'400);
  EXPECT_THAT(*store_->history(all, 0, 10'000), IsEmpty());
}

TEST_P(AnyStore, AddsOldMinutesToTheirHours) {
  for (int i = 0; i < 45; ++i) (void)append(to("job " + std::to_string(i), 0, {"{1}"}));  // more than are done at once
  for (int i = 0; i < 45; ++i) {
    const std::string job = "job " + std::to_string(i);
    write_history({minute(job, 7200, "one", 1), minute(job, 7260, "one", 2), minute(job, 7260, "two", 3),
                   minute(job, 10'800, "one", 4), minute(job, 14'400, "one", 5)});
  }
  age_history(14'400);
  const auto hour = [](std::int64_t start_s, std::int64_t minutes, std::int64_t iterations) {
    store::HistoryRow row = minute("job 44", start_s, "", iterations);
    row.step_s = 3600;
    row.figures.straggler_iterations = minutes;
    return row;
  };
  EXPECT_THAT(*store_->history("job 44", 0, 20'000),
              ElementsAre(minute("job 44", 14'400, "one", 5), hour(7200, 3, 6), hour(10'800, 1, 4)));
  age_history(14'400);
  EXPECT_EQ(store_->history("job 44", 0, 20'000)->size(), 3U) << "once";
  write_history({minute("job 44", 7320, "late", 10)});
  age_history(14'400);
  EXPECT_THAT(*store_->history("job 44", 7200, 7201), ElementsAre(hour(7200, 4, 16)));
  age_history(14'400, 10'800);
  EXPECT_THAT(*store_->history("job 44", 0, 20'000),
              ElementsAre(minute("job 44", 14'400, "one", 5), hour(10'800, 1, 4)));
  EXPECT_EQ(store_->history("job 0", 0, 20'000)->size(), 2U);
  EXPECT_THAT(store_->history_bytes()->front(), (store::HistoryBytes{"job 0", 2 * store::kHistoryRowBytes}));
}

/// A minute of a domain with sums that a row could have.
inline store::SiteRow site_minute(const std::string& domain, std::int64_t start_s, const std::string& source,
                                  std::int64_t readings) {
  const auto n = static_cast<double>(readings);
  store::SiteRow row{domain, 60, start_s, source, {}};
  row.figures.readings = row.figures.limited = readings;
  row.figures.over = 1;
  row.figures.limit_w = 400 * n;
  row.figures.planned_w = 300 * n;
  row.figures.tiers = {{0, {8 * n, n}}, {0.9, {16 * n, 0.5 * n}}};
  return row;
}

TEST_P(AnyStore, KeepsTheMinutesOfDomains) {
  store::SiteRow first = site_minute("hall", 7200, "one", 12);
  first.figures.metered_w = 0.1 + 0.2;  // read as it was written
  const store::SiteRow other = site_minute("hall", 7200, "two", 3), row = site_minute("row a", 7200, "one", 12);
  const store::SiteRow later = site_minute("hall", 7260, "one", 12);
  write_site_history({row, later, first, other});
  EXPECT_THAT(*store_->site_history(0, 10'000), ElementsAre(first, other, row, later));
  EXPECT_THAT(*store_->site_history(7201, 7261), ElementsAre(later));
  EXPECT_THAT(*store_->site_history(0, 7200), IsEmpty());
  const store::SiteRow again = site_minute("hall", 7200, "one", 4);
  write_site_history({again});
  EXPECT_THAT(*store_->site_history(7200, 7201), ElementsAre(again, other, row)) << "it replaces that of its server";
  EXPECT_EQ(store_->history_bytes()->size(), 0U);
}

TEST_P(AnyStore, AddsOldMinutesOfDomainsToTheirHours) {
  for (const std::int64_t start_s : {7200, 7260, 10'740, 10'800, 14'400}) {
    write_site_history({site_minute("hall", start_s, "one", 2), site_minute("row a", start_s, "two", 1)});
  }
  const auto hour = [](const std::string& domain, std::int64_t start_s, std::int64_t minutes, std::int64_t readings) {
    store::SiteRow row = site_minute(domain, start_s, "", readings);
    row.step_s = 3600;
    row.figures.over = minutes;
    return row;
  };
  const store::SiteRow young = site_minute("hall", 14'400, "one", 2),
                       young_row = site_minute("row a", 14'400, "two", 1);
  age_history(14'400);
  age_history(14'400);
  EXPECT_THAT(*store_->site_history(0, 20'000),
              ElementsAre(young, young_row, hour("hall", 7200, 3, 6), hour("row a", 7200, 3, 3),
                          hour("hall", 10'800, 1, 2), hour("row a", 10'800, 1, 1)));
  write_site_history({site_minute("hall", 7320, "late", 10)});
  age_history(14'400);
  EXPECT_THAT(store_->site_history(7200, 7201)->front(), hour("hall", 7200, 4, 16));
  write_site_history({site_minute("hall", 7320, "too late", 10)});
  age_history(14'400, 10'800);
  EXPECT_THAT(*store_->site_history(0, 20'000),
              ElementsAre(young, young_row, hour("hall", 10'800, 1, 2), hour("row a", 10'800, 1, 1)));
}

TEST_P(AnyStore, KeepsTokens) {
  const store::TokenRow token{"hash", "job", "a", "training", 3.5, 7.5, "vision"};
  EXPECT_TRUE(executor_.outcome<Ok>([&](auto done) { store_->put_token(token, done); }).ok());
  EXPECT_THAT(*store_->tokens(), ElementsAre(token));
  EXPECT_TRUE(executor_.outcome<Ok>([&](auto done) { store_->revoke_token("hash", done); }).ok());
  EXPECT_THAT(*store_->tokens(), IsEmpty());
}

TEST_P(AnyStore, AnswersInTheOrderOfTheCalls) {
  std::vector<int> answered;
  for (int i = 0; i < 100; ++i) {
    store_->append(to("a", i, {"{}"}), [&answered, i](Result<store::Appended> result) {
      EXPECT_TRUE(result.ok() && *result == store::Appended::committed) << i;
      answered.push_back(i);
    });
  }
  while (answered.size() < 100) executor_.run_one();
  EXPECT_TRUE(std::ranges::is_sorted(answered));
  EXPECT_EQ(store_->jobs()->front().last_sequence, 100);
}

TEST_P(AnyStore, LeavesWithEverythingCommitted) {
  if (std::string(GetParam().name) == "memory") GTEST_SKIP() << "a store that forgets";
  int answered = 0;
  for (int i = 0; i < 50; ++i) store_->append(to("a", i, {"{}"}), [&](const Result<store::Appended>&) { ++answered; });
  store_->resign();
  store_.reset();
  while (answered < 50) executor_.run_one();
  store_ = open();
  EXPECT_EQ(store_->read("a", 0)->size(), 50U);
}

TEST_P(AnyStore, ReportsBlobsOfJobsAndTheirSizes) {
  store::Append first = to("a", 0, {"1"});
  first.blobs = {{"input/x", std::string(1000, 'x')}};
  first.holds = {"input/x", "frontier/later"};
  ASSERT_TRUE(append(first).ok());
  store::Append second = to("b", 0, {"1"});
  second.holds = {"input/x"};
  ASSERT_TRUE(append(second).ok());
  put_blob("known/y", "yy", {"input/x"});  // no job uses it
  EXPECT_THAT(store_->held_blobs().value(),
              ElementsAre(store::HeldBlob{"a", "input/x", 1000}, store::HeldBlob{"b", "input/x", 1000}));
  put_blob("frontier/later", "1234");
  EXPECT_EQ(store_->held_blobs().value().front(), (store::HeldBlob{"a", "frontier/later", 4}));
  remove_job("a");
  EXPECT_THAT(store_->held_blobs().value(), ElementsAre(store::HeldBlob{"b", "input/x", 1000}));
  EXPECT_GE(store_->size_bytes().value(), 1000);
}

}  // namespace perseus::testing
