// Tells steps that replay a captured graph from steps in which nothing ran, of which there is nothing to report.
//
// Problem: neither shows a computation: a skipped batch, an exception and a graph look alike, and a GPU replays a graph
//          after the host has gone on.
// Method:  a graph takes time: 1 ms at least, and a quarter of the shortest iteration that showed its computations.
//          16 shorter steps of 1 ms in a row make it forget that: a first iteration may take far longer.
//          What the GPU has not ended yet is taken for what the last such step was that it has.
// Input:   each training step that ended no computation; then all recorded ones, by the device's time.
// Errors:  none; the first graphs after other steps are not reported.
// Threads: seems_run() the training thread, ran() one other.
#pragma once

#include <atomic>

#include "training/client/step_recorder.h"

namespace perseus::client {

class GraphSteps {
 public:
  /// Something ran in a step without computations that ends after that time, as far as is known now. `by_device`: the
  /// device may run longer.
  [[nodiscard]] bool seems_run(double took_s, bool by_device) const {
    return took_s >= least_s() || (by_device && last_was_graph_.load(std::memory_order_relaxed));
  }
  /// The recorded training step is an iteration that can be reported.
  bool ran(const Step& step);

 private:
  [[nodiscard]] double least_s() const;

  std::atomic<double> shortest_s_{0};  ///< iteration that showed its computations; 0: none yet
  std::atomic<bool> last_was_graph_{false};
  int in_a_row_ = 0;  ///< ran()'s: steps without computations that took 1 ms, and less than a graph
};

}  // namespace perseus::client
