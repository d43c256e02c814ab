// The checker against independent computations of the same values, on random pipelines.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "oracles/brute_force.h"
#include "oracles/dice.h"
#include "oracles/instances.h"
#include "oracles/longest_path.h"
#include "oracles/lp_oracle.h"
#include "planning/checker/certificate_check.h"
#include "planning/checker/plan_run.h"

namespace perseus::checker {
namespace {

using testing::BruteForce;
using testing::Realized;
using testing::ShrinkingDice;

constexpr testing::InstanceLimits kTiny{3, 3, 4, 3000};

double energy_scale(const model::ComputationDag& dag, const Realized& realized) {
  return (realized.effective_energy + dag.total_blocking_power() * realized.time).value();
}

RC_GTEST_PROP(PlanRun, AgreesWithLongestPaths, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  PlanRunner runner(dag);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const model::Plan plan = testing::random_plan(dice, dag);
    const Realized expected = testing::realize(dag, plan);
    const PlanRun s = runner.run(plan);
    RC_ASSERT(s.makespan == expected.time);
    const double tolerance = 1e-12 * energy_scale(dag, expected);
    RC_ASSERT(std::abs((s.effective_energy - expected.effective_energy).value()) <= tolerance);
    RC_ASSERT(std::abs((s.energy - expected.effective_energy).value() -
                       (dag.total_blocking_power() * expected.time).value()) <= tolerance);
  }
}

RC_GTEST_PROP(PlanRun, NothingOverlapsAndEveryMessageArrives, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const Seconds switch_latency(dice.one_in(2) ? dice.real(0, 0.5) : 0);
  const PlanRun s = run_plan(dag, testing::random_plan(dice, dag), {switch_latency});
  for (const model::Dependency& d : dag.dependencies) RC_ASSERT(s.start[d.after] >= s.end[d.before] + d.latency);
  for (const std::vector<int>& order : dag.rank_order)
    for (std::size_t i = 1; i < order.size(); ++i) RC_ASSERT(s.start[order[i]] >= s.end[order[i - 1]]);
}

RC_GTEST_PROP(PlanRun, AClockThatIsHardlyLateHardlyMatters, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const model::Plan plan = testing::random_plan(dice, dag);
  const PlanRun on_time = run_plan(dag, plan);
  const PlanRun late = run_plan(dag, plan, {Seconds(1e-12)});
  RC_ASSERT(std::abs(late.makespan / on_time.makespan - 1) < 1e-6);
  RC_ASSERT(std::abs((late.energy - on_time.energy).value()) <= 1e-6 * on_time.energy.value());
}

RC_GTEST_PROP(Certificate, OfTheLinearProgramIsTight, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const PlanRun a = run_plan(dag, testing::random_plan(dice, dag));
  const auto optimum = testing::solve_relaxation(dag, a.makespan);
  RC_ASSERT(optimum.has_value());
  const Result<CertifiedLine> line = certify(dag, optimum->certificate);
  RC_ASSERT(line.ok());
  const double error = (line->at(a.makespan) - optimum->effective_energy).value();
  RC_ASSERT(std::abs(error) <= testing::lp_tolerance(line->fall, a.makespan, a.energy).value());
  RC_ASSERT(a.effective_energy.value() >= optimum->effective_energy.value() - 1e-6 * a.energy.value());
  RC_ASSERT(a.effective_energy.value() >= line->at(a.makespan).value() - 1e-12 * a.energy.value());
}

RC_GTEST_PROP(Certificate, AnyFlowIsBelowEveryPlan, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice, kTiny);
  model::BoundCertificate certificate;
  const double power = dag.total_blocking_power().value() + 1;
  std::vector<double> in(dag.computations.size());
  std::vector<double> out(dag.computations.size());
  for (const model::Dependency& d : dag.dependencies) {
    certificate.dependency_flow_w.push_back(power * dice.roll(0, 9));
    out[d.before] += certificate.dependency_flow_w.back();
    in[d.after] += certificate.dependency_flow_w.back();
  }
  for (std::size_t i = 0; i < in.size(); ++i)
    certificate.computation_flow_w.push_back(std::max(in[i], out[i]) + power * dice.roll(0, 2));
  const Result<CertifiedLine> line = certify(dag, certificate);
  RC_ASSERT(line.ok());
  const BruteForce brute_force(dag);
  for (const Realized& r : brute_force.pareto_set()) {
    const double rounding = 1e-12 * (std::abs(line->at_zero.value()) + energy_scale(dag, r));
    RC_ASSERT(line->at(r.time).value() <= r.effective_energy.value() + rounding);
  }
}

RC_GTEST_PROP(LinearProgram, IsBelowBruteForce, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice, kTiny);
  const BruteForce brute_force(dag);
  for (const Realized& r : brute_force.pareto_set()) {
    const auto optimum = testing::solve_relaxation(dag, r.time);
    RC_ASSERT(optimum.has_value());
    const double excess = (optimum->effective_energy - r.effective_energy).value() / energy_scale(dag, r);
    RC_ASSERT(excess <= 1e-6);
  }
}

}  // namespace
}  // namespace perseus::checker
