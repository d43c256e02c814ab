// Sees stragglers in the iteration times that ranks report.
//
// Problem: iteration times are noisy, profiles are off by the same few percent everywhere, and a plan that flips with
//          every hiccup is worse than none.
// Input:   per pipeline, now and then, its measured over its planned iteration time (without waiting for others).
// Output:  the degree that a pipeline has changed to, seldom. A pipeline is judged by the median of its last reports
//          against the median of all pipelines; it becomes a straggler above `enter`, stops being one below `leave`,
//          changes its degree by more than `change`, each only after `reports` reports in a row (hysteresis). Needs
//          two pipelines that report.
// Errors:  none.
// Cost:    O(pipelines) a report.
// Threads: plain value.
// Source:  paper section 2.3 (who straggles and how much: 1.05 to 1.5).
#pragma once

#include <deque>
#include <optional>
#include <vector>

namespace perseus::jobs {

struct DetectorOptions {
  double enter = 1.05, leave = 1.02, change = 0.05;
  int reports = 3;
};

class StragglerDetector {
 public:
  StragglerDetector() = default;
  explicit StragglerDetector(int pipelines, DetectorOptions options = {});

  /// The pipeline's new degree if it has changed; 1: back to normal.
  std::optional<double> report(int pipeline, double measured_over_planned);
  /// Other clocks run now: what was measured under the old ones says nothing.
  void forget_times();
  /// What is already in force, after a restart.
  void assume(int pipeline, double degree);

 private:
  struct Pipeline {
    std::deque<double> last;
    double degree = 1;
    int in_a_row = 0;
  };
  [[nodiscard]] std::optional<double> reference() const;

  DetectorOptions options_;
  std::vector<Pipeline> pipelines_;
};

}  // namespace perseus::jobs
