#include "evaluation/calibration/choose_timing.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <span>
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

constexpr double kAlmostAsLikely = 10;  // in -2 log likelihood with a penalty per unknown: strong evidence beyond
constexpr double kWithinBounds = 4;     // likewise, for a value of one unknown: 95 %
constexpr double kLeastLatency_s = 1e-3;
constexpr std::size_t kMostRaised = 3;  // optima
constexpr int kHalvings = 5;            // of the ratio between a latency and one that is too large

class Raise {
 public:
  Raise(const TimedProblem& problem, const TimingCandidate& candidate)
      : problem_(problem),
        candidate_(candidate),
        pipeline_(problem.dag, candidate.links, candidate.sending),
        most_(candidate.fit.objective + kWithinBounds * std::pow(candidate.error_inflation(), 2)) {}

  /// The optimum near a point, if with it the runs are about as likely.
  std::optional<PinnedFit> from(const std::vector<double>& point) {
    PinnedFit fit = fit_pinned(pipeline_, problem_.plans, candidate_.fit, point, std::vector<char>(point.size()));
    return is_allowed(fit) ? std::optional(std::move(fit)) : std::nullopt;
  }

  /// The largest latency of a boundary with which the runs are about as likely; pins it.
  PinnedFit raise(const PinnedFit& from, std::vector<char>& pinned, int boundary) {
    pinned[boundary] = 1;
    if (from.unknowns[boundary] >= kSlowestLink_s) return from;
    PinnedFit best = at(from, pinned, boundary, kSlowestLink_s);
    if (is_allowed(best)) return best;
    best = from;
    double low_s = from.unknowns[boundary], high_s = kSlowestLink_s;
    for (int step = 0; step < kHalvings; ++step) {
      const double middle_s = std::sqrt(std::max(low_s, kLeastLatency_s) * high_s);
      if (middle_s <= low_s) break;
      PinnedFit found = at(best, pinned, boundary, middle_s);
      if (is_allowed(found)) {
        best = std::move(found);
        low_s = middle_s;
      } else {
        high_s = middle_s;
      }
    }
    return best;
  }

 private:
  PinnedFit at(const PinnedFit& from, const std::vector<char>& pinned, int boundary, double latency_s) {
    std::vector<double> start = from.unknowns;
    start[boundary] = latency_s;
    return fit_pinned(pipeline_, problem_.plans, candidate_.fit, std::move(start), pinned);
  }
  [[nodiscard]] bool is_allowed(const PinnedFit& fit) const { return fit.objective <= most_; }

  const TimedProblem& problem_;
  const TimingCandidate& candidate_;
  TimedPipeline pipeline_;
  double most_;
};

/// Different links, in the order in which they came.
class Distinct {
 public:
  explicit Distinct(model::OtherLinks chosen, int boundaries) : boundaries_(boundaries), all_{std::move(chosen)} {}

  /// False if there are such links already.
  bool add(const LinkModel& links, Sending sending, const std::vector<double>& unknowns) {
    model::OtherLinks other{links.latencies(std::span(unknowns).first(links.num_latencies())),
                            sending == Sending::waits};
    const auto same = [&](const model::OtherLinks& one) { return is_same(one, other); };
    if (std::ranges::any_of(all_, same)) return false;
    all_.push_back(std::move(other));
    return true;
  }
  /// All but the first.
  [[nodiscard]] std::vector<model::OtherLinks> others() const { return {all_.begin() + 1, all_.end()}; }

 private:
  [[nodiscard]] bool is_same(const model::OtherLinks& a, const model::OtherLinks& b) const {
    if (a.blocking_transfers != b.blocking_transfers) return false;
    for (int boundary = 0; boundary < boundaries_; ++boundary) {
      for (const auto& [from, to] : {std::pair(boundary, boundary + 1), std::pair(boundary + 1, boundary)}) {
        const auto of = [&, from = from, to = to](const model::OtherLinks& links) {
          return links.transfer_latency.between(from, to, boundaries_ + 1)->value();
        };
        if (std::abs(of(a) - of(b)) > kSameLinks_s) return false;
      }
    }
    return true;
  }

  int boundaries_;
  std::vector<model::OtherLinks> all_;
};

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
  for (const LinkDetail detail : options.details) {
    if (!has(links_with(detail))) continue;
    const LinkModel links = links_with(detail);
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

std::vector<model::OtherLinks> allowed_links(const TimedProblem& problem, const TimingChoice& choice) {
  const TimingCandidate& best = choice.best();
  if (best.sending == Sending::queues || problem.dag.num_ranks() < 2) return {};
  const int boundaries = best.links.num_boundaries();
  Distinct links({best.links.latencies(std::span(best.fit.unknowns).first(best.links.num_latencies())),
                  best.sending == Sending::waits},
                 boundaries);
  double least = best.fit.objective;
  for (const TimingCandidate& c : choice.candidates) {
    if (c.sending != Sending::queues) least = std::min(least, c.fit.objective);
  }
  for (const TimingCandidate& candidate : choice.candidates) {
    if (candidate.sending == Sending::queues) continue;
    if (candidate.penalized() <= best.penalized() + kAlmostAsLikely)
      links.add(candidate.links, candidate.sending, candidate.fit.unknowns);
    if (candidate.links.detail != LinkDetail::per_boundary || candidate.fit.objective > least + kAlmostAsLikely)
      continue;
    Raise raise(problem, candidate);
    std::size_t raised_from = 0;
    for (const std::vector<double>& end : candidate.fit.ends) {
      if (raised_from == kMostRaised) break;
      const std::optional<PinnedFit> start = raise.from(end);
      if (!start) continue;
      const bool is_new = links.add(candidate.links, candidate.sending, start->unknowns);
      if (!is_new && raised_from > 0) continue;
      ++raised_from;
      for (int first = 0; first < boundaries; ++first) {
        std::vector<char> pinned(end.size());
        PinnedFit raised = *start;
        for (int next = 0; next < boundaries; ++next) {
          raised = raise.raise(raised, pinned, (first + next) % boundaries);
          if (next == 0 || next + 1 == boundaries) links.add(candidate.links, candidate.sending, raised.unknowns);
        }
      }
    }
  }
  return links.others();
}

}  // namespace perseus::calibration
