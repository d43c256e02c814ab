#include "evaluation/what_if/step_spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <set>
#include <string>
#include <tuple>

#include "base/median.h"

namespace perseus::what_if {
namespace {

using trace::Span;
using trace::SpanKind;
using trace::ThreadPlace;

constexpr double kLeastMedian_s = 1e-6;  ///< of computations: below, times are hardly microseconds

Error not_placed(std::string message) { return {ErrorCode::invalid_input, std::move(message)}; }

Status check_unit(const trace::TraceSpans& timeline) {
  std::vector<double> times;
  for (const Span& s : timeline.spans) {
    if (is_compute(s.kind)) times.push_back(s.duration_s);
  }
  if (times.empty()) return Ok{};
  if (const double middle = median(std::move(times)); middle < kLeastMedian_s)
    return Error{ErrorCode::invalid_input,
                 fmt::format("computations take {:.3g} microseconds in their median; expected at least 1: are ts and "
                             "dur in microseconds?",
                             1e6 * middle)};
  return Ok{};
}

Status place_threads(const trace::TraceSpans& timeline, const JobDegrees& degrees, StepSpans& sorted) {
  std::set<int> used, globals;  // threads and ranks that have spans
  for (const Span& s : timeline.spans) used.insert(s.thread);
  for (const int t : used) globals.insert(timeline.threads[t].global);
  const int world = std::max(timeline.world_size, globals.empty() ? 0 : *globals.rbegin() + 1);
  if (timeline.world_size == 0 && std::ssize(globals) < world)
    return not_placed(
        fmt::format("{} ranks, of which the last is rank {}; expected ranks from 0 on, as the files "
                    "(distributedInfo) or their processes (pid) number them",
                    globals.size(), world - 1));
  const int ranks = degrees.pipeline_parallel.value_or(std::max(1, world / degrees.tensor_parallel));
  const int per_stage = std::max(1, world / std::max(1, ranks));
  if (world > 0 && (ranks * per_stage != world || per_stage % degrees.tensor_parallel != 0))
    return not_placed(fmt::format("{} ranks; expected a multiple of pipeline_parallel {} x tensor_parallel {}", world,
                                  ranks, degrees.tensor_parallel));
  for (ThreadPlace place : timeline.threads) {
    if (place.global >= 0) {
      sorted.all_in_one |= place.rank < 0 && world > 1 && !degrees.pipeline_parallel;
      if (place.rank < 0) place.rank = place.global / per_stage;
      if (place.data < 0) place.data = place.global % per_stage / degrees.tensor_parallel;
      if (place.tensor < 0) place.tensor = place.global % degrees.tensor_parallel;
    }
    sorted.places.push_back(
        {std::max(place.data, 0), std::max(place.rank, 0), std::max(place.tensor, 0), 0, place.file});
  }
  std::set<std::pair<int, int>> seen;
  std::map<int, int> file_of;  // a rank's first
  std::string same;
  for (const int t : used) {
    seen.emplace(sorted.places[t].data, sorted.places[t].rank);
    const int global = timeline.threads[t].global, file = sorted.places[t].file;
    const int first = file_of.try_emplace(global, file).first->second;
    if (global >= 0 && first != file && same.empty())
      same = fmt::format("; {} and {} are both of rank {}", timeline.files[first], timeline.files[file], global);
  }
  const int expected = ranks * per_stage / degrees.tensor_parallel;
  if (timeline.world_size > 0 && std::ssize(seen) != expected)
    return not_placed(
        fmt::format("timelines of {} of {} ranks (the files say a world size of {}); expected all, or one "
                    "of each tensor-parallel group and their degree{}",
                    seen.size(), expected, timeline.world_size, same));
  return Ok{};
}

/// How often most microbatches run forward on a rank before they run backward: its stages.
int chunks_by_repetition(const std::vector<Span>& spans, const std::vector<ThreadPlace>& places) {
  std::map<std::tuple<int, int, int, int, int, int>, int> forwards;  // of a microbatch of a step on a rank of a file
  std::map<int, int> votes;
  for (const Span& s : spans) {
    if (!is_compute(s.kind) || s.microbatch < 0) continue;
    const ThreadPlace& place = places[s.thread];
    int& count = forwards[{place.file, place.data, place.rank, place.tensor, s.step, s.microbatch}];
    if (s.kind == SpanKind::forward) {
      ++count;
    } else if (count > 0) {
      ++votes[std::exchange(count, 0)];
    }
  }
  if (votes.empty()) return 1;
  const int most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; })->first;
  return std::min<int>(most, std::numeric_limits<std::int8_t>::max());
}

/// Sorts spans that come in the order of time.
class SpanSorter {
 public:
  SpanSorter(StepSpans& sorted, int chunks) : sorted_(sorted), chunks_(chunks) {}

