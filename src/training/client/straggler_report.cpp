#include "training/client/straggler_report.h"

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/median.h"

namespace perseus::client {
namespace {

constexpr std::size_t kLimited = 8, kFree = 32;  // iterations
constexpr double kSlower = 1.05, kNews = 0.05;

void add(std::deque<double>& times, double time_s, std::size_t most) {
  times.push_back(time_s);
  if (times.size() > most) times.pop_front();
}

double median_of(const std::deque<double>& times) { return median(std::vector<double>(times.begin(), times.end())); }

}  // namespace

std::optional<double> StragglerReport::ran(std::int64_t version, double time_s, bool limited, int microbatches) {
  const bool other_shape = std::exchange(microbatches_, microbatches) != microbatches;
  if (std::exchange(version_, version) != version || other_shape) {
    free_s_.clear();
    limited_s_.clear();
  }
  free_in_a_row_ = limited ? 0 : free_in_a_row_ + 1;
  if (!limited) {
    limited_s_.clear();
    add(free_s_, time_s, kFree);
    if (degree_ == 1 || free_in_a_row_ < static_cast<int>(kFree)) return std::nullopt;
    degree_ = 1;
    return degree_;
  }
  add(limited_s_, time_s, kLimited);
  if (limited_s_.size() < kLimited || free_s_.size() < kLimited) return std::nullopt;
  const double degree = median_of(limited_s_) / median_of(free_s_);
  if (degree < kSlower || std::abs(degree - degree_) <= kNews * degree_) return std::nullopt;
  degree_ = degree;
  return degree_;
}

}  // namespace perseus::client
