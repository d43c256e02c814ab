#include "server/jobs/event.h"

#include <gtest/gtest.h>

#include <set>

#include "server/jobs/event_text.h"
#include "server/jobs/job.h"

namespace perseus::jobs {
namespace {

std::vector<EventBody> one_of_each_kind() {
  PipelineShape shape;
  shape.schedule = "interleaved-1f1b";
  shape.microbatches = 8;
  shape.chunks = 2;
  shape.blocking_power = Watts(83.64);
  shape.split_backward = 0.5;
  return {
      JobRegistered{"gpt3 \"big\"",
                    {8, 4, 2},
                    true,
                    true,
                    shape,
                    {{"model_name", "gpt3"}},
                    true,
                    {},
                    {},
                    {},
                    {{"team", "vision"}},
                    {"row-a", 0.75, 2},
                    true,
                    "alice"},
      RankRegistered{3,
                     1,
                     2,
                     1,
                     {1410, 1200},
                     "GPU-1",
                     "host",
                     0.001,
                     0.01,
                     {"forward", "backward"},
                     7,
                     "advice",
                     "so it is",
                     std::nullopt,
                     "NVIDIA A40",
                     true},
      RankMeasured{3, 0.005, 83.5, {"forward"}, {1410, 1200}, "none", "no permission"},
      ProfileKnown{"key", "gpt3", {0, 2}, "1f1b", 8, "good", 0.003, true, "alice"},
      ProfilingStarted{{0, 2}, {{1410, 1200}, {1410}}, true},
      WindowHandedOut{7, 1, 5, true, true, {{1410, 0}, {1200}}, "late", 0.25, "text", 12, 3, 4.5, true, 16},
      ResultReported{0,
                     1,
                     {1.25},
                     {300.5},
                     {{"forward", {{0.1, 0.2}}}},
                     {{"forward", {{}}}},
                     {true, false},
                     "no edge of the counter"},
      ProfilingFailed{"why"},
      CharacterizationStarted{{"key"}},
      Characterized{"key", 40, 1.0 / 3, 0.5},
      CharacterizationFailed{"key", "why\nnot"},
      RefinementEnded{"key", "why"},
      StragglerNoticed{"s1", {"GPU-1", std::nullopt, std::nullopt}, 2, 1.2, 1e9 + 0.1, true, "alice"},
      StragglerTookEffect{"s1"},
      StragglerWithdrawn{"s1", "alice"},
      PolicySet{PowerCap{Watts(250000)}, "alice"},
      PolicyCleared{"power_cap", "alice"},
      TierSet{{"row-a", 0.9, 2}, "alice"},
      TierSet{},
      PlanDeployed{3,
                   104,
                   {{"key", 12}, {"", -1}},
                   {0, 0, 1},
                   4.68,
                   4.5,
                   "reason",
                   3.5,
                   0.1,
                   {{800.25, 15, 990, true, {{1e9, 600.5, 750}}}},
                   8,
                   {{16, {{"key2", 3}, {"", -1}}, {0, 0, 1}}}},
      PowerGranted{800.25, 1000, 15, 990, "site", {{1e9, 600.5, 750}}, 1.04},
      VersionHeld{3, {0, 2}},
      ShapeSeen{3, 16, true, "9 numbers", "0F0,0B0"},
      ShapeCompleted{16, "key", "key2", "why"},
      IterationsCounted{100, 12.5, 99, 1234567890123, true},
      PlanDropped{3, 7, "late", 0.71, 0.67, 16},
      EnergyMeasured{7, 12, 1155.5, 0.67, 16, 0.66, 160},
      ReportsKept{41, 43, {0, 3}, {{42, 3, true, {0, 3}, {12.5, -1}, 16}, {44, -1, false, {}, {7}}}},
      JobSeen{},
      JobSilent{1.5e9, 3, {}},
      JobSilent{1.5e9, 0, {2, 5}},
      JobHeard{{2}},
      JobHeard{},
      JobFinished{"alice"},
      JobExpired{},
      JobRevived{},
      ProfileOnTrial{{"key", "known", {}, "1f1b", 8, "", 0.003, true}, "known/1", "key0", "j_1"},
      TrialEnded{true, "+1 %"},
      SavingModeled{"NVIDIA A40", 11.8, 5.0, "would save"},
      UnknownEvent{"rank_moved"},
  };
}

TEST(Event, EveryKindIsReadBackAsItWas) {
  std::set<std::size_t> kinds;
  for (const EventBody& body : one_of_each_kind()) {
    const Event event{1'800'000'000.123456, body};
    const auto read = parse_event(format_event(event), "log");
    ASSERT_TRUE(read.ok()) << read.error().message << " in " << format_event(event);
    EXPECT_EQ(*read, event) << format_event(event);
    EXPECT_FALSE(text_of(event).empty());
    kinds.insert(body.index());
  }
  EXPECT_EQ(kinds.size(), kNumEventKinds);
}

TEST(Event, DefaultsAreReadBackToo) {
  for (const EventBody& body : {EventBody(RankRegistered{}), EventBody(IterationsCounted{}), EventBody(PlanDeployed{}),
                                EventBody(PolicySet{Pin{std::nullopt, 0}}),
                                EventBody(PolicySet{MaxSlowdown{1.5, 3, {{1, 2}, {3, 4}}, "EUR/MWh"}})}) {
    const Event event{0, body};
    const auto read = parse_event(format_event(event), "log");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, event) << format_event(event);
  }
}

/// Rank 0 is written too: a reader of the log sees which rank an event is about.
TEST(Event, NamesItsRankAndLeavesOutOtherDefaults) {
  EXPECT_EQ(format_event({1, RankRegistered{}}), R"({"kind":"rank_registered","at_s":1,"rank":0})");
  EXPECT_EQ(format_event({1, RankMeasured{}}), R"({"kind":"rank_measured","at_s":1,"rank":0})");
  EXPECT_EQ(format_event({1, JobSilent{}}), R"({"kind":"job_silent","at_s":1})");
}

TEST(Event, AGrantSaysWhatActsAtOnce) {
  const auto text = [](const PowerGranted& granted) { return text_of(Event{0, granted}); };
  EXPECT_EQ(
      text({8002.5, 10'000, 15, 990, "site"}),
      "the site's limits grant 8,002 W, at once: its ranks may draw 10,000 W; at most 990 MHz without a valid plan");
  EXPECT_EQ(text({8002.5, 7000, 15, 990, "site"}),
            "the site's limits grant 8,002 W; at most 990 MHz without a valid plan");
  EXPECT_EQ(text({{}, 7000, 15, 0, "site"}), "no power limit of the site applies any more");
}

TEST(Event, APlanSaysFromWhichIterationItRuns) {
  const auto text = [](std::int64_t from_iteration) {
    return text_of(Event{0, PlanDeployed{2, from_iteration, {}, {}, {}, {}, "a test"}});
  };
  EXPECT_EQ(text(83), "plan 2 deployed from iteration 83: a test");
  EXPECT_EQ(text(0), "plan 2 deployed at once: a test");
}

TEST(Event, ItsAuthorIsATokenARankOrTheServer) {
  const auto author = [](EventBody body) { return author_of({0, std::move(body)}); };
  EXPECT_EQ(author(PolicySet{PowerCap{Watts(250000)}, "alice"}), "alice");
  EXPECT_EQ(author(PlanDropped{3, 7, "late", 0.71, 0.67}), "rank 3");
  EXPECT_EQ(author(RankRegistered{}), "rank 0");
  EXPECT_EQ(author(StragglerNoticed{"s1", {}, 2, 1.2, 0, true}), "server");
  for (const EventBody& body : {EventBody(PlanDeployed{}), EventBody(JobExpired{}), EventBody(StragglerTookEffect{})}) {
    EXPECT_EQ(author(body), "server");
  }
  EXPECT_EQ(job_event("j", 7, {1.5, JobFinished{"alice"}}).by, "alice");
}

TEST(Event, InLogsOfEarlierVersionsTheAuthorIsNotKnown) {
  for (const char* const text :
       {R"({"kind":"policy_cleared","at_s":1,"policy":"power_cap"})", R"({"kind":"job_finished","at_s":1})",
        R"({"kind":"policy_set","at_s":1,"policy":{"power_cap":{"average_w":5}}})",
        R"({"kind":"profile_known","at_s":1,"input":"k","source":"uploaded"})"}) {
    const auto read = parse_event(text, "log");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(author_of(*read), "") << text;
    EXPECT_EQ(format_event(*read), text) << "nothing is added to an event without author";
  }
}

TEST(Event, ErrorsNameTheProblem) {
  const auto error_of = [](const char* text) {
    const auto event = parse_event(text, "log");
    return event ? "" : event.error().message;
  };
  EXPECT_EQ(error_of(R"({"kind":"job_lost","at_s":1})"),
            "log: $: found an object of 2 members; expected a kind of event");
  EXPECT_EQ(error_of(R"({"kind":"straggler_withdrawn","at_s":1,"id":7})"), "log: $.id: found 7; expected a string");
  EXPECT_EQ(error_of(R"({"kind":"job_seen","at_s":1,"who":2})"),
            "log: $.who: found 2; expected no such member; allowed: kind, at_s");
}

}  // namespace
}  // namespace perseus::jobs
