// Measures how many times slower iterations are while the device runs below its clock, for the server: the rank is a
// straggler then.
//
// Input:   each iteration's plan version and time, from begin to begin, whether the device was limited in it, and its
//          number of microbatches. Iterations of another number than the one before begin anew.
// Output:  the degree, once eight iterations in a row of a version were limited and are slower by 5 % than earlier ones
//          of that version; again if it changes by more than 5 %; 1 after 32 iterations without a limit.
// Errors:  none: without an earlier iteration of the version there is no degree.
// Cost:    O(8) an iteration.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace perseus::client {

class StragglerReport {
 public:
  /// The new degree, if it is news.
  std::optional<double> ran(std::int64_t version, double time_s, bool limited, int microbatches = 0);

 private:
  std::int64_t version_ = 0;
  int microbatches_ = 0;
  std::deque<double> free_s_, limited_s_;  ///< of this version, the last ones
  int free_in_a_row_ = 0;
  double degree_ = 1;  ///< as reported
};

}  // namespace perseus::client
