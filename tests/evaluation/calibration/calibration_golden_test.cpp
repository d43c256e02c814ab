// Calibration on published measurements of real runs: accuracy of predictions for held-out plans.
#include <gtest/gtest.h>

#include <algorithm>

#include "evaluation/calibration/calibrate.h"
#include "io/formats/profile_csv.h"
#include "io/formats/run_trace_csv.h"
#include "planning/model/build_dag.h"
#include "planning/planner/exact.h"
#include "tests/support/shared_data.h"

namespace perseus::formats {
namespace {

struct Workload {
  const char* name;
  double time_mean;    ///< of |relative error|, plans predicted from others' computation times
  double replay_mean;  ///< the same with their own computation times
  double energy_rms;
};

class MeasuredRuns : public ::testing::TestWithParam<Workload> {
 protected:
  static Result<model::RunTrace> trace(const std::filesystem::path& data) {
    const std::string base = (data / "measured" / GetParam().name).string();
    return read_run_trace(base + ".ops.csv.gz", base + ".iters.csv");
  }
};

TEST_P(MeasuredRuns, PlansLeftOutArePredicted) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const auto runs = trace(data);
  ASSERT_TRUE(runs) << runs.error().message;
  const auto predictions = calibration::cross_validate(*runs, 5);
  ASSERT_TRUE(predictions) << predictions.error().message;
  const calibration::PredictionErrors errors = calibration::errors_of(*predictions);
  RecordProperty("time_mean_pct", std::to_string(100 * errors.time_mean));
  RecordProperty("replay_mean_pct", std::to_string(100 * errors.replay_mean));
  RecordProperty("energy_rms_pct", std::to_string(100 * errors.energy_rms));
  EXPECT_LT(errors.time_mean, GetParam().time_mean);
  EXPECT_LT(errors.replay_mean, GetParam().replay_mean);
  EXPECT_LT(errors.energy_rms, GetParam().energy_rms);
  // Decision 43: plans near T_max, which make paths equally long, are hardly later against the model than maximum
  // clock.
  const auto mean_beyond = [&](const std::string& kind, double longest_s) {
    double sum = 0, count = 0;
    for (const calibration::Prediction& p : *predictions) {
      if (runs->plans[p.plan].kind != kind || p.measured_time.value() > longest_s) continue;
      sum -= p.replay_error();
      count += 1;
    }
    return sum / count;
  };
  const double near_s = 1.02 * runs->plans[0].iteration_time.value();
  EXPECT_EQ(runs->plans[0].kind, "warmup");
  EXPECT_LT(mean_beyond("perseus", near_s) - mean_beyond("warmup", 1e9), 2e-3);
}

TEST_P(MeasuredRuns, TheProfileCanBePlannedForAndBeatsThePlansThatRan) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const auto runs = trace(data);
  ASSERT_TRUE(runs) << runs.error().message;
  std::vector<int> everything(runs->plans.size());
  for (std::size_t p = 0; p < everything.size(); ++p) everything[p] = static_cast<int>(p);
  const auto calibration = calibration::calibrate(*runs, everything);
  ASSERT_TRUE(calibration) << calibration.error().message;
  const model::Profile fitted = calibration::make_profile(*calibration, *runs, everything);
  const auto profile = parse_profile_csv(format_profile_csv(fitted), "profile.csv");
  ASSERT_TRUE(profile) << profile.error().message;
  const auto dag = model::build_dag(*profile, calibration->schedule, calibration->costs());
  ASSERT_TRUE(dag) << dag.error().message;
  const model::Frontier frontier = planner::plan_exact(*dag);
  for (const calibration::Prediction& ran : calibration::predict(*calibration, *runs, everything)) {
    const auto ours = std::ranges::find_if(
        frontier.points, [&](const model::FrontierPoint& p) { return p.time <= ran.predicted_time * (1 + 1e-12); });
    ASSERT_NE(ours, frontier.points.end()) << "a published plan is faster than our fastest";
    const Joules waited = ours->effective_energy + dag->total_blocking_power() * ran.predicted_time;
    EXPECT_LE(waited / ran.predicted_energy, 1 + 2e-3) << "plan " << runs->plans[ran.plan].id;
  }
}

INSTANTIATE_TEST_SUITE_P(Published, MeasuredRuns,
                         ::testing::Values(Workload{"A100_gpt3-xl_pp4", 1e-3, 5e-4, 5e-3},
                                           Workload{"A100_bert-huge-uncased_pp4", 1.2e-3, 1e-3, 5e-3},
                                           Workload{"A40_bloom-3b_pp8", 1e-3, 1e-3, 5e-3},
                                           Workload{"A40_wide-resnet101_8_pp8", 2e-3, 3e-3, 5e-3}),
                         [](const auto& workload) {
                           std::string name = workload.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace perseus::formats
