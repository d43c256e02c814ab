#include "training/client/report_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace perseus::client {
namespace {

constexpr std::size_t kMostKeptIterations = 1000;

}  // namespace

void ReportQueue::add(MeasuredIteration iteration) {
  if (iterations_.size() == kMostKeptIterations) iterations_.pop_front();
  iterations_.push_back(std::move(iteration));
}

std::vector<MeasuredIteration> ReportQueue::next(bool all) {
  std::vector<MeasuredIteration> report;
  while (!iterations_.empty() && report.empty()) {
    const MeasuredIteration& first = iterations_.front();
    const auto other = [&](const MeasuredIteration& i) {
      return i.window != first.window || i.plan_version != first.plan_version;
    };
    auto end = std::ranges::find_if(iterations_, other);
    if (first.window >= 0) {
      const auto last = std::find_if(iterations_.begin(), end, [](const auto& i) { return i.ends_window; });
      if (last == end) {
        if (end == iterations_.end()) return report;  // more of it follows
        iterations_.erase(iterations_.begin(), end);
        continue;
      }
      end = last + 1;
    } else if (!all && end == iterations_.end()) {
      return report;
    }
    report.assign(std::make_move_iterator(iterations_.begin()), std::make_move_iterator(end));
    iterations_.erase(iterations_.begin(), end);
  }
  return report;
}

}  // namespace perseus::client
