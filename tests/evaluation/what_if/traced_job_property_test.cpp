// A timeline of any schedule, with any times, is understood as that schedule; causes put into it are found again.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>

#include "evaluation/what_if/replay_step.h"
#include "evaluation/what_if/slowdown_causes.h"
#include "io/trace/read_trace.h"
#include "planning/model/make_schedule.h"
#include "tests/support/synthetic_timeline.h"

namespace perseus::what_if {
namespace {

using testing::kSyntheticNames;
using testing::synthetic_timeline;
using testing::SyntheticJob;

trace::TraceSpans timeline_of(const SyntheticJob& job) {
  const auto names = trace::parse_trace_names(kSyntheticNames, "names");
  return trace::parse_trace({{"timeline", synthetic_timeline(job)}}, *names).value();
}

TracedJob understood(const SyntheticJob& job) { return understand(timeline_of(job)).value(); }

/// The causes of a kind.
std::vector<SlowdownCause> causes_of(const Slowdown& slowdown, CauseKind kind) {
  std::vector<SlowdownCause> all;
  std::ranges::copy_if(slowdown.causes, std::back_inserter(all), [&](const auto& c) { return c.kind == kind; });
  return all;
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
  const double growth = *rc::gen::inRange(15, 60) / 100.0;
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
    RC_ASSERT(cause.kind != CauseKind::pipeline);
    RC_ASSERT(cause.kind != CauseKind::worker);
    RC_ASSERT(cause.kind != CauseKind::stage);
  }
}

/// A replica on slower GPUs or a slower node: no long sequences, no slow worker.
RC_GTEST_PROP(TracedJobs, NameThePipelineThatIsSlowAsAWhole, ()) {
  const int pipelines = *rc::gen::inRange(2, 5), ranks = *rc::gen::inRange(2, 6);
  const int slow = *rc::gen::inRange(0, pipelines);
  const double factor = 1 + *rc::gen::inRange(10, 100) / 100.0;
  auto times = noisy(0.04, *rc::gen::arbitrary<unsigned>());
  const auto schedule = model::make_schedule("1f1b", {ranks, 2 * ranks, 1});
  const Slowdown slowdown =
      explain(understood({*schedule, pipelines, 4, [=](const model::Action& a, int d, int step) mutable {
                            return times(a, d, step) * (d == slow ? factor : 1);
                          }}));
  RC_ASSERT(!slowdown.causes.empty());
  const SlowdownCause& cause = slowdown.causes.front();
  RC_ASSERT(cause.kind == CauseKind::pipeline);
  RC_ASSERT(cause.worker == (TracedWorker{slow, -1}));
  RC_ASSERT(std::abs(cause.factor / factor - 1) < 0.03);
  for (const CauseKind other : {CauseKind::worker, CauseKind::stage, CauseKind::long_sequences, CauseKind::drift})
    RC_ASSERT(causes_of(slowdown, other).empty());
  RC_ASSERT(causes_of(slowdown, CauseKind::pipeline).size() == 1U);
}

/// Each is hidden while the other is slow.
RC_GTEST_PROP(TracedJobs, NameBothOfTwoSlowWorkers, ()) {
  const int pipelines = *rc::gen::inRange(4, 7), ranks = *rc::gen::inRange(3, 6);
  const TracedWorker one{0, *rc::gen::inRange(0, ranks)};
  const TracedWorker other{*rc::gen::inRange(1, pipelines), *rc::gen::inRange(0, ranks)};
  const double factor = 1.3 + *rc::gen::inRange(0, 20) / 100.0;
  auto times = noisy(0.02, *rc::gen::arbitrary<unsigned>());
  const auto schedule = model::make_schedule("1f1b", {ranks, 2 * ranks, 1});
  const Slowdown slowdown =
      explain(understood({*schedule, pipelines, 3, [=](const model::Action& a, int d, int step) mutable {
                            const TracedWorker w{d, a.stage};
                            return times(a, d, step) * (w == one ? 1.5 : w == other ? factor : 1);
                          }}));
  const auto workers = causes_of(slowdown, CauseKind::worker);
  RC_ASSERT(workers.size() == 2U);
  for (const auto& [worker, by] : {std::pair(one, 1.5), std::pair(other, factor)}) {
    const auto named = std::ranges::find(workers, worker, &SlowdownCause::worker);
    RC_ASSERT(named != workers.end());
    RC_ASSERT(std::abs(named->factor / by - 1) < 0.03);
    RC_ASSERT(named->share > 0.3);
  }
}

RC_GTEST_PROP(TracedJobs, BlameNobodyForAFastWorker, ()) {
  const int pipelines = *rc::gen::element(1, 3, 4), ranks = *rc::gen::inRange(2, 6);
  const TracedWorker fast{*rc::gen::inRange(0, pipelines), *rc::gen::inRange(0, ranks)};
  auto times = noisy(0.02, *rc::gen::arbitrary<unsigned>());
  const auto schedule = model::make_schedule("1f1b", {ranks, 2 * ranks, 1});
  RC_PRE(pipelines > 1 || ranks > 2);
  const Slowdown slowdown =
      explain(understood({*schedule, pipelines, 3, [=](const model::Action& a, int d, int step) mutable {
                            return times(a, d, step) * (TracedWorker{d, a.stage} == fast ? 0.6 : 1);
                          }}));
  RC_ASSERT(causes_of(slowdown, CauseKind::worker).empty());
  RC_ASSERT(causes_of(slowdown, CauseKind::pipeline).empty());
  RC_ASSERT(causes_of(slowdown, CauseKind::stage).empty());
}

RC_GTEST_PROP(TracedJobs, NameTheStepOfAWarmUp, ()) {
  const int pipelines = *rc::gen::inRange(1, 4), ranks = *rc::gen::inRange(2, 5), steps = *rc::gen::inRange(3, 8);
  const int slow = *rc::gen::inRange(0, steps);
  const bool first_alone = *rc::gen::arbitrary<bool>();  // compiles: the first microbatch is 50 times as long
  auto times = noisy(0.04, *rc::gen::arbitrary<unsigned>());
  const auto schedule = model::make_schedule("1f1b", {ranks, 2 * ranks, 1});
  const auto seconds = [=](const model::Action& a, int d, int step) mutable {
    const double by = first_alone ? (a.microbatch == 0 ? 50 : 1) : 10;
    return times(a, d, step) * (step == slow ? by : 1);
  };
  const Slowdown slowdown = explain(understood({*schedule, pipelines, steps, seconds}));
  RC_ASSERT(!slowdown.causes.empty());
  const SlowdownCause& cause = slowdown.causes.front();
  RC_ASSERT(cause.kind == CauseKind::steps);
  RC_ASSERT(cause.steps == std::vector<int>{slow});
  RC_ASSERT(cause.factor > 5);
  RC_ASSERT(slowdown.ideal_s < 1.02 * cause.without_s);
  RC_ASSERT(slowdown.causes.size() == 1U);
}

RC_GTEST_PROP(TracedJobs, NameRankAndStepOfWhatIsSlowAtTimes, ()) {
  const int pipelines = *rc::gen::inRange(2, 4), ranks = *rc::gen::inRange(3, 5), steps = 8;
  const TracedWorker slow{*rc::gen::inRange(0, pipelines), *rc::gen::inRange(0, ranks)};
  const int slow_step = *rc::gen::inRange(0, steps);
  auto times = noisy(0.02, *rc::gen::arbitrary<unsigned>());
  const auto schedule = model::make_schedule("1f1b", {ranks, 2 * ranks, 1});
  const Slowdown slowdown =
      explain(understood({*schedule, pipelines, steps, [=](const model::Action& a, int d, int step) mutable {
                            const bool is_it = TracedWorker{d, a.stage} == slow && step == slow_step;
                            return times(a, d, step) * (is_it ? 1.8 : 1);
                          }}));
  RC_ASSERT(!slowdown.causes.empty());
  const SlowdownCause& cause = slowdown.causes.front();
  RC_ASSERT(cause.kind == CauseKind::variation);
  RC_ASSERT(cause.worker == slow);
  RC_ASSERT(cause.stage == slow.rank);
  RC_ASSERT(cause.steps == std::vector<int>{slow_step});
}

RC_GTEST_PROP(TracedJobs, NameTheSlowLink, ()) {
  const int pipelines = *rc::gen::inRange(2, 4), ranks = *rc::gen::inRange(3, 5);
  const auto schedule = model::make_schedule("1f1b", {ranks, 2 * ranks, 1});
  TracedJob job = understood({*schedule, pipelines, 3, noisy(0.02, *rc::gen::arbitrary<unsigned>()), 0.002});
  const TracedLink slow{*rc::gen::inRange(0, ranks - 1), *rc::gen::arbitrary<bool>(), *rc::gen::inRange(-1, pipelines)};
  for (TracedStep& step : job.steps) {
    for (int d = 0; d < pipelines; ++d) {
      if (slow.pipeline >= 0 && d != slow.pipeline) continue;
      for (TracedOp& op : step.pipelines[d].ranks[slow.boundary + (slow.forward ? 1 : 0)].ops) {
        const bool forward = op.action.instruction == model::Instruction::forward;
        if (forward == slow.forward && op.receive_s > 0) op.receive_s = 0.1;
      }
    }
  }
  const auto links = causes_of(explain(job), CauseKind::links);
  RC_ASSERT(links.size() == 1U);
  RC_ASSERT(links.front().link == slow);
}

/// Files of different hosts: a pipeline's or a rank's clock is late or early. Ends of collectives show it.
RC_GTEST_PROP(TracedJobs, AlignClocks, ()) {
  const int pipelines = *rc::gen::inRange(2, 5), ranks = *rc::gen::inRange(2, 5);
  const TracedWorker off{*rc::gen::inRange(0, pipelines), *rc::gen::inRange(-1, ranks)};
  const double late_s = *rc::gen::element(-1, 1) * *rc::gen::inRange(20, 2000) / 1000.0;
  const bool has_collectives = *rc::gen::arbitrary<bool>() || off.rank >= 0;
  const auto schedule = model::make_schedule("1f1b", {ranks, 2 * ranks, 1});
  trace::TraceSpans timeline = timeline_of({*schedule, pipelines, 3, noisy(0.02, *rc::gen::arbitrary<unsigned>())});
  if (!has_collectives) std::erase_if(timeline.spans, [](const auto& s) { return !is_compute(s.kind); });
  const TracedJob before = understand(timeline).value();
  RC_ASSERT(before.clocks.empty());
  for (trace::Span& span : timeline.spans) {
    const trace::ThreadPlace& place = timeline.threads[span.thread];
    if (place.data == off.pipeline && (off.rank < 0 || place.rank == off.rank)) span.start_s += late_s;
  }
  const TracedJob job = understand(timeline).value();
  const double least = (has_collectives ? 0.003 : 0.03) * before.steps.front().time_s();
  if (std::abs(late_s) < least) return;
  RC_ASSERT(!job.clocks.empty());
  const ClockOffset &first = job.clocks.front(), &last = job.clocks.back();
  RC_ASSERT(first.aligned == (has_collectives && (pipelines > 2 || off.rank < 0)));
  RC_ASSERT(std::abs((last.pipeline == off.pipeline ? last : first).late_s) > 0.9 * std::abs(late_s) - 0.01);
  if (!has_collectives || !first.aligned) return;
  for (std::size_t s = 0; s < job.steps.size(); ++s)
    RC_ASSERT(std::abs(job.steps[s].time_s() - before.steps[s].time_s()) < 1e-3);
}

RC_GTEST_PROP(TracedJobs, NameNeitherWhereRanksVaryByThemselves, ()) {
  const int pipelines = *rc::gen::inRange(1, 4), ranks = *rc::gen::inRange(1, 5), steps = *rc::gen::inRange(1, 8);
  const auto schedule = model::make_schedule("1f1b", {ranks, 4 * ranks, 1});
  const TracedJob job = understood({*schedule, pipelines, steps, noisy(0.5, *rc::gen::arbitrary<unsigned>())});
  for (const SlowdownCause& cause : explain(job).causes) {
    RC_ASSERT(cause.kind != CauseKind::drift);
    RC_ASSERT(cause.kind != CauseKind::long_sequences);
    RC_ASSERT(cause.kind != CauseKind::pipeline);
    RC_ASSERT(cause.kind != CauseKind::steps);
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
