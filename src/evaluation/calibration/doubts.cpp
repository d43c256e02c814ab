#include "evaluation/calibration/doubts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace perseus::calibration {
namespace {

constexpr double kNotApart = 0.95;  // correlation above which two constants are inseparable

/// "latency of boundary 3, forward", "loading of stage 0", "tail".
std::string name_of_unknown(const Calibration& calibration, int unknown) {
  const LinkModel& links = calibration.timing.best().links;
  const int latencies = links.num_latencies();
  const int past = unknown - latencies;
  if (past >= static_cast<int>(calibration.loading.size())) return "the tail";
  if (past >= 0) return fmt::format("loading of stage {}", calibration.loading[past].stage);
  switch (links.detail) {
    case LinkDetail::one:
      return "the transfer latency";
    case LinkDetail::per_node:
      return unknown == 0 ? "the latency within nodes" : "the latency between nodes";
    case LinkDetail::per_boundary:
      return fmt::format("the latency of boundary {}", unknown);
    case LinkDetail::per_direction:
      break;
  }
  return fmt::format("the latency of boundary {}, {}", unknown / 2, unknown % 2 == 0 ? "forward" : "backward");
}

void add_undetermined(const Calibration& calibration, std::vector<std::string>& doubts, std::set<int>& unclear) {
  const TimingCandidate& best = calibration.timing.best();
  for (int k = 0; k < static_cast<int>(best.fit.unknowns.size()); ++k) {
    const double value_s = best.fit.unknowns[k], stddev_s = best.error_inflation() * best.fit.stddev(k);
    if (value_s <= 0 || stddev_s < value_s) continue;
    unclear.insert(k);
    doubts.push_back(fmt::format("{} is smaller than its uncertainty: {:.3f} +- {:.3f} ms",
                                 name_of_unknown(calibration, k), 1e3 * value_s, 1e3 * stddev_s));
  }
}

void add_not_apart(const Calibration& calibration, std::vector<std::string>& doubts, std::set<int>& unclear) {
  const TimingFit& fit = calibration.timing.best().fit;
  const int n = static_cast<int>(fit.unknowns.size());
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      if (std::abs(fit.correlation(a, b)) < kNotApart) continue;
      unclear.insert({a, b});
      doubts.push_back(fmt::format("the data cannot tell {} from {}", name_of_unknown(calibration, a),
                                   name_of_unknown(calibration, b)));
    }
  }
}

/// Where other links explain the runs too: from which to which latency, of the least known boundary.
std::string links_doubt(const Calibration& calibration, int boundaries) {
  struct Range {
    int boundary = 0;
    Seconds least{std::numeric_limits<double>::infinity()}, most;
  };
  Range widest;
  const model::OtherLinks chosen{calibration.transfer_latency, calibration.blocking_transfers};
  for (int boundary = 0; boundary < boundaries; ++boundary) {
    Range range;
    range.boundary = boundary;
    const auto add = [&](const model::OtherLinks& links) {
      const Seconds latency = *links.transfer_latency.between(boundary, boundary + 1, boundaries + 1);
      range.least = std::min(range.least, latency);
      range.most = std::max(range.most, latency);
    };
    add(chosen);
    std::ranges::for_each(calibration.other_links, add);
    if (boundary == 0 || range.most - range.least > widest.most - widest.least) widest = range;
  }
  return fmt::format(
      "{} other set{} of links explain{} the runs about as well, with {:.2f} to {:.2f} ms at boundary {}; plans from "
      "constants.json keep their time with all of them",
      calibration.other_links.size(), calibration.other_links.size() == 1 ? "" : "s",
      calibration.other_links.size() == 1 ? "s" : "", 1e3 * widest.least.value(), 1e3 * widest.most.value(),
      widest.boundary);
}

/// The network is the bottleneck: with which errors links that serve one transfer at a time explain the iterations, and
/// links that serve any number.
std::string network_doubt(const Calibration& calibration) {
  const auto least_pct = [&](bool queues) {
    double least = std::numeric_limits<double>::infinity();
    for (const TimingCandidate& candidate : calibration.timing.candidates) {
      if ((candidate.sending == Sending::queues) == queues) least = std::min(least, 100 * candidate.left_out_mean());
    }
    return least;
  };
  const double any_pct = least_pct(false), one_pct = least_pct(true);
  std::string text = fmt::format(
      "the busiest stage computes in only {:.0f} % of an iteration: the network is the bottleneck, and a calibration "
      "on computations alone is not to be trusted",
      100 * (1 - calibration.outside_computing));
  if (std::isinf(one_pct)) return text;
  return text + fmt::format(
                    "; error on plans left out: {:.3f} % with links that carry one transfer at a time, {:.3f} % "
                    "with transfers that do not delay each other ({})",
                    one_pct, any_pct,
                    calibration.serial_transfers ? "the first is chosen: serial_transfers"
                                                 : "the first is not clearly better, and not chosen");
}

}  // namespace

std::vector<std::string> doubts_of(const Calibration& calibration, std::span<const Prediction> predictions,
                                   const model::RunTrace& trace) {
  std::vector<std::string> doubts;
  std::vector<double> errors;
  for (const Prediction& p : predictions) errors.push_back(p.replay_error());
  for (const int i : suspicious(errors)) {
    const Prediction& p = predictions[i];
    doubts.push_back(
        fmt::format("plan {} took {:.3f} s, predicted {:.3f} s ({:+.2f} %), more than 10 times the usual error: "
                    "either the run was disturbed, or it shows something that no other run shows; repeat it",
                    trace.plans[p.plan].id, p.measured_time.value(), p.replayed_time.value(), 100 * p.replay_error()));
  }
  if (calibration.outside_computing > kNetworkBound) doubts.push_back(network_doubt(calibration));
  std::set<int> unclear;
  add_undetermined(calibration, doubts, unclear);
  add_not_apart(calibration, doubts, unclear);
  const int stages = trace.num_stages();
  if (!calibration.other_links.empty()) doubts.push_back(links_doubt(calibration, stages - 1));
  if (!unclear.empty() || !calibration.other_links.empty()) {
    doubts.push_back(fmt::format(
        "runs that would distinguish them: every stage at its maximum clock except one at its lowest clock, for stage "
        "0 to stage {} in turn",
        stages - 1));
  }
  return doubts;
}

}  // namespace perseus::calibration
