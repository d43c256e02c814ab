#include "evaluation/calibration/choose_timing.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

#include "base/result.h"
#include "evaluation/calibration/error_size.h"

namespace perseus::calibration {
namespace {

constexpr double kNegligibleLatency_s = 1e-3;

bool clearly_better(const TimingCandidate& b, const TimingCandidate& a) {
  return clearly_smaller(b.left_out_errors, a.left_out_errors);
}

/// Whether the data determine more than half of its latencies: the prior determines the others.
bool is_determined(const TimingCandidate& candidate) {
  const int latencies = candidate.links.num_latencies();
  int determined = 0;
  for (int k = 0; k < latencies; ++k) {
    const double stddev_s = candidate.error_inflation() * candidate.fit.stddev(k);
    determined += stddev_s < std::max(candidate.fit.unknowns[k], kNegligibleLatency_s) ? 1 : 0;
  }
  return 2 * determined > latencies;
}

/// The better of two candidates with equally many unknowns: the one with clearly smaller left-out errors, else the
/// more likely one of those without a queue.
bool preferred(const TimingCandidate& b, const TimingCandidate& a) {
  if (clearly_better(b, a)) return true;
  if (b.sending == Sending::queues) return false;
  return !clearly_better(a, b) && b.fit.objective < a.fit.objective;
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
    for (std::size_t p = fold; p < plans.size(); p += folds)
      errors[p] = pipeline.at(plans[p].durations, fit.unknowns).seconds / plans[p].measured_s - 1;
  }
  return errors;
}

}  // namespace

double TimingCandidate::left_out_mean() const { return mean_absolute(left_out_errors); }

double TimingCandidate::error_inflation() const {
  const double fitted = mean_absolute(fit.errors);
  return fitted > 0 ? std::max(1.0, left_out_mean() / fitted) : 1;
}

TimingChoice choose_timing(const TimedProblem& problem, const TimingOptions& options) {
  TimingChoice choice;
  const int ranks = problem.dag.num_ranks();
  const auto links_with = [&](LinkDetail detail) {
    const int half = ranks % 2 == 0 ? ranks / 2 : ranks;
    return LinkModel{detail, ranks, options.ranks_per_node > 0 ? options.ranks_per_node : half};
  };
  const auto has = [&](const LinkModel& links) {
    if (links.detail == LinkDetail::one)
      return options.ranks_per_node == 0 || links_with(LinkDetail::per_node).is_one();
    return !links.is_one();
  };
  std::map<Sending, int> simpler;
  std::optional<int> best;
  bool per_boundary_determined = false;
  for (const LinkDetail detail : options.details) {
    if (!has(links_with(detail))) continue;
    const LinkModel links = links_with(detail);
    // If the data do not determine half as many latencies, they do not determine twice as many.
    if (detail == LinkDetail::per_direction && !choice.candidates.empty() &&
        choice.candidates.back().links.detail == LinkDetail::per_boundary && !per_boundary_determined) {
      continue;
    }
    std::optional<int> best_of_detail;
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
      candidate.left_out_errors = left_out_errors(pipeline, problem.plans, candidate.fit, options);
      const int number = static_cast<int>(choice.candidates.size());
      simpler[sending] = number;
      choice.candidates.push_back(std::move(candidate));
      const auto& all = choice.candidates;
      if (!best_of_detail || preferred(all[number], all[*best_of_detail])) best_of_detail = number;
    }
    const TimingCandidate& candidate = choice.candidates[*best_of_detail];
    if (detail == LinkDetail::per_boundary) per_boundary_determined = is_determined(candidate);
    if (!best || (is_determined(candidate) && clearly_better(candidate, choice.candidates[*best])))
      best = best_of_detail;
  }
  PERSEUS_CHECK(best.has_value(), "every pipeline has one latency");
  choice.chosen = *best;
  return choice;
}

}  // namespace perseus::calibration
