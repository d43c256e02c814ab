// Reading of scenarios: every value arrives; every error names file, line, table, key, value and what is allowed.
#include "io/formats/scenario_toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <span>
#include <sstream>

#include "io/formats/toml_reader.h"

namespace perseus::formats {
namespace {

const std::string head =
    "duration_s = 3600\n"      // 1
    "[cluster]\n"              // 2
    "blocking_power_w = 80\n"  // 3
    "[[pipelines]]\n"          // 4
    "name = \"whole\"\n"       // 5
    "profile = \"p.csv\"\n"    // 6
    "microbatches = 12\n"      // 7
    "count = 4\n";             // 8

TEST(ScenarioToml, ReadsGivenValuesAndDefaultsTheRest) {
  const Result<model::Scenario> scenario = parse_scenario(head, "a/s.toml", "a");
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  EXPECT_EQ(scenario->name, "s");
  EXPECT_EQ(scenario->duration, Seconds(3600));
  EXPECT_FALSE(scenario->iterations.has_value());
  EXPECT_EQ(scenario->blocking_power, Watts(80));
  EXPECT_EQ(scenario->tensor_parallel, 1);
  EXPECT_EQ(scenario->kinds[0].profile, "a/p.csv");
  EXPECT_EQ(scenario->kinds[0].schedule, "1f1b");
  EXPECT_EQ(scenario->num_pipelines(), 4);
  EXPECT_EQ(scenario->methods, (std::vector<std::string>{"all-max", "exact"}));
  EXPECT_FALSE(scenario->timing.optimizer_power.has_value());
}

TEST(ScenarioToml, ReadsTheSample) {
  const Result<model::Scenario> read = read_scenario(PERSEUS_SOURCE_DIR "/data/sample_scenario.toml");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->kinds[1].name, "without a stage");
  EXPECT_EQ(read->kinds[1].profile, PERSEUS_SOURCE_DIR "/data/sample_profile_3_stages.csv");
  ASSERT_EQ(read->stragglers.size(), 2u);
  EXPECT_EQ(read->stragglers[0].hardship.stage, 2);
  EXPECT_EQ(read->stragglers[0].hardship.gpus, 1);
  EXPECT_EQ(read->stragglers[1].hardship.becomes, 1);
  EXPECT_EQ(read->stragglers[1].hardship.restart, Seconds(30));
  EXPECT_EQ(read->random[1].most_slowdown, 2);
  EXPECT_EQ(read->timing.synchronization_power, Watts(140));
  EXPECT_EQ(read->delivery.notice_delay, Seconds(5));
  ASSERT_TRUE(read->sweep.has_value());
  EXPECT_EQ(read->sweep->scaling, (std::vector<model::Scaling>{model::Scaling::strong, model::Scaling::weak}));
  EXPECT_EQ(read->sweep->slowdowns.size(), 11u);
  EXPECT_DOUBLE_EQ(read->sweep->slowdowns.back(), 1.5);
}

TEST(ScenarioToml, ReadsALatencyPerBoundaryAndDirection) {
  const auto scenario =
      parse_scenario(head + "[timing]\ntransfer_latency_s = [0.002, [0.064, 0.07], 1]\n", "s.toml", "");
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  const model::BoundaryLatency node{Seconds(0.002), Seconds(0.002)}, slow{Seconds(0.064), Seconds(0.07)};
  EXPECT_EQ(scenario->timing.transfer_latency,
            model::TransferLatency({node, slow, model::BoundaryLatency{Seconds(1), Seconds(1)}}));
}

struct Bad {
  std::string text;
  std::string says;
};

void expect_errors(std::span<const Bad> cases) {
  for (const Bad& bad : cases) {
    const Result<model::Scenario> scenario = parse_scenario(bad.text, "s.toml");
    ASSERT_FALSE(scenario.ok()) << bad.says;
    EXPECT_THAT(scenario.error().message, ::testing::StartsWith(bad.says));
    EXPECT_EQ(scenario.error().code, ErrorCode::invalid_input);
    EXPECT_EQ(scenario.error().message.find('\n'), std::string::npos);
  }
}

TEST(ScenarioToml, ErrorsNameFileLineFieldValueAndAllowedValues) {
  const Bad cases[] = {
      {"", "s.toml:1: cluster: is missing; allowed: a table [cluster] with blocking_power_w"},
      {"duration_s = \n", "s.toml:1: "},
      {"duration_s = -1\n" + head.substr(head.find('\n') + 1),
       "s.toml:1: duration_s: -1; allowed: a number from 1e-06 to 1000000000"},
      {"iterations = 5\n" + head, "s.toml:1: iterations: 5; allowed: duration_s or iterations, not both"},
      {head.substr(head.find('\n') + 1), "s.toml:1: duration_s: is missing; allowed: duration_s or iterations"},
      {"duratoin_s = 3\n" + head,
       "s.toml:1: unknown key 'duratoin_s'; allowed: name, seed, duration_s, iterations, methods, tau_s, slowdown_pct, "
       "cluster, pipelines, timing, server, straggler, random, sweep"},
      {"seed = 3\niteration = 5\n" + head.substr(head.find('\n') + 1), "s.toml:2: unknown key 'iteration'; allowed: "},
      {"zeed = 3\niteration = 5\n" + head, "s.toml:1: unknown key 'zeed'; allowed: "},
      {head + "[clusters]\n", "s.toml:9: unknown key 'clusters'"},
      {head + "[timing]\nload_s = \"long\"\n",
       "s.toml:10: [timing] load_s: 'long'; allowed: a number from 0 to 1000000000"},
      {head + "[timing]\nload = 1\n", "s.toml:10: [timing] unknown key 'load'; allowed: transfer_latency_s"},
      {head + "[timing]\ntransfer_latency_s = [0.1, [0.1, 0.2, 0.3]]\n",
       "s.toml:10: [timing] transfer_latency_s: a list; allowed: a list of at least one, each a number from 0 to "
       "1000000000 or a list of two such numbers"},
      {head + "[timing]\ntransfer_latency_s = [[0.1, -1]]\n",
       "s.toml:10: [timing] transfer_latency_s: a list; allowed"},
      {head + "[server]\nswitch_latency_s = inf\n", "s.toml:10: [server] switch_latency_s: inf; allowed: "},
      {head + "[[pipelines]]\nname = \"whole\"\nprofile = \"q\"\nmicrobatches = 1\ncount = 0\n",
       "s.toml:10: [[pipelines]] name: 'whole'; allowed: a name that no other [[pipelines]] has"},
      {head + "[[pipelines]]\nname = \"b\"\nprofile = \"q\"\nmicrobatches = 1.5\ncount = 0\n",
       "s.toml:12: [[pipelines]] microbatches: 1.5; allowed: an integer from 1 to 1048576"},
      {head + "[[pipelines]]\nname = \"b\"\nprofile = \"q\"\nschedule = \"2f2b\"\nmicrobatches = 1\ncount = 0\n",
       "s.toml:12: [[pipelines]] schedule: '2f2b'; allowed: gpipe, 1f1b"},
  };
  expect_errors(cases);
}

TEST(ScenarioToml, ErrorsOfStragglersAndSweeps) {
  const std::string straggler =
      "[[straggler]]\ncause = \"thermal\"\npipeline = 1\nslowdown = 1.2\nat_s = 1\nfor_s = 1\n";  // lines 9 to 14
  const Bad cases[] = {
      {head + "[[straggler]]\ncause = \"laziness\"\n",
       "s.toml:10: [[straggler]] cause: 'laziness'; allowed: thermal, power, storage, failure"},
      {head + "[[straggler]]\ncause = \"thermal\"\npipeline = 4\nslowdown = 1.2\nat_s = 1\nfor_s = 1\n",
       "s.toml:11: [[straggler]] pipeline: 4; allowed: an integer from 0 to 3"},
      {head + straggler + "[[straggler]]\ncause = \"thermal\"\npipeline = 0\nslowdown = 0.9\n",
       "s.toml:18: [[straggler]] slowdown: 0.9; allowed: a number from 1 to 100"},
      {head + straggler + "becomes = \"whole\"\n",
       "s.toml:15: [[straggler]] becomes: 'whole'; allowed: nothing where cause is thermal"},
      {head + straggler + "mean_for_s = 1\n",
       "s.toml:15: [[straggler]] unknown key 'mean_for_s'; allowed: cause, slowdown, gpus, stage, becomes, restart_s, "
       "pipeline, at_s, for_s"},
      {head + "[[straggler]]\ncause = \"storage\"\nslowdown = 1.2\nstage = 0\n",
       "s.toml:12: [[straggler]] stage: 0; allowed: nothing where cause is storage"},
      {head + "[[straggler]]\ncause = \"storage\"\nslowdown = 1.2\ngpus = 1\n",
       "s.toml:12: [[straggler]] gpus: 1; allowed: nothing where cause is storage"},
      {head + "[[straggler]]\ncause = \"failure\"\nbecomes = \"half\"\n",
       "s.toml:11: [[straggler]] becomes: 'half'; allowed: the name of a [[pipelines]]: whole"},
      {head + "[[straggler]]\ncause = \"failure\"\nbecomes = \"whole\"\nrestart_s = 1\n",
       "s.toml:9: [[straggler]]: pipelines fail, but [cluster] idle_power_w is missing"},
      {head + "[[random]]\ncause = \"power\"\nmean_between_s = 0\n",
       "s.toml:11: [[random]] mean_between_s: 0; allowed: a number from 1e-06"},
      {head + "[[random]]\ncause = \"power\"\nmean_between_s = 9\nmean_for_s = 9\nslowdown = [1.4, 1.1]\n",
       "s.toml:13: [[random]] slowdown: a list; allowed: two numbers from 1 to 100, [least, most]"},
      {head + "[sweep]\nscaling = [\"strong\"]\ngpus = [8, 0]\nslowdowns = [1]\n",
       "s.toml:11: [sweep] gpus: a list; allowed: a list of at least one, each a number from 1 to 100000000"},
      {head + "[sweep]\nscaling = [\"sideways\"]\ngpus = [8]\nslowdowns = [1]\n", "s.toml:10: [sweep] scaling: a list"},
      {head +
           "[sweep]\nscaling = [\"weak\"]\ngpus = [8]\nslowdown_from = 1.5\nslowdown_to = 1.2\nslowdown_step = 0.1\n",
       "s.toml:13: [sweep] slowdown_to: 1.2; allowed: at least slowdown_from, 1.5"},
      {head + "[sweep]\nscaling = [\"weak\"]\ngpus = [8]\nslowdowns = [1]\nslowdown_to = 1.2\n",
       "s.toml:13: [sweep] slowdown_to: 1.2; allowed: nothing where slowdowns is given"},
      {"sweep = 3\n" + head, "s.toml:1: sweep: 3; allowed: a table, [sweep]"},
      {"straggler = 3\n" + head, "s.toml:1: straggler: 3; allowed: tables, each under [[straggler]]"},
  };
  expect_errors(cases);
}

TEST(ScenarioToml, NoListOfAllowedKeysNamesAKeyTwice) {
  for (const std::string table : {"", "[cluster]\n", "[[pipelines]]\n", "[timing]\n", "[server]\n", "[[straggler]]\n",
                                  "[[random]]\n", "[sweep]\n"}) {
    // The tables before it must be complete: what stands first is reported first.
    const std::string text = table == "[cluster]\n" ? table + "typo = 1\n"
                             : table.empty()        ? "typo = 1\n" + head
                                                    : head + table + "typo = 1\n";
    const Result<model::Scenario> scenario = parse_scenario(text, "s.toml");
    ASSERT_FALSE(scenario.ok());
    const std::string& message = scenario.error().message;
    const std::string::size_type at = message.find("unknown key 'typo'; allowed: ");
    ASSERT_NE(at, std::string::npos) << message;
    std::istringstream keys(message.substr(message.find("allowed: ", at) + 9));
    std::set<std::string> seen;
    for (std::string key; keys >> key;) {
      if (key.back() == ',') key.pop_back();
      EXPECT_TRUE(seen.insert(key).second) << key << " twice: " << message;
    }
    EXPECT_GE(seen.size(), 3u);
  }
}

TEST(ScenarioToml, AValueThatIsNoneIsShownWithWhatIsAllowed) {
  const auto error_of = [](const std::string& text) { return parse_toml(text, "s.toml").error().message; };
  const std::string allowed = "; allowed: a number, true, false, a date, or a text in quotes: ";
  for (const std::string value : {"127.0.0.1:0", "localhost:80", "2026-13-01", "09:99", "5 kW", "10%", "1,000"})
    EXPECT_EQ(error_of("a = 1\nb = " + value + " # why\n"), "s.toml:2: " + value + allowed + '"' + value + '"');
  for (const char* text : {"a b = 5", "a = \"x", "a = [1, 2", "a = 1\na = 2", "a", "a = [1, x]"})
    EXPECT_THAT(error_of(text), ::testing::Not(::testing::HasSubstr("in quotes"))) << text;
}

TEST(ScenarioToml, ADateInPlaceOfANumberIsShown) {
  for (const auto& [value, shown] : {std::pair("2026-11-27", "the date 2026-11-27"),
                                     {"09:30:00", "the time 09:30:00"},
                                     {"2026-11-27T09:30:00Z", "the date and time 2026-11-27T09:30:00Z"}}) {
    const auto table = parse_toml(std::string("a = ") + value, "s.toml");
    ASSERT_TRUE(table.ok()) << value;
    constexpr std::string_view keys[] = {"a"};
    const std::string file = "s.toml";
    TomlFields fields(*table, file, "", keys);
    fields.number("a", {0, 5});
    ASSERT_TRUE(fields.error());
    EXPECT_EQ(fields.error()->message, std::string("s.toml:1: a: ") + shown + "; allowed: a number from 0 to 5");
  }
}

TEST(ScenarioToml, TextsMayHaveAnyCharacters) {
  std::string text = head;
  text.insert(0, "name = \"Größe \\\" é # ü\" # nächste\n");
  const Result<model::Scenario> scenario = parse_scenario(text, "s.toml");
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  EXPECT_EQ(scenario->name, "Größe \" é # ü");
  for (const std::string broken : {"é = 1\n", "name = 0\"é\"\n", "name = 0$\"x\xEF\xBB\x88\"\n", "name = 0$=\"é\"\n",
                                   "name = \"a\"é\n", "name = 'a\\' é\n", "name = \"\"\"\n\"\"\"\nx = {é = 1}\n"}) {
    const Result<model::Scenario> refused = parse_scenario(broken + head, "s.toml");
    ASSERT_FALSE(refused.ok()) << broken;
    EXPECT_NE(refused.error().message.find("not ASCII"), std::string::npos) << refused.error().message;
  }
  EXPECT_FALSE(parse_scenario("name = \"a\nb\"\né = 1\n" + head, "s.toml").ok());
}

TEST(ScenarioToml, AMissingFileIsNotFound) {
  const Result<model::Scenario> scenario = read_scenario("/nowhere/s.toml");
  ASSERT_FALSE(scenario.ok());
  EXPECT_EQ(scenario.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace perseus::formats
