// A timeline of any schedule, with any times, is understood as that schedule; causes put into it are found again.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

#include "evaluation/what_if/slowdown_causes.h"
#include "io/trace/read_trace.h"
#include "planning/model/make_schedule.h"
#include "tests/support/synthetic_timeline.h"

namespace perseus::what_if {
namespace {

using testing::kSyntheticNames;
using testing::synthetic_timeline;
using testing::SyntheticJob;

TracedJob understood(const SyntheticJob& job) {
  const auto names = trace::parse_trace_names(kSyntheticNames, "names");
  const auto timeline = trace::parse_trace({{"timeline", synthetic_timeline(job)}}, *names);
  return understand(timeline.value()).value();
}

/// Times with `noise`, the same for the same seed.
std::function<double(const model::Action&, int, int)> noisy(double noise, unsigned seed) {
  return [=, random = std::mt19937(seed)](const model::Action& a, int, int) mutable {
    const double base = a.instruction == model::Instruction::forward ? 0.1 : 0.2;
    return base * (1 + noise * (std::generate_canonical<double, 53>(random) - 0.5));
  };
}

RC_GTEST_PROP(TracedJobs, HaveTheScheduleThatRan, ()) {
  const std::string name = *rc::gen::elementOf(model::schedule_names());
  const int ranks = *rc::gen::inRange(2, 5), microbatches = ranks * *rc::gen::inRange(2, 5);
  const auto schedule = model::make_schedule(name, {ranks, microbatches, model::usual_chunks(name)});
  RC_PRE(schedule.ok());
  const int pipelines = *rc::gen::inRange(1, 4), steps = *rc::gen::inRange(1, 4);
  const TracedJob job = understood({*schedule, pipelines, steps, noisy(1, *rc::gen::arbitrary<unsigned>())});
  RC_ASSERT(job.pipelines == pipelines);
  RC_ASSERT(job.ranks == ranks);
  RC_ASSERT(job.stages == schedule->num_stages);
  RC_ASSERT(job.microbatches == microbatches);
  RC_ASSERT(static_cast<int>(job.steps.size()) == steps);
  RC_ASSERT(job.orders.size() == 1U);
  RC_ASSERT(job.schedule().ranks == schedule->ranks);
  RC_ASSERT(job.schedule().name != "generic");
  RC_ASSERT(replay_errors(job).computing_alone < 1e-6);
}

/// Ranks that compute on while they send do not wait for it; without sends nothing says that they do.
RC_GTEST_PROP(TracedJobs, TellWhetherSendersWait, ()) {
  using Sends = SyntheticJob::Sends;
  const Sends sends = *rc::gen::element(Sends::none, Sends::beside, Sends::waits);
  const int ranks = *rc::gen::inRange(2, 5);
  const auto schedule = model::make_schedule("1f1b", {ranks, 2 * ranks, 1});
  const double transfer_s = *rc::gen::inRange(1, 40) / 1000.0;
  const TracedJob job = understood({*schedule, 1, 2, noisy(0.1, *rc::gen::arbitrary<unsigned>()), transfer_s, sends});
  RC_ASSERT(job.senders_wait == (sends == Sends::waits));
  RC_ASSERT(replay_errors(job).with_links < 1e-6);
}

RC_GTEST_PROP(TracedJobs, NameTheSlowWorkerAndOnlyIt, ()) {
  const int pipelines = *rc::gen::inRange(2, 5), ranks = *rc::gen::inRange(2, 6);
  const TracedWorker slow{*rc::gen::inRange(0, pipelines), *rc::gen::inRange(0, ranks)};
  const double factor = 1 + *rc::gen::inRange(10, 150) / 100.0;
  auto times = noisy(0.04, *rc::gen::arbitrary<unsigned>());
  const auto schedule = model::make_schedule("1f1b", {ranks, 2 * ranks, 1});
  const TracedJob job = understood({*schedule, pipelines, 3, [=](const model::Action& a, int d, int step) mutable {
                                      return times(a, d, step) * (TracedWorker{d, a.stage} == slow ? factor : 1);
                                    }});
  const Slowdown slowdown = explain(job);
  RC_ASSERT(!slowdown.causes.empty());
  RC_ASSERT(slowdown.causes.front().kind == CauseKind::worker);
  RC_ASSERT(slowdown.causes.front().worker == slow);
  RC_ASSERT(std::abs(slowdown.causes.front().factor / factor - 1) < 0.03);
  for (std::size_t c = 1; c < slowdown.causes.size(); ++c) {
    RC_ASSERT(slowdown.causes[c].kind != CauseKind::worker);
    RC_ASSERT(slowdown.causes[c].kind != CauseKind::drift);
    RC_ASSERT(slowdown.causes[c].kind != CauseKind::long_sequences);
  }
}

RC_GTEST_PROP(TracedJobs, BlameNoWorkerForLongSequencesOrUnequalStages, ()) {
  const int pipelines = *rc::gen::inRange(2, 5), ranks = *rc::gen::inRange(3, 6);
  const int slow_stage = *rc::gen::inRange(0, ranks), long_pipeline = *rc::gen::inRange(0, pipelines);
  auto times = noisy(0.04, *rc::gen::arbitrary<unsigned>());
  const auto schedule = model::make_schedule("1f1b", {ranks, 2 * ranks, 1});
  const TracedJob job = understood({*schedule, pipelines, 3, [=](const model::Action& a, int d, int step) mutable {
                                      const double length = d == long_pipeline ? 1.5 : 1 + 0.3 * (a.microbatch % 3);
                                      return times(a, d, step) * length * (a.stage == slow_stage ? 1.6 : 1);
                                    }});
  const Slowdown slowdown = explain(job);
  bool names_stage = false, names_sequences = false;
  for (const SlowdownCause& cause : slowdown.causes) {
    RC_ASSERT(cause.kind != CauseKind::worker);
    RC_ASSERT(cause.kind != CauseKind::drift);
    names_sequences |= cause.kind == CauseKind::long_sequences;
    if (cause.kind == CauseKind::stage) RC_ASSERT(cause.stage == slow_stage);
    names_stage |= cause.kind == CauseKind::stage;
  }
  RC_ASSERT(names_stage);
  RC_ASSERT(names_sequences);
}

RC_GTEST_PROP(TracedJobs, NameTheDriftAndNoWorker, ()) {
  const int pipelines = *rc::gen::inRange(1, 4), ranks = *rc::gen::inRange(1, 5), steps = *rc::gen::inRange(5, 12);
  const double growth = *rc::gen::inRange(10, 60) / 100.0;
  auto times = noisy(0.04, *rc::gen::arbitrary<unsigned>());
  const auto schedule = model::make_schedule("1f1b", {ranks, 2 * ranks, 1});
  const TracedJob job = understood({*schedule, pipelines, steps, [=](const model::Action& a, int d, int step) mutable {
                                      return times(a, d, step) * (1 + growth * step / (steps - 1));
                                    }});
  const Slowdown slowdown = explain(job);
  RC_ASSERT(!slowdown.causes.empty());
  RC_ASSERT(slowdown.causes.front().kind == CauseKind::drift);
  RC_ASSERT(std::abs(slowdown.causes.front().factor / (1 + growth) - 1) < 0.03);
  RC_ASSERT(std::abs(slowdown.causes.front().share - 1) < 0.25);
  for (const SlowdownCause& cause : slowdown.causes) {
    RC_ASSERT(cause.kind != CauseKind::worker);
    RC_ASSERT(cause.kind != CauseKind::stage);
    RC_ASSERT(cause.kind != CauseKind::long_sequences);
  }
}

RC_GTEST_PROP(TracedJobs, NameLongSequencesOfAnyLengthsFirst, ()) {
  const int pipelines = *rc::gen::inRange(1, 4), ranks = *rc::gen::inRange(2, 5), steps = *rc::gen::inRange(3, 8);
  const int microbatches = 4 * ranks;
  const auto seed = *rc::gen::arbitrary<unsigned>();
  auto times = noisy(0.04, seed);
  std::mt19937 random(seed);
  std::vector<double> lengths(static_cast<std::size_t>(steps * pipelines * microbatches));
  for (double& length : lengths) length = 1 + 0.8 * std::generate_canonical<double, 53>(random);
  const auto schedule = model::make_schedule("1f1b", {ranks, microbatches, 1});
  const TracedJob job =
      understood({*schedule, pipelines, steps, [=](const model::Action& a, int d, int step) mutable {
                    return times(a, d, step) * lengths[(step * pipelines + d) * microbatches + a.microbatch];
                  }});
  const Slowdown slowdown = explain(job);
  RC_ASSERT(!slowdown.causes.empty());
  RC_ASSERT(slowdown.causes.front().kind == CauseKind::long_sequences);
  for (const SlowdownCause& cause : slowdown.causes) {
    RC_ASSERT(cause.kind != CauseKind::worker);
    RC_ASSERT(cause.kind != CauseKind::stage);
  }
}

RC_GTEST_PROP(TracedJobs, NameNeitherWhereRanksVaryByThemselves, ()) {
  const int pipelines = *rc::gen::inRange(1, 4), ranks = *rc::gen::inRange(1, 5), steps = *rc::gen::inRange(1, 8);
  const auto schedule = model::make_schedule("1f1b", {ranks, 4 * ranks, 1});
  const TracedJob job = understood({*schedule, pipelines, steps, noisy(0.5, *rc::gen::arbitrary<unsigned>())});
  for (const SlowdownCause& cause : explain(job).causes) {
    RC_ASSERT(cause.kind != CauseKind::drift);
    RC_ASSERT(cause.kind != CauseKind::long_sequences);
  }
}

RC_GTEST_PROP(TracedJobs, ReplayTransfers, ()) {
  const int ranks = *rc::gen::inRange(2, 6);
  const auto schedule = model::make_schedule("1f1b", {ranks, 3 * ranks, 1});
  const TracedJob job = understood({*schedule, 2, 2, noisy(0.5, *rc::gen::arbitrary<unsigned>()), 0.01});
  RC_ASSERT(job.has_transfers);
  RC_ASSERT(replay_errors(job).with_links < 1e-6);
  RC_ASSERT(replay_errors(job).computing_alone > 1e-3);
}

}  // namespace
}  // namespace perseus::what_if
