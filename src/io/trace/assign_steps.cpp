#include "io/trace/assign_steps.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace perseus::trace {
namespace {

struct NumberedStep {
  double start_s = 0, end_s = 0;
  int number = -1;
};

/// The steps of a rank, each with a number, in the order of time.
std::vector<NumberedStep> numbered(std::vector<NumberedStep> all) {
  std::ranges::stable_sort(all, {}, [](const NumberedStep& s) { return std::tuple(s.start_s, s.end_s, s.number); });
  const auto is_numbered = [](const NumberedStep& s) { return s.number >= 0; };
  if (std::ranges::any_of(all, is_numbered)) {
    std::erase_if(all, [&](const NumberedStep& s) { return !is_numbered(s); });
    return all;
  }
  std::vector<NumberedStep> whole;
  for (const NumberedStep& s : all) {
    if (whole.empty() || (s.start_s + s.end_s) / 2 > whole.back().end_s) {
      whole.push_back({s.start_s, s.end_s, static_cast<int>(whole.size())});
    } else {
      whole.back().end_s = std::max(whole.back().end_s, s.end_s);
    }
  }
  return whole;
}

}  // namespace

void assign_steps(TraceSpans& timeline) {
  using Place = std::array<int, 4>;
  std::map<Place, std::vector<NumberedStep>> steps;  // of a rank, and of all with its global number
  const auto place_of = [&](const Span& s) {
    const ThreadPlace& place = timeline.threads[s.thread];
    return Place{place.global, place.data, place.rank, place.tensor};
  };
  const auto of_all = [&](const Span& s) { return Place{timeline.threads[s.thread].global, -2, -2, -2}; };
  for (const Span& s : timeline.spans) {
    if (s.kind != SpanKind::step) continue;
    for (const Place& place : {place_of(s), of_all(s)}) steps[place].push_back({s.start_s, s.end_s(), s.step});
  }
  for (auto& [rank, all] : steps) all = numbered(std::move(all));
  const auto begins_in_none = [&](Span& s) {
    if (s.kind == SpanKind::step) return true;
    if (s.step >= 0 || steps.empty()) return false;
    const auto own = steps.find(place_of(s));
    const std::vector<NumberedStep>& all = own != steps.end() ? own->second : steps[of_all(s)];
    const auto after = std::ranges::upper_bound(all, s.start_s, {}, &NumberedStep::start_s);
    if (after == all.begin()) return true;
    s.step = std::prev(after)->number;
    return s.start_s > std::prev(after)->end_s;
  };
  std::vector<Span> kept;
  for (Span& s : timeline.spans) {
    if (!begins_in_none(s)) kept.push_back(s);
  }
  timeline.spans = std::move(kept);
}

}  // namespace perseus::trace
