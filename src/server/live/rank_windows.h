// The profiling windows that each rank of a job was handed, and ran, as far as this server knows.
//
// Problem: clients that do not name windows send the same request for every window.
// Input:   windows handed out to ranks, and reports of windows.
// Output:  the last window of each rank.
// Errors:  none.
// Cost:    a lookup.
// Threads: io thread.
#pragma once

#include <optional>
#include <unordered_map>

namespace perseus::live {

class RankWindows {
 public:
  void hand_out(int rank, int window) { windows_of_[rank].handed = window; }
  void ran(int rank, int window) { windows_of_[rank].run = window; }
  /// The last window that this server handed to the rank; nothing: none.
  [[nodiscard]] std::optional<int> handed(int rank) const;
  /// It is the last one that the rank reported here.
  [[nodiscard]] bool has_run(int rank, int window) const;
  /// Profiling begins anew.
  void clear() { windows_of_.clear(); }

 private:
  struct Last {
    std::optional<int> handed, run;
  };
  std::unordered_map<int, Last> windows_of_;
};

}  // namespace perseus::live
