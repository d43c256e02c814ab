#include "io/trace/bounded_spans.h"

#include <algorithm>
#include <iterator>

namespace perseus::trace {

void BoundedSpans::begin_file() {
  first_ = timeline_.spans.size();
  begins_s_.push_back(HUGE_VAL);
}

void BoundedSpans::add(const Span& span, int category) {
  begins_s_.back() = std::min(begins_s_.back(), span.start_s);
  if (is_thinned(span)) return;
  std::vector<Span>& spans = timeline_.spans;
  spans.push_back(span);
  categories_.push_back(static_cast<std::int8_t>(category));
  if (spans.size() < most_) return;
  cut();
  if (spans.size() < most_ / 4 * 3) return;
  timeline_.thinned *= 2;
  drop([&](std::size_t i) { return is_thinned(spans[i]); });
  most_ = std::max(most_, spans.size() * 3 / 2);  // few steps: each stays whole
}

/// Drops the later half of the spans that have no step, if most have none.
void BoundedSpans::cut() {
  std::vector<double> starts;
  for (const Span& s : timeline_.spans) {
    if (s.step < 0) starts.push_back(since_begin_s(s));
  }
  if (starts.size() < timeline_.spans.size() / 2) return;
  const auto middle = starts.begin() + std::ssize(starts) / 2;
  std::ranges::nth_element(starts, middle);
  if (*middle <= 0) return;
  until_s_ = *middle;
  drop([this](std::size_t i) { return is_thinned(timeline_.spans[i]); });
}

double BoundedSpans::since_begin_s(const Span& span) const {
  return span.start_s - begins_s_[timeline_.threads[span.thread].file];
}

bool BoundedSpans::is_thinned(const Span& span) {
  if (span.step < 0) return since_begin_s(span) >= until_s_;
  const auto number = step_numbers_.try_emplace(span.step, static_cast<int>(step_numbers_.size())).first->second;
  return number % timeline_.thinned != 0;
}

}  // namespace perseus::trace
