// A frontier worked out by hand, with every claim falsified once.
#include "planning/checker/verify_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "planning/checker/certificate_check.h"

namespace perseus::checker {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// One computation whose effective energies are 9, 4 and 3 J at 1, 2 and 3 s, on a hull, and 9 J at 1.5 s, which no
/// plan needs; 10 W while waiting.
model::ComputationDag one_computation() {
  model::ComputationDag dag;
  dag.types = {{-1,
                "task",
                {{Megahertz(1000), Seconds(1), Joules(19), {}, {}, 1},
                 {Megahertz(700), Seconds(2), Joules(24), {}, {}, 1},
                 {Megahertz(500), Seconds(3), Joules(33), {}, {}, 1},
                 {Megahertz(400), Seconds(1.5), Joules(24), {}, {}, 1}}}};
  dag.computations = {{0, 0, -1}};
  dag.rank_order = {{0}};
  dag.accelerators = {1};
  dag.blocking_power = Watts(10);
  return dag;
}

model::FrontierPoint point(double time_s, double energy_j, double effective_energy_j, std::uint16_t option) {
  return {Seconds(time_s), Joules(energy_j), Joules(effective_energy_j), Joules(energy_j), {option}};
}

model::Frontier its_frontier() {
  model::Frontier frontier;
  frontier.points = {point(3, 33, 3, 2), point(2, 24, 4, 1), point(1, 19, 9, 0)};
  frontier.bound.vertices = {{Seconds(1), Joules(9)}, {Seconds(2), Joules(4)}, {Seconds(3), Joules(3)}};
  return frontier;
}

/// In the steep piece 5 W flow through the computation, in the flat one 1 W.
std::vector<model::BoundCertificate> its_certificates() { return {{Seconds(1.5), {5}, {}}, {Seconds(2.5), {1}, {}}}; }

TEST(VerifyFrontier, AcceptsATrueOne) {
  const Verification v = verify_frontier(one_computation(), its_frontier(), its_certificates());
  EXPECT_THAT(v.findings, IsEmpty());
  EXPECT_EQ(v.points, 3);
  EXPECT_EQ(v.certificates, 2);
  EXPECT_EQ(v.least_makespan, Seconds(1));
  EXPECT_EQ(v.max_clock_makespan, Seconds(1));
  EXPECT_EQ(v.fastest_time, Seconds(1));
  EXPECT_EQ(v.slowest_time, Seconds(3));
  EXPECT_EQ(v.max_gap_pct, 0);
}

struct Lie {
  const char* name;
  std::function<void(model::Frontier&)> tell;
  int point;
  const char* quantity;
};

class VerifyFrontierFinds : public ::testing::TestWithParam<Lie> {};

TEST_P(VerifyFrontierFinds, TheLie) {
  model::Frontier frontier = its_frontier();
  GetParam().tell(frontier);
  const Verification v = verify_frontier(one_computation(), frontier, its_certificates());
  EXPECT_FALSE(v.ok());
  EXPECT_THAT(v.findings, Contains(AllOf(Field(&Finding::point, GetParam().point),
                                         Field(&Finding::quantity, GetParam().quantity))));
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

INSTANTIATE_TEST_SUITE_P(
    All, VerifyFrontierFinds,
    ::testing::Values(
        Lie{"Time", [](model::Frontier& f) { f.points[1].time = Seconds(1.99999); }, 1, "time_s"},
        Lie{"TimeNan", [](model::Frontier& f) { f.points[1].time = Seconds(kNan); }, 1, "time_s"},
        Lie{"Energy", [](model::Frontier& f) { f.points[1].energy = Joules(23.99999); }, 1, "energy_j"},
        Lie{"EnergyNan", [](model::Frontier& f) { f.points[0].energy = Joules(kNan); }, 0, "energy_j"},
        Lie{"Effective", [](model::Frontier& f) { f.points[2].effective_energy = Joules(8.9999); }, 2,
            "effective_energy_j"},
        Lie{"OtherOption", [](model::Frontier& f) { f.points[1].plan = {0}; }, 1, "time_s"},
        Lie{"NoSuchOption", [](model::Frontier& f) { f.points[1].plan = {4}; }, 1, "plan"},
        Lie{"PlanTooLong",
            [](model::Frontier& f) {
              f.points[1].plan = {1, 1};
            },
            1, "plan"},
        Lie{"BoundAboveEnergy", [](model::Frontier& f) { f.points[1].bound = Joules(24.001); }, 1, "bound_j"},
        Lie{"BoundBelowCurve", [](model::Frontier& f) { f.points[1].bound = Joules(23.9); }, 1, "bound_j"},
        Lie{"BoundNan", [](model::Frontier& f) { f.points[1].bound = Joules(kNan); }, 1, "bound_j"},
        Lie{"ClockLimitCost", [](model::Frontier& f) { f.points[1].clock_limit_cost = Joules(0.001); }, 1,
            "clock_limit_cost_j"},
        Lie{"ClockLimitCostNan", [](model::Frontier& f) { f.points[1].clock_limit_cost = Joules(kNan); }, 1,
            "clock_limit_cost_j"},
        Lie{"Order", [](model::Frontier& f) { std::swap(f.points[0], f.points[1]); }, 1, "order"},
        Lie{"PointSavesNothing",
            [](model::Frontier& f) {
              model::FrontierPoint useless = point(1.5, 24, 9, 3);
              useless.bound = Joules(21.5);
              f.points.insert(f.points.end() - 1, useless);
            },
            3, "order"},
        Lie{"PointTwice", [](model::Frontier& f) { f.points.push_back(f.points.back()); }, 3, "order"},
        Lie{"NoFastest", [](model::Frontier& f) { f.points.pop_back(); }, 1, "least makespan of all plans"},
        Lie{"NoSlowest", [](model::Frontier& f) { f.points.erase(f.points.begin()); }, 0,
            "least effective energy of all plans"},
        Lie{"NoPoints", [](model::Frontier& f) { f.points.clear(); }, -1, "points"},
        Lie{"CurveStartsLate", [](model::Frontier& f) { f.bound.vertices[0].time = Seconds(1.1); }, -1,
            "first time of the bound"},
        Lie{"CurveEndsLow", [](model::Frontier& f) { f.bound.vertices[2].effective_energy = Joules(2.9); }, -1,
            "last effective energy of the bound"},
        Lie{"CurveTooHigh", [](model::Frontier& f) { f.bound.vertices[1].effective_energy = Joules(4.1); }, -1,
            "bound"},
        Lie{"CurveTooLow", [](model::Frontier& f) { f.bound.vertices[1].effective_energy = Joules(3.9); }, -1, "bound"},
        Lie{"CurveRises", [](model::Frontier& f) { f.bound.vertices[2].effective_energy = Joules(5); }, -1, "bound"},
        Lie{"CurveBackwards", [](model::Frontier& f) { std::swap(f.bound.vertices[0], f.bound.vertices[1]); }, -1,
            "bound"},
        Lie{"CurveNan", [](model::Frontier& f) { f.bound.vertices[1].effective_energy = Joules(kNan); }, -1, "bound"}),
    [](const auto& lie) { return std::string(lie.param.name); });

TEST(VerifyFrontier, ClockLimitsCostAtMostTheDistanceToTheBound) {
  model::Frontier frontier = its_frontier();
  frontier.bound.vertices = {{Seconds(1), Joules(9)}, {Seconds(3), Joules(-5)}};  // 2 J at 2 s; the point has 4 J
  VerifyOptions options;
  const auto costs = [&](double cost_j) {
    frontier.points[1].clock_limit_cost = Joules(cost_j);
    const Verification v = verify_frontier(one_computation(), frontier, {}, options);
    return std::ranges::count(v.findings, "clock_limit_cost_j", &Finding::quantity) > 0;
  };
  EXPECT_FALSE(costs(2));
  EXPECT_FALSE(costs(-1)) << "a plan without limits may be the worse one";
  EXPECT_TRUE(costs(2.001));
  options.has_clock_limits = false;
  EXPECT_TRUE(costs(2));
  EXPECT_FALSE(costs(0));
}

TEST(VerifyFrontier, ReportsItsProgress) {
  VerifyOptions options;
  std::vector<double> reported;
  options.progress = [&](double done) { reported.push_back(done); };
  EXPECT_THAT(verify_frontier(one_computation(), its_frontier(), its_certificates(), options).findings, IsEmpty());
  EXPECT_THAT(reported, ::testing::ElementsAre(1.0 / 3, 2.0 / 3, 1));
}

TEST(VerifyFrontier, ErrorsNameClaimedAndActualValues) {
  model::Frontier frontier = its_frontier();
  frontier.points[1].energy = Joules(20);
  const Verification v = verify_frontier(one_computation(), frontier);
  ASSERT_FALSE(v.findings.empty());
  EXPECT_EQ(v.findings[0].message, "point 1: energy_j is 20, recomputed 24");
  EXPECT_EQ(v.findings[0].claimed, 20);
  EXPECT_EQ(v.findings[0].recomputed, 24);
}

TEST(VerifyFrontier, WithoutACurveABoundMustStillBeBelowItsPoint) {
  model::Frontier frontier = its_frontier();
  frontier.bound = {};
  EXPECT_THAT(verify_frontier(one_computation(), frontier).findings, IsEmpty());
  frontier.points[1].bound = Joules(24.001);
  const Verification v = verify_frontier(one_computation(), frontier);
  EXPECT_THAT(v.findings, Contains(AllOf(Field(&Finding::point, 1), Field(&Finding::quantity, "bound_j"))));
}

TEST(VerifyFrontier, EndsAndCurveCanBeLeftUnclaimed) {
  model::Frontier frontier = its_frontier();
  frontier.points = {frontier.points[1]};
  frontier.bound = {};
  VerifyOptions options;
  options.reaches_both_ends = false;
  EXPECT_THAT(verify_frontier(one_computation(), frontier, {}, options).findings, IsEmpty());
}

TEST(Certify, GivesTheLineThatItProves) {
  const Result<CertifiedLine> line = certify(one_computation(), {Seconds(1.5), {5}, {}});
  ASSERT_TRUE(line.ok());
  EXPECT_DOUBLE_EQ(line->fall.value(), 5);
  EXPECT_DOUBLE_EQ(line->at(Seconds(1)).value(), 9);
  EXPECT_DOUBLE_EQ(line->at(Seconds(2)).value(), 4);
  EXPECT_DOUBLE_EQ(line->at(Seconds(3)).value(), -1);
}

/// 0 -> 1 with half a second of transfer, on two ranks.
model::ComputationDag chain() {
  model::ComputationDag dag = one_computation();
  dag.computations = {{0, 0, -1}, {0, 1, -1}};
  dag.dependencies = {{0, 1, Seconds(0.5)}};
  dag.rank_order = {{0}, {1}};
  dag.accelerators = {1, 1};
  return dag;
}

TEST(Certify, CountsTransfers) {
  const Result<CertifiedLine> line = certify(chain(), {Seconds(3.5), {5, 5}, {5}});
  ASSERT_TRUE(line.ok());
  EXPECT_DOUBLE_EQ(line->fall.value(), 5);
  EXPECT_DOUBLE_EQ(line->at(Seconds(2.5)).value(), 18);
  EXPECT_DOUBLE_EQ(line->at(Seconds(4.5)).value(), 8);
}

TEST(Certify, RefusesValuesThatAreNoFlow) {
  const auto message = [](std::vector<double> x, std::vector<double> y) {
    const Result<CertifiedLine> line = certify(chain(), {Seconds(3), std::move(x), std::move(y)});
    return line.ok() ? "accepted" : line.error().message;
  };
  EXPECT_EQ(message({5}, {5}), "certificate has 1 flows of computation; the pipeline has 2");
  EXPECT_EQ(message({5, 5}, {}), "certificate has 0 flows of dependency; the pipeline has 1");
  EXPECT_EQ(message({5, -5}, {5}), "flow of computation 1 is -5 W: must be finite and not negative");
  EXPECT_EQ(message({5, 5}, {kNan}), "flow of dependency 0 is nan W: must be finite and not negative");
  EXPECT_EQ(message({5, 4}, {5}), "source of computation 1 is -1 W: must not be negative");
  EXPECT_EQ(message({4, 5}, {5}), "sink of computation 0 is -1 W: must not be negative");
  EXPECT_EQ(message({5, 5}, {4}), "accepted");
}

TEST(Certify, PaysForRounding) {
  const double rounding = 1e-10;
  const Result<CertifiedLine> line = certify(chain(), {Seconds(3), {5, 5 - rounding}, {5}});
  ASSERT_TRUE(line.ok());
  EXPECT_GE(line->fall.value(), 5);
  EXPECT_LE(line->at(Seconds(2.5)).value(), 18);
}

TEST(CheckBound, FindsAConcaveCurve) {
  model::LowerBound bound;
  bound.vertices = {{Seconds(1), Joules(9)}, {Seconds(2), Joules(8)}, {Seconds(3), Joules(3)}};
  const BoundCheck check = check_bound(one_computation(), bound, {});
  ASSERT_EQ(check.findings.size(), 1u);
  EXPECT_THAT(check.findings[0], HasSubstr("not convex at vertex 1"));
}

TEST(CheckBound, CertificatesInTheMiddleOfPiecesProveTheWholeCurve) {
  // Each of these two curves meets one certificate and is wrong elsewhere.
  const std::vector<model::BoundCertificate> certificates = its_certificates();
  model::LowerBound tilted;
  tilted.vertices = {{Seconds(1), Joules(10)}, {Seconds(2), Joules(3)}};
  EXPECT_FALSE(check_bound(one_computation(), tilted, {certificates.data(), 1}).findings.empty());
  EXPECT_EQ(deadlines_to_certify(its_frontier().bound), (std::vector<Seconds>{Seconds(1.5), Seconds(2.5)}));
}

}  // namespace
}  // namespace perseus::checker
