// The threads of a timeline's files, and where in the job each runs.
//
// Input:   process and thread of events, names of threads, ranks among the arguments of events, the rank that a file
//          names; a mapping that says which of these place a rank. A thread whose events name several ranks has a part
//          for each.
// Output:  TraceSpans::threads.
// Errors:  missing_place(): a place of the mapping that never occurs.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/trace/span.h"
#include "io/trace/trace_names.h"

namespace perseus::trace {

class TraceThreads {
 public:
  struct Thread {
    std::string pid, tid, name;
    int base = 0;      ///< the thread that it is part of, or itself
    FieldValues args;  ///< places among the arguments of its events
  };

  explicit TraceThreads(TraceSpans& timeline) : timeline_(timeline) {}

  void begin_file();
  int number_of(std::string_view pid, std::string_view tid);
  /// The part of a thread whose events name the same rank in their arguments.
  int part_of(int thread, FieldValues args);
  void set_name(int thread, std::string_view name) { threads_[thread].name = name; }
  /// Arguments that an event has.
  void saw(const FieldValues& args);
  /// Places the threads of the file that was read last. Without its rank: the number of the file, or its processes are
  /// ranks, if several of them compute.
  void place_file(const TraceNames& names, std::optional<int> rank_of_file, std::size_t first_span);

  /// With its parts.
  [[nodiscard]] const Thread& whole(int thread) const { return threads_[threads_[thread].base]; }
  /// The first place that never occurs; empty: all do. `ready` mappings name what some recorders leave out; of these,
  /// one that is there, but no number, or whose lack leaves several threads of a process in one place.
  [[nodiscard]] std::string missing_place(const TraceNames& names, bool ready) const;

 private:
  [[nodiscard]] int file_number() const { return static_cast<int>(timeline_.files.size()) - 1; }
  int add(Thread thread);
  void place(int thread, const TraceNames& names, int rank_of_file, bool processes_are_ranks);
  [[nodiscard]] bool several_processes_compute(std::size_t first_span) const;
  [[nodiscard]] bool several_threads_compute() const;

  TraceSpans& timeline_;
  std::vector<Thread> threads_;            ///< as timeline_.threads
  std::array<bool, kNumFields> occurs_{};  ///< somewhere, as a whole number
  bool name_occurs_ = false;
  // Of the file that is being read.
  int first_thread_ = 0;
  std::unordered_map<std::string, int> numbers_;
  std::map<FieldValues, int> parts_;
};

}  // namespace perseus::trace
