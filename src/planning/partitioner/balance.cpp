#include "planning/partitioner/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace perseus::partitioner {
namespace {

using Ticks = std::int64_t;
__extension__ using Wide = __int128;  // products of two sums of ticks

/// Seconds as integer multiples of the smallest power of ten that fits, see the header.
std::vector<Ticks> in_ticks(std::span<const Seconds> layers) {
  double total = 0;
  for (const Seconds layer : layers) total += layer.value();
  const double ticks_per_second = std::pow(10.0, std::floor(std::log10(9e15 / total)));
  std::vector<Ticks> ticks;
  ticks.reserve(layers.size());
  for (const Seconds layer : layers)
    ticks.push_back(std::max<Ticks>(1, std::llround(layer.value() * ticks_per_second)));
  return ticks;
}

/// Shortest and longest stage: the allowed range, or that of a partition.
struct Window {
  Ticks shortest = 0;
  Ticks longest = 0;
};

bool is_better(Window a, Window b) { return Wide{a.longest} * b.shortest < Wide{b.longest} * a.shortest; }

/// Decides whether the layers can be cut so that all stages lie within a window.
class Cutter {
 public:
  Cutter(const std::vector<Ticks>& layers, int stages)
      : num_layers_(static_cast<int>(layers.size())), stages_(stages), ends_(layers.size() + 1) {
    for (int i = 0; i < num_layers_; ++i) ends_[i + 1] = ends_[i] + layers[i];
    first_.resize(num_layers_);
    last_.resize(num_layers_);
  }

  [[nodiscard]] Ticks total() const { return ends_.back(); }

  /// Without a lower limit the greedy cut is best; fewer stages are fine, as any stage can be split.
  [[nodiscard]] bool fits_below(Ticks longest) const {
    int used = 0;
    for (int begin = 0; begin < num_layers_; ++used) {
      const auto past = std::upper_bound(ends_.begin() + begin + 1, ends_.end(), ends_[begin] + longest);
      const int end = static_cast<int>(past - ends_.begin()) - 1;
      if (end == begin || used == stages_) return false;
      begin = end;
    }
    return true;
  }

  bool fits(Window window) {
    set_window(window);
    std::vector<int>& starts = starts_;
    starts.assign(1, num_layers_);
    for (int s = 0; s < stages_ && !starts.empty(); ++s) {
      one_stage_earlier(starts, next_starts_);
      std::swap(starts, next_starts_);
    }
    return !starts.empty() && starts.back() == 0;
  }

  /// The partition within the window whose earlier stages take as many layers as possible.
  Partition cut(Window window) {
    set_window(window);
    std::vector<std::vector<int>> starts(stages_ + 1);  // starts[s]: where stage s may start so that the rest fits
    starts[stages_] = {num_layers_};
    for (int s = stages_; s > 0; --s) one_stage_earlier(starts[s], starts[s - 1]);
    Partition partition{{0}};
    for (int s = 1; s <= stages_; ++s) {
      const int begin = partition.boundaries.back();
      const auto end = std::ranges::lower_bound(starts[s], last_[begin], std::greater());
      PERSEUS_CHECK(end != starts[s].end() && *end >= first_[begin], "cut() needs a window that fits()");
      partition.boundaries.push_back(*end);
    }
    return partition;
  }

 private:
  /// A stage that starts with layer i may end before any of first_[i] .. last_[i] (none if first_[i] > last_[i]).
  void set_window(Window window) {
    int first = 0;
    int last = 0;
    for (int i = 0; i < num_layers_; ++i) {
      while (first <= num_layers_ && (first <= i || ends_[first] - ends_[i] < window.shortest)) ++first;
      while (last < num_layers_ && ends_[last + 1] - ends_[i] <= window.longest) ++last;
      first_[i] = first;
      last_[i] = last;
    }
  }

