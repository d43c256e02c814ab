// Where in its training a job is, from what its ranks say.
//
// Problem: plans change at a common iteration in the near future. One rank that says a huge number, by a fault or on
//          purpose, would put off every later plan.
// Input:   what ranks say, and when; the fastest that an iteration can be.
// Output:  the iteration that the job is at. Ranks iterate together: once two of them have spoken, what one of them
//          says counts only as far as the time since allows. What no job can reach is not believed at all.
// Errors:  none; report() is false for what is not believed.
// Cost:    constant.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <optional>

namespace perseus::jobs {

class JobProgress {
 public:
  /// `began_s`: when its ranks began to train, at the earliest.
  explicit JobProgress(double began_s) : began_s_(began_s) {}

  /// `finished`: the last iteration that has ended, at most `iteration`. `fastest_s`: of an iteration.
  bool report(int rank, std::int64_t iteration, std::int64_t finished, double now_s, double fastest_s);

  /// Nothing: no rank has said where it is.
  [[nodiscard]] std::optional<std::int64_t> iteration() const {
    return said_ ? std::optional(iteration_) : std::nullopt;
  }
  [[nodiscard]] std::int64_t finished() const { return finished_; }
  /// When iteration() was said first.
  [[nodiscard]] double at_s() const { return at_s_; }

 private:
  struct Said {
    int rank = 0;
    std::int64_t iteration = 0;
    double at_s = 0;
  };

  double began_s_;
  std::optional<Said> agreed_;   ///< what two ranks have said at least
  std::optional<Said> said_;     ///< the last one that was believed
  std::optional<Said> doubted_;  ///< the last one that was not
  std::int64_t iteration_ = 0, finished_ = 0;
  double at_s_ = 0;
};

}  // namespace perseus::jobs
