#include "io/formats/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "tests/support/model_samples.h"

namespace perseus::formats {
namespace {

using ::testing::HasSubstr;

model::ComputationDag sample_dag(int stages = 2, int microbatches = 3) {
  auto schedule = model::make_schedule("1f1b", {stages, microbatches, 1});
  auto dag = model::build_dag(testing::two_clock_profile(stages), *schedule, {Watts(83.64), Seconds(0.0031)});
  EXPECT_TRUE(dag);
  return *dag;
}

/// Points with awkward numbers: reading must return what was written, even if it makes no sense as a plan.
model::Frontier sample_frontier(const model::ComputationDag& dag, int num_points) {
  std::mt19937 random(7);
  model::Frontier frontier;
  for (int i = 0; i < num_points; ++i) {
    model::FrontierPoint point;
    point.time = Seconds(10.0 / (i + 3));
    point.energy = Joules(1e3 / 3 + i * 0.1);
    point.effective_energy = Joules(-100 + i / 7.0);
    point.bound = Joules(1e-7 * (i + 1));
    point.clock_limit_cost = Joules((i % 3 - 1) / 3.0);
    for (std::size_t c = 0; c < dag.computations.size(); ++c) {
      const auto options = dag.type_of(static_cast<int>(c)).options.size();
      point.plan.push_back(static_cast<std::uint16_t>(random() % options));
    }
    frontier.points.push_back(point);
  }
  frontier.bound.vertices = {{Seconds(0.1), Joules(5)}, {Seconds(0.30000000000000004), Joules(-1e22)}};
  return frontier;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto file = parse_plan_file(text, "plans.json");
  return file ? "no error" : file.error().message;
}

TEST(PlanFile, ReadingReversesWritingExactly) {
  model::ComputationDag dag = sample_dag();
  dag.types[0].options[0].time = Seconds(std::nextafter(0.1, 1));
  const model::Frontier frontier = sample_frontier(dag, 40);
  const Metadata metadata = {{"profile", "a \"b\"\\\n\tü.csv"}, {"", ""}};
  const std::string text = format_plan_file(dag, frontier, metadata);
  auto file = parse_plan_file(text, "plans.json");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(format_plan_file(file->dag, file->frontier, file->metadata), text);
  EXPECT_EQ(file->metadata, metadata);
  EXPECT_EQ(file->dag.rank_order, dag.rank_order);
  EXPECT_EQ(file->dag.types[0].options[0].time, dag.types[0].options[0].time);
  ASSERT_EQ(file->frontier.points.size(), frontier.points.size());
  for (std::size_t i = 0; i < frontier.points.size(); ++i) {
    EXPECT_EQ(file->frontier.points[i].plan, frontier.points[i].plan);
    EXPECT_EQ(file->frontier.points[i].time, frontier.points[i].time);
    EXPECT_EQ(file->frontier.points[i].bound, frontier.points[i].bound);
    EXPECT_EQ(file->frontier.points[i].clock_limit_cost, frontier.points[i].clock_limit_cost);
  }
  EXPECT_EQ(file->frontier.bound.vertices[1].effective_energy, Joules(-1e22));
}

TEST(PlanFile, ReplacesBytesThatAreNotUtf8) {
  const model::ComputationDag dag = sample_dag();
  const std::string text = format_plan_file(dag, sample_frontier(dag, 1), {{"k", "a\xff\xc3\x2bz\xed\xa0\x80"}});
  auto file = parse_plan_file(text, "p");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata.at("k"), "a��+z���");
}

TEST(PlanFile, ErrorsNameThePlaceAndAllowedValues) {
  const model::ComputationDag dag = sample_dag();
  const std::string good = format_plan_file(dag, sample_frontier(dag, 3), {{"a", "b"}});
  ASSERT_EQ(error_of(good), "no error");
  EXPECT_THAT(error_of(""), HasSubstr("plans.json:1:1: not JSON: incomplete"));
  EXPECT_THAT(error_of(good.substr(0, good.size() / 2)), HasSubstr("not JSON: incomplete"));
  EXPECT_THAT(error_of("{\n ?"), HasSubstr("plans.json:2:2: not JSON: syntax error"));
  EXPECT_THAT(error_of(good + "x"), HasSubstr("not JSON: extra data"));
  EXPECT_THAT(error_of(std::string(100, '[')), HasSubstr("at most 16 levels"));
  EXPECT_THAT(error_of("[]"), HasSubstr("plans.json: $: found an array of 0 elements; expected an object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("expected a member \"format\" in it"));
  EXPECT_THAT(error_of(replaced(good, "perseus-plans", "other")), HasSubstr("$.format: found \"other\"; expected"));
  EXPECT_THAT(error_of(replaced(good, "\"version\":1", "\"version\":2")), HasSubstr("$.version: found 2; expected 1"));
  EXPECT_THAT(error_of(replaced(good, "\"a\":\"b\"", "\"a\":[]")), HasSubstr("$.metadata.a: found an array"));
  EXPECT_THAT(error_of(replaced(good, "83.64", "-1")), HasSubstr("$.dag: found an object"));
  EXPECT_THAT(error_of(replaced(good, "83.64", "1e999")), HasSubstr("$.dag.blocking_power_w"));
  EXPECT_THAT(error_of(replaced(good, "[1410,0.1,30,0.001,0.2,3]", "[1410,0.1,30]")),
              HasSubstr("$.dag.types[0].options[0]"));
  EXPECT_THAT(error_of(replaced(good, "[1410,0.1,30,0.001,0.2,3]", "[1410,0,30,0.001,0.2,3]")),
              HasSubstr("time_s 0; must be finite and > 0"));
  EXPECT_THAT(error_of(replaced(good, "\"accelerators\":[1,1]", "\"accelerators\":[1]")),
              HasSubstr("$.dag.computations: found an object of 3 members; expected ranks from 0 to 0, found 1"));
  EXPECT_THAT(error_of(replaced(good, "\"after\":[", "\"after\":[1,")), HasSubstr("equal lengths"));
  EXPECT_THAT(error_of(replaced(good, "\"plan\":\"", "\"plan\":\"9,")), HasSubstr("$.points[0].plan"));
  EXPECT_THAT(error_of(replaced(good, "\"plan\":\"", "\"plan\":\"0*99999999999,")), HasSubstr("found '0*99999999999'"));
  EXPECT_THAT(error_of(replaced(good, "\"plan\":\"", "\"plan\":\"0,")), HasSubstr("$.points[0].plan"));
  EXPECT_THAT(error_of(replaced(good, "[0.1,5]", "[0.9,5]")), HasSubstr("$.bound[1]"));
  model::Frontier unordered = sample_frontier(dag, 3);
  std::swap(unordered.points[0], unordered.points[1]);
  EXPECT_THAT(error_of(format_plan_file(dag, unordered)), HasSubstr("$.points[1]"));
  model::Frontier none = sample_frontier(dag, 0);
  EXPECT_THAT(error_of(format_plan_file(dag, none)), HasSubstr("at least one point"));
}

TEST(PlanFile, IsCompact) {
  const model::ComputationDag dag = sample_dag(8, 96);
  model::Frontier frontier = sample_frontier(dag, 1);
  frontier.points[0].plan.assign(dag.computations.size(), 1);
  const std::string one = format_plan_file(dag, frontier);
  frontier.points.push_back(frontier.points[0]);
  EXPECT_LT(format_plan_file(dag, frontier).size() - one.size(), 200u) << "a plan of equal clocks is one run";
}

}  // namespace
}  // namespace perseus::formats
