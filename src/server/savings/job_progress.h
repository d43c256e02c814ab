// Estimates the iteration that a job is in, from what its ranks report.
//
// Problem: plans change at a common iteration in the near future. One rank that reports a huge number, by a fault or
//          on purpose, would delay every later plan.
// Input:   iteration numbers that ranks report, with times; the fastest possible iteration time.
// Output:  the job's iteration. Ranks iterate together: once two of them have reported, a single rank's number counts
//          only as far as the elapsed time allows. A number that no job can reach since it began is rejected until
//          another rank confirms it (the job continues from a checkpoint and keeps its numbers); that of a job's only
//          rank until its next report continues from it. So is one far behind: where ranks disagree, the number that
//          more of them reported last counts, with as many the lower one, since a plan at a number that no rank reaches
//          is put off for ever.
// Errors:  none; report() returns false for a rejected number.
// Cost:    constant, O(ranks) if the number moves; a byte per rank.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace perseus::savings {

std::int64_t iterations_in(double seconds, double fastest_s);

class JobProgress {
 public:
  /// Iterations that a rank may be ahead of what time allows, or behind the others, before its report is rejected.
  static constexpr std::int64_t kBelieved = 1'000'000;

  /// `began_s`: the earliest time at which its ranks can have begun to train.
  explicit JobProgress(double began_s, bool only_rank = false) : began_s_(began_s), only_rank_(only_rank) {}

  /// `finished`: the last iteration that has ended, at most `iteration`. `fastest_s`: least time of an iteration.
  bool report(int rank, std::int64_t iteration, std::int64_t finished, double now_s, double fastest_s);

  /// Nothing if no rank has reported.
  [[nodiscard]] std::optional<std::int64_t> iteration() const {
    return said_ ? std::optional(iteration_) : std::nullopt;
  }
  [[nodiscard]] std::int64_t finished() const { return finished_; }
  /// Time of the first report of iteration().
  [[nodiscard]] double at_s() const { return at_s_; }

 private:
  struct Said {
    int rank = 0;
    std::int64_t iteration = 0;
    double at_s = 0;
  };

  enum class Vote : unsigned char { none, here, elsewhere };

  /// The last rejected number and this one are of the same training.
  [[nodiscard]] bool agrees(const Said& now, double fastest_s) const;
  /// Takes a number far from the job's; true: it is the job's from now on.
  bool moves_to(const Said& now, bool behind, double fastest_s);
  void vote(int rank, Vote vote);

  double began_s_;
  bool only_rank_;
  std::optional<Said> agreed_;   ///< confirmed by at least two ranks
  std::optional<Said> said_;     ///< the last one accepted
  std::optional<Said> doubted_;  ///< the last one rejected
  std::vector<Vote> votes_;      ///< by rank
  std::int64_t here_ = 0, elsewhere_ = 0;
  std::int64_t iteration_ = 0, finished_ = 0;
  double at_s_ = 0;
};

}  // namespace perseus::savings
