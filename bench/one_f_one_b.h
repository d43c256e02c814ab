// Times of the clock requests of one rank of a 1F1B pipeline, for the benchmarks of clock control.
//
// Problem: the cost of a request depends on how well the helper expects it.
// Input:   a pipeline's shape, durations of forward and backward, their jitter.
// Output:  per step the times (s from the start) at which the rank's computations begin for the first time and then
//          end, which is when the rank requests their clocks.
// Errors:  none.
// Cost:    that of the list.
#pragma once

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace perseus {

struct OneFOneB {
  int stages = 4, rank = 1, microbatches = 8;
  double forward_s = 0.02, backward_s = 0.04;
  double jitter = 0.01;  ///< standard deviation of each computation's time, as a share of it
  double tail_s = 0.03;  ///< all-reduce and optimizer
};

/// One list per step, as long as the rank has computations.
inline std::vector<std::vector<double>> request_times_s(const OneFOneB& job, int steps, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> jitter(1, job.jitter);
  const int m = job.microbatches;
  std::vector<std::vector<double>> times;
  double start_s = 0;
  for (int step = 0; step < steps; ++step) {
    // Computation i of a stage: forwards until the pipeline is full, then in turn, then the backwards that are left.
    std::vector<std::vector<double>> forward_end(job.stages), backward_end(job.stages);
    std::vector<double> free_s(job.stages, start_s);
    std::vector<double> mine;
    const auto run = [&](int stage, std::vector<double>& ends, double input_s, double takes_s) {
      const double begin_s = std::max(free_s[stage], input_s);
      if (stage == job.rank && mine.empty()) mine.push_back(begin_s);
      ends.push_back(free_s[stage] = begin_s + takes_s * std::max(jitter(random), 0.1));
      if (stage == job.rank) mine.push_back(ends.back());
    };
    for (bool some = true; std::exchange(some, false);) {
      for (int stage = 0; stage < job.stages; ++stage) {
        std::vector<double>& f = forward_end[stage];
        std::vector<double>& b = backward_end[stage];
        const int at = static_cast<int>(f.size()), back = static_cast<int>(b.size());
        const bool forward = at < m && at - back < job.stages - stage;
        if (forward && (stage == 0 || static_cast<int>(forward_end[stage - 1].size()) > at)) {
          run(stage, f, stage == 0 ? start_s : forward_end[stage - 1][at], job.forward_s);
          some = true;
        } else if (!forward && back < m &&
                   (stage == job.stages - 1 || static_cast<int>(backward_end[stage + 1].size()) > back)) {
          run(stage, b, stage == job.stages - 1 ? f[back] : backward_end[stage + 1][back], job.backward_s);
          some = true;
        }
      }
    }
    mine.pop_back();  // after the last one there is no clock to ask for
    times.push_back(std::move(mine));
    start_s = *std::max_element(free_s.begin(), free_s.end()) + job.tail_s;
  }
  return times;
}

}  // namespace perseus
