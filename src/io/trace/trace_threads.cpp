#include "io/trace/trace_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "io/trace/trace_event.h"

namespace perseus::trace {
namespace {

int number_in(std::string_view text) { return whole_number(text).value_or(-1); }

}  // namespace

void TraceThreads::begin_file() {
  first_thread_ = static_cast<int>(std::ssize(threads_));
  numbers_.clear();
  parts_.clear();
}

int TraceThreads::add(Thread thread) {
  timeline_.threads.push_back({.file = file_number()});
  threads_.push_back(std::move(thread));
  return static_cast<int>(std::ssize(threads_)) - 1;
}

int TraceThreads::number_of(std::string_view pid, std::string_view tid) {
  const int next = static_cast<int>(std::ssize(threads_));
  const auto [found, is_new] = numbers_.try_emplace(fmt::format("{}#{}", pid, tid), next);
  if (is_new) add({std::string(pid), std::string(tid), {}, next, kNoFields});
  return found->second;
}

int TraceThreads::part_of(int thread, FieldValues args) {
  args[static_cast<std::size_t>(SpanField::step)] = thread;
  std::fill(args.begin() + static_cast<int>(SpanField::step) + 1, args.end(), -1);
  if (std::all_of(args.begin(), args.begin() + static_cast<int>(SpanField::step), [](int v) { return v < 0; }))
    return thread;
  const auto [found, is_new] = parts_.try_emplace(args, static_cast<int>(std::ssize(threads_)));
  if (is_new) {
    Thread part = threads_[thread];
    part.args = args;
    add(std::move(part));
  }
  return found->second;
}

void TraceThreads::saw(const FieldValues& args) {
  for (std::size_t f = 0; f < kNumFields; ++f) occurs_[f] |= args[f] >= 0;
}

void TraceThreads::place_file(const TraceNames& names, std::optional<int> rank_of_file, std::size_t first_span) {
  const bool processes_are_ranks = !rank_of_file && several_processes_compute(first_span);
  for (int t = first_thread_; t < std::ssize(threads_); ++t)
    place(t, names, rank_of_file.value_or(file_number()), processes_are_ranks);
}

void TraceThreads::place(int thread, const TraceNames& names, int rank_of_file, bool processes_are_ranks) {
  const Thread& own = threads_[thread];
  FieldValues named = kNoFields;
  if (!matches(names.thread, whole(thread).name, named)) named = kNoFields;
  for (const int field : named) name_occurs_ |= field >= 0;
  const auto value = [&](SpanField field) {
    const auto f = static_cast<std::size_t>(field);
    const std::string& where = names.places[f];
    const bool is_process = where == "pid" || (where == "file" && processes_are_ranks);
    const int found = named[f] >= 0     ? named[f]
                      : is_process      ? number_in(own.pid)
                      : where == "tid"  ? number_in(own.tid)
                      : where == "file" ? rank_of_file
                                        : own.args[f];
    occurs_[f] |= found >= 0;
    return found;
  };
  timeline_.threads[thread] = {value(SpanField::data), value(SpanField::rank), value(SpanField::tensor),
                               value(SpanField::global), file_number()};
}

std::string TraceThreads::missing_place(const TraceNames& names, bool ready) const {
  const std::string& file = timeline_.files.back();
  for (std::size_t f = 0; f < kNumFields; ++f) {
    const std::string_view place = names.places[f] == "file" ? "pid" : std::string_view(names.places[f]);  // of several
    if (!place.empty() && !occurs_[f] && (!ready || (place == "pid" && !threads_.front().pid.empty())))
      return fmt::format("{}: no event of {} has a whole number at '{}'", field_names()[f], file, place);
  }
  if (names.thread.empty() || name_occurs_ || (ready && !several_threads_compute())) return {};
  return fmt::format("thread: no thread of {} is named like '{}'", file, names.thread);
}

bool TraceThreads::several_processes_compute(std::size_t first_span) const {
  const std::string* first = nullptr;
  const auto begin = timeline_.spans.begin() + static_cast<std::ptrdiff_t>(first_span);
  return std::any_of(begin, timeline_.spans.end(), [&](const Span& s) {
    if (!is_compute(s.kind)) return false;
    if (first == nullptr) first = &threads_[s.thread].pid;
    return threads_[s.thread].pid != *first;
  });
}

bool TraceThreads::several_threads_compute() const {
  std::map<std::string_view, int> thread_of;  // of a process
  return std::ranges::any_of(timeline_.spans, [&](const Span& s) {
    return is_compute(s.kind) && thread_of.try_emplace(threads_[s.thread].pid, s.thread).first->second != s.thread;
  });
}

}  // namespace perseus::trace