  /// Maps the layers (descending) where a stage may start to those where the stage before it may start.
  void one_stage_earlier(const std::vector<int>& starts, std::vector<int>& earlier) const {
    earlier.clear();
    if (starts.empty()) return;
    std::size_t next = 0;  // the last start that is not past the stage's latest end
    for (int i = starts.front() - 1; i >= 0; --i) {
      while (next < starts.size() && starts[next] > last_[i]) ++next;
      if (next == starts.size()) return;
      if (starts[next] >= first_[i]) earlier.push_back(i);
    }
  }

  int num_layers_;
  int stages_;
  std::vector<Ticks> ends_;  ///< ends_[i]: sum of the layers before i
  std::vector<int> first_, last_;
  std::vector<int> starts_, next_starts_;
};

/// Least x in (low, high] with yes(x); yes is monotone and true at high.
template <class Predicate>
Ticks least(Ticks low, Ticks high, Predicate yes) {
  while (high - low > 1) {
    const Ticks middle = low + (high - low) / 2;
    (yes(middle) ? high : low) = middle;
  }
  return high;
}

/// Greatest x in [low, high) with yes(x); yes is monotone and true at low.
template <class Predicate>
Ticks greatest(Ticks low, Ticks high, Predicate yes) {
  return least(low, high, [&](Ticks x) { return !yes(x); }) - 1;
}

/// The window with the least longest stage and, among those, the longest shortest stage.
Window least_longest(Cutter& cutter, Ticks mean) {
  Window window;
  window.longest = least(0, cutter.total(), [&](Ticks longest) { return cutter.fits_below(longest); });
  window.shortest = greatest(1, mean + 1, [&](Ticks shortest) { return cutter.fits({shortest, window.longest}); });
  return window;
}

/// Enumerates the windows that no partition beats at both ends, from the least longest stage on; skips windows that
/// cannot have a smaller ratio than the best so far.
Window least_imbalance(Cutter& cutter, Ticks mean) {
  Window best = least_longest(cutter, mean);
  for (Window corner = best;;) {
    // Later windows have a longer longest stage, so their shortest stage must beat both this one and the ratio.
    const auto by_ratio = static_cast<Ticks>(Wide{corner.longest + 1} * best.shortest / best.longest) + 1;
    const Ticks shortest = std::max(corner.shortest + 1, by_ratio);
    if (shortest > mean) return best;
    // No shortest stage is above the mean, so no later window can improve the ratio.
    const auto limit = static_cast<Ticks>(std::min<Wide>(Wide{best.longest} * mean / best.shortest, cutter.total()));
    if (limit <= corner.longest || !cutter.fits({shortest, limit})) return best;
    corner.longest = least(corner.longest, limit, [&](Ticks longest) { return cutter.fits({shortest, longest}); });
    corner.shortest = greatest(shortest, mean + 1, [&](Ticks longer) { return cutter.fits({longer, corner.longest}); });
    if (is_better(corner, best)) best = corner;
  }
}

Status check(std::span<const Seconds> layers, int stages) {
  if (layers.empty()) return Error{ErrorCode::invalid_input, "there are no layers to partition"};
  if (layers.size() > kMaxLayers) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{} layers; at most {} can be partitioned", layers.size(), kMaxLayers)};
  }
  if (stages < 1 || stages > static_cast<int>(layers.size())) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{} stages; {} layers can be cut into 1 to {}", stages, layers.size(), layers.size())};
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const double value = layers[i].value();
    if (!(value > 0) || !(value <= 1e6)) {
      return Error{ErrorCode::invalid_input,
                   fmt::format("layer {}: latency {} s; allowed: a number > 0 and <= 1e6", i, value)};
    }
  }
  return Ok{};
}

}  // namespace

Result<Partition> balance_layers(std::span<const Seconds> layers, int stages, Balance objective) {
  if (const Status status = check(layers, stages); !status) return status.error();
  Cutter cutter(in_ticks(layers), stages);
  const Ticks mean = cutter.total() / stages;
  const Window window = objective == Balance::imbalance ? least_imbalance(cutter, mean) : least_longest(cutter, mean);
  return cutter.cut(window);
}

}  // namespace perseus::partitioner
