#include "evaluation/calibration/choose_timing.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/result.h"
#include "evaluation/calibration/least_squares.h"

namespace perseus::calibration {
namespace {

bool clearly_better(const TimingCandidate& b, const TimingCandidate& a) {
  return clearly_smaller(b.left_out_errors, a.left_out_errors);
}

/// The more likely one; one with queues, which costs a DAG more, only if it predicts clearly better.
bool preferred(const TimingCandidate& b, const TimingCandidate& a) {
  if ((a.sending == Sending::queues) != (b.sending == Sending::queues)) {
    return b.sending == Sending::queues ? clearly_better(b, a) : !clearly_better(a, b);
  }
  return b.penalized() < a.penalized();
}

/// The unknowns of a simpler candidate, for a pipeline with more latencies.
std::vector<double> as_start(const std::vector<double>& unknowns, const LinkModel& simpler,
                             const TimedPipeline& pipeline, const LinkModel& links) {
  std::vector<double> start(pipeline.num_unknowns());
  for (int b = 0; b < links.num_boundaries(); ++b) {
    start[links.latency_of(b, b + 1)] = unknowns[simpler.latency_of(b, b + 1)];
    start[links.latency_of(b + 1, b)] = unknowns[simpler.latency_of(b + 1, b)];
  }
  std::copy(unknowns.begin() + simpler.num_latencies(), unknowns.end(), start.begin() + links.num_latencies());
  return start;
}

std::vector<TimedPlan> part_of(const std::vector<TimedPlan>& plans, int fold, int folds, bool left_out) {
  std::vector<TimedPlan> part;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    if ((static_cast<int>(p) % folds == fold) == left_out) part.push_back(plans[p]);
  }
  return part;
}

std::vector<double> left_out_errors(TimedPipeline& pipeline, const std::vector<TimedPlan>& plans,
                                    const TimingFit& fitted_to_all, const TimingOptions& options) {
  const int folds = std::min(options.folds, static_cast<int>(plans.size()));
  std::vector<double> errors(plans.size());
  if (folds < 2) return errors;
  for (int fold = 0; fold < folds; ++fold) {
    const std::vector<TimedPlan> learned = part_of(plans, fold, folds, false);
    std::vector<double> equal = fitted_to_all.unknowns;
    double mean_s = 0;
    for (int k = 0; k < pipeline.num_latencies(); ++k) mean_s += equal[k] / pipeline.num_latencies();
    std::fill_n(equal.begin(), pipeline.num_latencies(), mean_s);
    auto starts = fitted_to_all.ends;
    starts.push_back(equal);
    const TimingFit fit = fit_timing(pipeline, learned, starts, options.errors);
    const std::vector<TimedPlan> others = part_of(plans, fold, folds, true);
    const std::vector<double> predicted_s = pipeline.makespans(others, fit.unknowns);
    for (std::size_t p = 0; p < others.size(); ++p)
      errors[fold + p * folds] = predicted_s[p] / others[p].measured_s - 1;
  }
  return errors;
}

}  // namespace

double TimingCandidate::left_out_mean() const { return mean_absolute(left_out_errors); }

double TimingCandidate::error_inflation() const {
  const double fitted = mean_absolute(fit.errors);
  return fitted > 0 ? std::max(1.0, left_out_mean() / fitted) : 1;
}

double TimingCandidate::penalized() const {
  return fit.objective + static_cast<double>(fit.unknowns.size()) * std::log(static_cast<double>(fit.errors.size()));
}

TimingChoice choose_timing(const TimedProblem& problem, const TimingOptions& options) {
  TimingChoice choice;
  const int ranks = problem.dag.num_ranks();
  const int ranks_per_node = ranks % 2 == 0 ? ranks / 2 : ranks;
  std::map<Sending, int> simpler;
  std::optional<int> best;
  for (const LinkDetail detail : options.details) {
    const LinkModel links{detail, ranks, ranks_per_node};
    if (detail != LinkDetail::one && links.is_one()) continue;
    // Where a latency per boundary is more than the data tell, so are two.
    if (detail == LinkDetail::per_direction && best &&
        choice.candidates[*best].links.detail != LinkDetail::per_boundary) {
      continue;
    }
    for (const Sending sending : options.sending) {
      TimedPipeline pipeline(problem.dag, links, sending);
      std::vector<std::vector<double>> starts;
      if (const auto before = simpler.find(sending); before != simpler.end()) {
        const TimingCandidate& known = choice.candidates[before->second];
        for (const std::vector<double>& end : known.fit.ends)
          starts.push_back(as_start(end, known.links, pipeline, links));
      }
      // The ends of the fit per boundary are enough starts for both directions.
      if (starts.empty() || detail != LinkDetail::per_direction) {
        std::ranges::move(starts_for(pipeline, problem.plans), std::back_inserter(starts));
      }
      TimingCandidate candidate{links, sending, fit_timing(pipeline, problem.plans, starts, options.errors), {}};
      if (detail == LinkDetail::per_boundary && options.errors == ErrorModel::student_t)
        try_other_latencies(pipeline, problem.plans, candidate.fit);
      candidate.left_out_errors = left_out_errors(pipeline, problem.plans, candidate.fit, options);
      const int number = static_cast<int>(choice.candidates.size());
      simpler[sending] = number;
      choice.candidates.push_back(std::move(candidate));
      if (!best || preferred(choice.candidates[number], choice.candidates[*best])) best = number;
    }
  }
  PERSEUS_CHECK(best.has_value(), "every pipeline has one latency");
  choice.chosen = *best;
  return choice;
}

}  // namespace perseus::calibration
