#include "io/formats/dag_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::formats {
namespace {

using ::testing::HasSubstr;

const std::string good = R"({
  "blocking_power_w": 30,
  "machines": [{"name": "a", "accelerators": 4}, "b"],
  "types": [
    {"name": "map", "options": [{"frequency_mhz": 1200, "time_s": 2.5, "energy_j": 60},
                                {"frequency_mhz": 2400, "time_s": 1.5, "energy_j": 90}]},
    {"name": "reduce", "options": [{"frequency_mhz": 0, "time_s": 1, "energy_j": 0}]}
  ],
  "computations": [
    {"id": "r", "type": "reduce", "machine": "b"},
    {"id": "m1", "type": "map", "machine": "a"},
    {"id": "m2", "type": "map", "machine": "a"}
  ],
  "dependencies": [{"before": "m1", "after": "r", "latency_s": 0.25}, {"before": "m2", "after": "r"},
                   {"before": "m2", "after": "r", "latency_s": 0.5}]
})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto dag = parse_dag_json(text, "d.json");
  return dag ? "no error" : dag.error().message;
}

TEST(DagJson, ReadsMachinesTypesComputationsAndDependencies) {
  auto named = parse_dag_json(good, "d.json");
  ASSERT_TRUE(named) << named.error().message;
  const model::ComputationDag& dag = named->dag;
  ASSERT_TRUE(dag.validate()) << dag.validate().error().message;
  EXPECT_EQ(dag.blocking_power, Watts(30));
  EXPECT_EQ(dag.accelerators, (std::vector<int>{4, 1}));
  EXPECT_EQ(named->computation_ids, (std::vector<std::string>{"m1", "m2", "r"}));
  EXPECT_EQ(named->machine_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(dag.rank_order, (std::vector<std::vector<int>>{{0, 1}, {2}}));
  EXPECT_EQ(dag.types[0].stage, -1);
  EXPECT_EQ(dag.types[0].options[0].clock, Megahertz(2400)) << "highest clock first";
  ASSERT_EQ(dag.dependencies.size(), 3u) << "the pair m2, r keeps its longest latency only";
  EXPECT_EQ(dag.dependencies[2].before, 1);
  EXPECT_EQ(dag.dependencies[2].latency, Seconds(0.5));
}

TEST(DagJson, TakesAnExplicitOrderOfAMachine) {
  auto named = parse_dag_json(replaced(good, "\"accelerators\": 4", "\"order\": [\"m2\", \"m1\"]"), "d.json");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->computation_ids, (std::vector<std::string>{"m2", "m1", "r"}));
}

TEST(DagJson, NamesTheCycle) {
  EXPECT_EQ(error_of(replaced(good, R"({"before": "m2", "after": "r"},)", R"({"before": "r", "after": "m1"},)")),
            "d.json: $: found an object of 5 members; expected dependencies and machine orders without a cycle, but "
            "r before m1 before m2 before r");
  EXPECT_THAT(error_of(replaced(good, R"({"before": "m2", "after": "r"},)", R"({"before": "m2", "after": "m2"},)")),
              HasSubstr("m2 before m2"));
  EXPECT_THAT(error_of(replaced(good, R"({"before": "m2", "after": "r"},)", R"({"before": "m2", "after": "m1"},)")),
              HasSubstr("before m"));
}

TEST(DagJson, ErrorsNamePathValueAndAllowedValues) {
  EXPECT_THAT(error_of("{"), HasSubstr("d.json:1:2: not JSON"));
  EXPECT_THAT(error_of(replaced(good, "\"machines\"", "\"hosts\"")), HasSubstr("a member \"machines\""));
  EXPECT_THAT(error_of(replaced(good, "\"id\": \"r\"", "\"id\": \"r\", \"x\": 1")),
              HasSubstr("$.computations[0].x: found 1; expected no such member; allowed: id, "));
  EXPECT_THAT(error_of(replaced(good, ": 30,", ": -1,")),
              HasSubstr("$.blocking_power_w: found -1; expected a number >= 0"));
  EXPECT_THAT(error_of(replaced(good, "\"time_s\": 2.5", "\"time_s\": 0")),
              HasSubstr("$.types[0].options[0].time_s: found 0; expected a number > 0 and <= 1000000"));
  EXPECT_THAT(error_of(replaced(good, "\"energy_j\": 60", "\"energy_j\": \"60\"")),
              HasSubstr("$.types[0].options[0].energy_j: found \"60\"; expected a finite number"));
  EXPECT_THAT(error_of(replaced(good, "1200", "12.5")), HasSubstr("expected an integer"));
  EXPECT_THAT(error_of(replaced(good, "1200", "2400")), HasSubstr("one option per frequency_mhz, 2400 is there twice"));
  EXPECT_THAT(error_of(replaced(good, "[{\"frequency_mhz\": 0, \"time_s\": 1, \"energy_j\": 0}]", "[]")),
              HasSubstr("$.types[1].options: found an array of 0 elements; expected 1 to 65535 options"));
  EXPECT_THAT(error_of(replaced(good, "\"accelerators\": 4", "\"accelerators\": 0")),
              HasSubstr("$.machines[0].accelerators: found 0; expected an integer from 1"));
  EXPECT_THAT(error_of(replaced(good, "\"b\"]", "\"a\"]")),
              HasSubstr("$.machines[1]: found \"a\"; expected a name that is not yet taken"));
  EXPECT_THAT(error_of(replaced(good, "\"type\": \"reduce\"", "\"type\": \"sort\"")),
              HasSubstr("$.computations[0].type: found \"sort\"; expected the name of one of the types"));
  EXPECT_THAT(error_of(replaced(good, "\"before\": \"m1\"", "\"before\": \"m9\"")),
              HasSubstr("$.dependencies[0].before: found \"m9\"; expected the name of one of the computations"));
  EXPECT_THAT(error_of(replaced(good, "\"accelerators\": 4", "\"order\": [\"m1\"]")), HasSubstr("but m2 is not there"));
  EXPECT_THAT(error_of(replaced(good, "\"accelerators\": 4", "\"order\": [\"r\"]")),
              HasSubstr("$.machines[0].order[0]: found \"r\"; expected a computation of machine a"));
  EXPECT_THAT(error_of(R"({"blocking_power_w":0,"machines":[],"types":[],"computations":[]})"),
              HasSubstr("$.computations: found an array of 0 elements; expected at least one computation"));
}

}  // namespace
}  // namespace perseus::formats