  void add(Span s) {
    const ThreadPlace& place = sorted_.places[s.thread];
    const std::pair key(place.data, place.rank);
    if (s.step < 0) s.step = step_of(s, place);
    if (is_compute(s.kind) && s.microbatch < 0) {
      const int local = std::max<int>(s.stage, s.chunk) * 4096 + place.tensor;
      s.microbatch = static_cast<std::int16_t>(microbatches_[{s.step, place.data, place.rank, s.kind, local}]++);
    } else if (is_compute(s.kind) && chunks_ > 1) {
      s.chunk = static_cast<std::int8_t>(chunk_of(s, place));
    }
    RankSpans& rank = sorted_.steps[s.step][key];
    if (is_compute(s.kind)) {
      add_computation(rank.computing, s);
    } else if (place.tensor == 0) {
      (s.kind == SpanKind::garbage_collection ? rank.pauses : rank.communicating).push_back(s);
    }
  }

 private:
  struct Open {
    int step = 0;
    std::map<std::tuple<SpanKind, int, int>, int> seen;  ///< computations: kind, stage or chunk, microbatch
  };

  /// The step that is open on a rank.
  int step_of(const Span& s, const ThreadPlace& place) {
    Open& open = open_[{place.data, place.rank}];
    if (!is_compute(s.kind)) return open.step;
    sorted_.guesses_steps = true;
    if (s.microbatch < 0 || place.tensor != 0) return open.step;
    const int local = std::max<int>(s.stage, s.chunk);
    const auto came = [&](SpanKind kind) { return open.seen.contains({kind, local, s.microbatch}); };
    const bool returns = s.kind == SpanKind::forward &&
                         (came(SpanKind::backward) || came(SpanKind::input_gradient) || came(SpanKind::pure_backward));
    int* count = &open.seen[{s.kind, local, s.microbatch}];
    if (returns || *count == chunks_) {
      ++open.step;
      open.seen.clear();
      count = &open.seen[{s.kind, local, s.microbatch}];
    }
    ++*count;
    return open.step;
  }

  /// Backward computations of a microbatch come in the reverse order of its stages; gradients of weights in the order
  /// of those of inputs.
  int chunk_of(const Span& s, const ThreadPlace& place) {
    const std::tuple rank(s.step, place.data, place.rank, place.tensor, static_cast<int>(s.microbatch));
    std::deque<int>& gradients = gradients_[rank];
    if (s.kind == SpanKind::weight_gradient) {
      const int chunk = gradients.empty() ? 0 : gradients.front();
      if (!gradients.empty()) gradients.pop_front();
      return chunk;
    }
    const bool forward = s.kind == SpanKind::forward, again = s.kind == SpanKind::recompute;
    const int before = passed_[{rank, forward ? 0 : again ? 1 : 2}]++;
    const int chunk = std::clamp(forward ? before : chunks_ - 1 - before, 0, chunks_ - 1);
    if (s.kind == SpanKind::input_gradient) gradients.push_back(chunk);
    return chunk;
  }

  void add_computation(std::vector<Span>& computing, const Span& s) const {
    if (sorted_.tensor_parallel > 1) {
      const auto same = std::ranges::find_if(computing, [&](const Span& other) {
        return other.kind == s.kind && other.microbatch == s.microbatch && other.stage == s.stage &&
               other.chunk == s.chunk && sorted_.places[other.thread].tensor != sorted_.places[s.thread].tensor;
      });
      if (same != computing.end()) {
        same->duration_s = std::max(same->duration_s, s.duration_s);
        return;
      }
    }
    computing.push_back(s);
  }

  StepSpans& sorted_;
  int chunks_;
  std::map<std::pair<int, int>, Open> open_;  // by pipeline and rank
  std::map<std::tuple<int, int, int, SpanKind, int>, int> microbatches_;
  using MicrobatchOfRank = std::tuple<int, int, int, int, int>;  // in a step
  std::map<std::pair<MicrobatchOfRank, int>, int> passed_;       // computations, by kind
  std::map<MicrobatchOfRank, std::deque<int>> gradients_;        // chunks whose gradients of weights follow
};

}  // namespace

Result<StepSpans> sort_spans(const trace::TraceSpans& timeline, const JobDegrees& degrees) {
  StepSpans sorted;
  if (Status status = place_threads(timeline, degrees, sorted); !status) return status.error();
  if (Status status = check_unit(timeline); !status) return status.error();
  std::vector<Span> spans = timeline.spans;
  std::ranges::stable_sort(spans, {}, &Span::start_s);
  sorted.counts_microbatches = true;
  for (const Span& s : spans) {
    sorted.tensor_parallel =
        std::max({sorted.tensor_parallel, sorted.places[s.thread].tensor + 1, degrees.tensor_parallel});
    if (!is_compute(s.kind)) continue;
    sorted.counts_microbatches = sorted.counts_microbatches && s.microbatch < 0;
    sorted.names_stages = sorted.names_stages || std::max<int>(s.stage, s.chunk) >= 0;
  }
  const int chunks = sorted.names_stages ? 1 : chunks_by_repetition(spans, sorted.places);
  sorted.counts_chunks = chunks > 1;
  SpanSorter sorter(sorted, chunks);
  for (const Span& s : spans) sorter.add(s);
  return sorted;
}

}  // namespace perseus::what_if
