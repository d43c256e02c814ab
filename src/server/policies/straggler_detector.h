// Detects stragglers from the iteration times that ranks report.
//
// Problem: iteration times are noisy, profiles are off by the same few percent everywhere, and a plan that changes
//          with every outlier is worse than none.
// Input:   per pipeline, at intervals, its measured over its planned iteration time (without waiting for others).
//          All of its ranks may report an iteration: it counts once.
// Output:  the new degree of a pipeline, rarely. The median of a pipeline's last reports is compared with the median
//          of all pipelines. It becomes a straggler above `enter`, stops being one below `leave`, and changes its
//          degree by more than `change`, each only after `reports` reports in a row (hysteresis). Needs two pipelines
//          that report.
// Errors:  none.
// Cost:    O(pipelines) per report.
// Threads: plain value.
// Source:  paper section 2.3 (causes and degrees of stragglers: 1.05 to 1.5).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace perseus::policies {

struct DetectorOptions {
  double enter = 1.05, leave = 1.02, change = 0.05;
  int reports = 3;
};

/// Whose iteration a report is of.
struct ReportedBy {
  int rank = 0;
  std::int64_t iteration = 0;
};

class StragglerDetector {
 public:
  StragglerDetector() = default;
  explicit StragglerDetector(int pipelines, DetectorOptions options = {});

  /// The pipeline's new degree if it has changed; 1: back to normal.
  std::optional<double> report(int pipeline, double measured_over_planned, std::optional<ReportedBy> by = std::nullopt);
  /// Call when clocks change: times measured under the old ones no longer apply.
  void forget_times();
  /// Sets the degree already in force, after a restart.
  void assume(int pipeline, double degree);

 private:
  struct Pipeline {
    std::deque<double> last;
    double degree = 1;
    int in_a_row = 0;
    std::optional<ReportedBy> counted;  ///< the last one
  };
  [[nodiscard]] std::optional<double> reference() const;

  DetectorOptions options_;
  std::vector<Pipeline> pipelines_;
};

}  // namespace perseus::policies
