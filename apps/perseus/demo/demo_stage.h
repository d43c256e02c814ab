// Progress of `perseus demo` on standard error: a line a phase, and on a terminal the progress within it.
//
// Output:  each line begins with the seconds since this object was made.
#pragma once

#include <chrono>
#include <set>
#include <string>

namespace perseus::cli {

class DemoStage {
 public:
  DemoStage();
  void begin(const std::string& what);
  void remark(const std::string& what);
  /// Ranks of a pipeline notice the same event at the same time: prints the first remark of each topic in a phase.
  void remark_once(const std::string& topic, const std::string& what);
  void so_far(const std::string& what);
  /// Removes the progress within the phase from the terminal.
  void clear();
  [[nodiscard]] double seconds() const;

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::set<std::string> remarks_;
  bool terminal_;
  bool shown_ = false;
};

}  // namespace perseus::cli
