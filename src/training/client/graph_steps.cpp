#include "training/client/graph_steps.h"

#include <algorithm>

namespace perseus::client {
namespace {

constexpr double kLeast_s = 0.001, kLeastShare = 0.25;
constexpr int kMostInARow = 16;

bool shows_work(const Step& step) {
  const auto end = step.computations.begin() + static_cast<std::ptrdiff_t>(step.count);
  return std::any_of(step.computations.begin(), end,
                     [](const RecordedComputation& one) { return !model::is_constant_time(one.instruction); });
}

}  // namespace

double GraphSteps::least_s() const {
  return std::max(kLeast_s, kLeastShare * shortest_s_.load(std::memory_order_relaxed));
}

bool GraphSteps::ran(const Step& step) {
  if (!step.clean) return step.ran;
  const double took_s = 1e-9 * static_cast<double>(step.end_mark - step.begin_mark);
  if (shows_work(step)) {
    in_a_row_ = 0;
    const double shortest_s = shortest_s_.load(std::memory_order_relaxed);
    if (shortest_s == 0 || took_s < shortest_s) shortest_s_.store(took_s, std::memory_order_relaxed);
    return step.ran;
  }
  const bool is_graph = took_s >= least_s();
  in_a_row_ = is_graph || took_s < kLeast_s ? 0 : in_a_row_ + 1;
  if (in_a_row_ == kMostInARow) shortest_s_.store(0, std::memory_order_relaxed);
  if (!step.cuda) return step.ran;
  last_was_graph_.store(is_graph, std::memory_order_relaxed);
  return is_graph && step.ran;
}

}  // namespace perseus::client
