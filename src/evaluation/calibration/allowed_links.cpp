#include "evaluation/calibration/allowed_links.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

namespace perseus::calibration {
namespace {

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
