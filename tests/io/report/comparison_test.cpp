// Comparison of methods, worked by hand, and the content of its SVG and HTML.
#include "io/report/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace perseus::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// One rank that waits at 10 W; its computation takes 2 s.
model::ComputationDag ten_watts() {
  model::ComputationDag dag;
  dag.types = {{0, "forward", {{Megahertz(1000), Seconds(2), Joules(220), {}, {}, 1}}}};
  dag.computations = {{0, 0, 0}};
  dag.rank_order = {{0}};
  dag.accelerators = {1};
  dag.blocking_power = Watts(10);
  return dag;
}

struct TimeEnergy {
  double time_s;
  double effective_energy_j;
};

ComparedMethod method(const std::string& name, const std::vector<TimeEnergy>& points, double t_star_s = 4) {
  model::Frontier frontier;
  frontier.bound.vertices = {{Seconds(2), Joules(100)}, {Seconds(t_star_s), Joules(50)}};
  for (const auto& [time_s, energy_j] : points) {
    frontier.points.push_back({Seconds(time_s), Joules(energy_j + 10 * time_s), Joules(energy_j), Joules(1), {0}});
  }
  return {name, "what <" + name + "> is", "", frontier};
}

TEST(CompareMethods, MeasuresSharesAndSavingsAtEqualT) {
  const std::vector<ComparedMethod> methods{method("a", {{4, 100}, {2, 200}}), method("b", {{3, 150}})};
  const PairComparison pair = compare_pairs(ten_watts(), methods).at(0);
  // From 2 to 3 s only a is that fast; from 3 to 4 s it still runs its 2 s plan, and b needs 50 J less.
  EXPECT_DOUBLE_EQ(pair.of_first.better_pct, 50);
  EXPECT_DOUBLE_EQ(pair.of_first.only_pct, 50);
  EXPECT_DOUBLE_EQ(pair.of_first.largest_pct, 0);
  EXPECT_DOUBLE_EQ(pair.of_second.better_pct, 50);
  EXPECT_DOUBLE_EQ(pair.of_second.only_pct, 0);
  EXPECT_DOUBLE_EQ(pair.of_second.largest_pct, 100 * 50.0 / 230);
  EXPECT_DOUBLE_EQ(pair.of_second.largest_at.value(), 3);
  EXPECT_NEAR(pair.mean_saving_pct, -100 * 5 * std::log(190.0 / 180), 1e-4);
  EXPECT_DOUBLE_EQ(pair.equal_pct, 0);
  EXPECT_FALSE(pair.of_first.dominates);
  EXPECT_FALSE(pair.of_second.dominates);
}

TEST(CompareMethods, DominatesWhereItIsNeverWorseAndSomewhereBetter) {
  const std::vector<ComparedMethod> methods{method("a", {{4, 100}, {2, 200}}), method("b", {{3, 150}}),
                                            method("c", {{4, 100}, {3, 150}, {2, 200}}),
                                            method("d", {{4, 100}, {2, 200}})};
  const std::vector<PairComparison> pairs = compare_pairs(ten_watts(), methods);
  ASSERT_EQ(pairs.size(), 6u);
  const auto& a_c = pairs[1];
  EXPECT_TRUE(a_c.of_second.dominates);
  EXPECT_FALSE(a_c.of_first.dominates);
  EXPECT_DOUBLE_EQ(a_c.equal_pct, 50);
  const auto& a_d = pairs[2];
  EXPECT_FALSE(a_d.of_first.dominates || a_d.of_second.dominates);
  EXPECT_DOUBLE_EQ(a_d.equal_pct, 100);
  const auto& b_c = pairs[3];
  EXPECT_TRUE(b_c.of_second.dominates);
  EXPECT_DOUBLE_EQ(b_c.of_second.only_pct, 50);
}

TEST(CompareMethods, ComparesPlansBeyondTStar) {
  // b is better at 5 s only, outside the compared deadlines: its share is 0, but a does not dominate.
  const std::vector<ComparedMethod> methods{method("a", {{4, 100}, {2, 200}}), method("b", {{5, 90}, {2, 300}})};
  const PairComparison pair = compare_pairs(ten_watts(), methods).at(0);
  EXPECT_DOUBLE_EQ(pair.of_first.better_pct, 100);
  EXPECT_DOUBLE_EQ(pair.of_second.better_pct, 0);
  EXPECT_FALSE(pair.of_first.dominates);
}

TEST(CompareMethods, ASingleDeadlineHasAllTheWeight) {
  const std::vector<ComparedMethod> methods{method("a", {{2, 200}}, 2), method("b", {{2, 250}}, 2)};
  const PairComparison pair = compare_pairs(ten_watts(), methods).at(0);
  EXPECT_DOUBLE_EQ(pair.of_first.better_pct, 100);
  EXPECT_DOUBLE_EQ(pair.mean_saving_pct, 100 * 50.0 / 270);
  EXPECT_TRUE(pair.of_first.dominates);
}

TEST(CompareMethods, IsDrawnAndPrinted) {
  const model::ComputationDag dag = ten_watts();
  const std::vector<ComparedMethod> methods{method("a", {{4, 100}, {2, 200}}), method("b & c", {{3, 150}})};
  const ComparisonInput input{dag, methods, "<title>", {{"schedule", "1f1b"}}};
  std::string svg, html;
  write_comparison_svg(input, [&](std::string_view piece) { svg += piece; });
  const auto pairs = compare_pairs(dag, methods);
  write_comparison_html(input, pairs, [&](std::string_view piece) { html += piece; });
  EXPECT_THAT(svg, HasSubstr("b &amp; c"));
  EXPECT_THAT(svg, HasSubstr("class=\"q0 qn\""));       // a is a curve
  EXPECT_THAT(svg, Not(HasSubstr("class=\"q1 qn\"")));  // the other is a point
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_THAT(html, HasSubstr("<h1>&lt;title&gt;</h1>"));
  EXPECT_THAT(html, HasSubstr("neither dominates"));
  EXPECT_THAT(html, HasSubstr(svg));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  // Against everything at maximum clock: 220 J.
  EXPECT_THAT(text_of(method_rows(input)), HasSubstr("220.00 J"));
  EXPECT_THAT(text_of(pair_rows(input, pairs)), HasSubstr("21.7"));
}

}  // namespace
}  // namespace perseus::report
