// The steps of two production jobs as reports to a server: it finds the slow worker of one and lets the other pipelines
// wait less energetically; it sees no straggler in the other. Timelines: "Understanding Stragglers in Large Model
// Training Using What-if Analysis" (OSDI 2025).
#include <gtest/gtest.h>

#include <string>

#include "evaluation/what_if/replay_step.h"
#include "evaluation/what_if/slowdown_causes.h"
#include "io/formats/profile_csv.h"
#include "io/trace/read_trace.h"
#include "tests/server/scenario/in_process.h"
#include "tests/support/shared_data.h"

namespace perseus::testing {
namespace {

what_if::TracedJob traced(const std::filesystem::path& data, const std::string& name) {
  const auto timeline = trace::read_trace({data / "traces" / ("timeline-" + name + ".json.gz")}, {});
  return what_if::understand(timeline.value()).value();
}

/// The job's usual times on a GPU that at half the clock takes 1.6 times as long with 0.7 of the energy.
std::string profile_csv_of(const what_if::TracedJob& job) {
  model::Profile profile;
  profile.accelerators.assign(job.stages, 1);
  for (const what_if::TypeTimes& type : what_if::explain(job).types) {
    model::ProfileEntry entry{type.stage, std::string(model::name_of(type.instruction)), {}};
    for (int step = 0; step < 8; ++step) {
      const double slower = step / 7.0;
      entry.measurements.push_back({Megahertz(1400 - 100 * step),
                                    Seconds(type.usual_s * (1 + 0.6 * slower)),
                                    Joules(400 * type.usual_s * (1 - 0.3 * slower)),
                                    {},
                                    {}});
    }
    profile.entries.push_back(std::move(entry));
  }
  return formats::format_profile_csv(profile);
}

/// A traced job on a server that detects stragglers. Its ranks report every step.
class ReportedJob {
 public:
  explicit ReportedJob(const what_if::TracedJob& traced) : traced_(traced) {
    jobs::NamedProfile profile;
    profile.name = "traced";
    profile.profile_csv = profile_csv_of(traced);
    profile.shape.microbatches = traced.microbatches;
    profile.shape.blocking_power = Watts(70);
    EXPECT_TRUE(target_.put_profile(profile).ok());
    jobs::RegisterJob request;
    request.degrees = {traced.pipelines, traced.ranks, 1};
    request.profile = "traced";
    request.detect_stragglers = true;
    job_ = target_.register_job(request).value().job;
    for_each_rank(
        [&](int rank, int) { EXPECT_TRUE(target_.register_rank(rank_of(job_, request.degrees, rank)).ok()); });
  }

  /// Every rank reports the step's time of its pipeline, as long as the pipeline takes at the clocks of its plan.
  void report(int step) {
    const jobs::JobView now = view();
    target_.go_to(since_start_s_ += traced_.steps[step].time_s());
    for_each_rank([&](int rank, int pipeline) {
      jobs::ReportIterations request;
      request.job = job_;
      request.rank = rank;
      request.last_iteration = next_;
      request.plan_version = now.plan->version;
      const double planned = now.pipelines[pipeline].time / *now.plan->t_min;
      request.iteration_time = {Seconds(what_if::measured_span(traced_.steps[step].pipelines[pipeline]) * planned)};
      request.iteration_energy = {now.pipelines[pipeline].energy / traced_.ranks};
      const Status reported = target_.report_iterations(request);
      EXPECT_TRUE(reported) << reported.error().message;
    });
    ++next_;
    target_.settle();
  }
  jobs::JobView view() { return target_.job(job_).value(); }

 private:
  template <class Visit>
  void for_each_rank(Visit visit) {
    for (int d = 0; d < traced_.pipelines; ++d) {
      for (int r = 0; r < traced_.ranks; ++r) visit(d * traced_.ranks + r, d);
    }
  }

  const what_if::TracedJob& traced_;
  InProcess target_;
  std::string job_;
  std::int64_t next_ = 0;
  double since_start_s_ = 0;
};

TEST(TracedJobOnAServer, TheSlowPipelineIsFoundWithinTenStepsAndTheOthersSaveEnergy) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const what_if::TracedJob traced_job = traced(data, "AR");
  ReportedJob job(traced_job);
  const jobs::JobView before = job.view();
  ASSERT_TRUE(before.plan);
  int found = -1;
  for (int step = 0; step < static_cast<int>(traced_job.steps.size()); ++step) {
    job.report(step);
    const jobs::JobView now = job.view();
    if (!now.stragglers.empty() && found < 0) found = step;
    for (const auto& straggler : now.stragglers) EXPECT_EQ(straggler.pipeline, 0) << "step " << step;
  }
  EXPECT_GE(found, 0);
  EXPECT_LT(found, 10);
  const jobs::JobView after = job.view();
  ASSERT_EQ(after.stragglers.size(), 1U);
  EXPECT_TRUE(after.stragglers[0].detected);
  EXPECT_NEAR(after.stragglers[0].degree, 2.05, 0.15);  // 46.3 s as run, 23.5 s ideal
  EXPECT_NEAR(after.pipelines[0].time.value(), before.pipelines[0].time.value(), 1e-9);
  for (int d = 1; d < 4; ++d) {
    EXPECT_FALSE(after.pipelines[d].straggler);
    EXPECT_LT(after.pipelines[d].energy, 0.85 * before.pipelines[d].energy);
    EXPECT_LE(after.pipelines[d].time, *after.plan->t_straggler);
  }
  EXPECT_LE(after.plan->version, before.plan->version + 3);  // no plan for every outlier
}

TEST(TracedJobOnAServer, AnUnequalLastStageIsNoStraggler) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const what_if::TracedJob traced_job = traced(data, "ST");
  ReportedJob job(traced_job);
  for (int step = 0; step < static_cast<int>(traced_job.steps.size()); ++step) {
    job.report(step);
    EXPECT_TRUE(job.view().stragglers.empty()) << "step " << step;
  }
}

}  // namespace
}  // namespace perseus::testing
