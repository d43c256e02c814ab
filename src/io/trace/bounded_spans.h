// The spans of a timeline, in bounded memory: beyond a number of spans, whole steps are dropped.
//
// Method:  every second step is dropped, again and again, while there are too many spans; of spans without a step, the
//          later half, counted from the first of their file.
// Shape:   spans stay in the order of their files.
// Cost:    amortized constant per span.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "io/trace/span.h"

namespace perseus::trace {

class BoundedSpans {
 public:
  /// Spans and `thinned` of `timeline`, whose threads have their files.
  BoundedSpans(TraceSpans& timeline, std::size_t most) : timeline_(timeline), most_(most) {}

  void begin_file();
  /// Where the spans of the file begin that is being read.
  [[nodiscard]] std::size_t first_of_file() const { return first_; }
  void add(const Span& span, int category);
  /// Of TraceNames::categories, whatever it was added with.
  [[nodiscard]] int category_of(std::size_t i) const { return categories_[i]; }
  /// Spans without a step that begin so long after the first of their file were dropped.
  [[nodiscard]] double until_s() const { return until_s_; }

  /// Drops the spans whose index is unwanted; asks in ascending order.
  template <class Unwanted>
  void drop(Unwanted unwanted) {
    std::vector<Span>& spans = timeline_.spans;
    std::size_t kept = 0, first = 0;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (i == first_) first = kept;
      if (unwanted(i)) continue;
      spans[kept] = spans[i];
      categories_[kept++] = categories_[i];
    }
    first_ = first_ < spans.size() ? first : kept;
    spans.resize(kept);
    categories_.resize(kept);
  }

 private:
  void cut();
  [[nodiscard]] double since_begin_s(const Span& span) const;
  bool is_thinned(const Span& span);

  TraceSpans& timeline_;
  std::size_t most_, first_ = 0;
  std::vector<std::int8_t> categories_;  ///< of spans
  std::map<int, int> step_numbers_;
  std::vector<double> begins_s_;  ///< of files: the clocks of hosts may begin at different times
  double until_s_ = HUGE_VAL;
};

}  // namespace perseus::trace
