#include "planning/planner/rounding_weights.h"

#include <algorithm>
#include <cmath>

namespace perseus::planner {
namespace {

// The sequence covers these ranges evenly, `late` by its logarithm.
constexpr double kLeastLate = 0.05, kMostLate = 3, kMostEarly = 0.4, kLeastDiscount = 0.4, kMostDiscount = 0.9;

// Multiples of these, modulo 1, fill a cube evenly: powers of 1 / g, where g^4 = g + 1.
constexpr double kStepOfLate = 0.8191725134, kStepOfEarly = 0.6710436067, kStepOfDiscount = 0.5497004779;

// Computations rounded at a wanted deadline.
constexpr std::size_t kComputations = 25000;
constexpr std::size_t kFewest = 16, kMost = 96;

}  // namespace

RoundingWeights varied_weights(int k) {
  const auto part = [&](double step) { return std::fmod((k + 1) * step, 1.0); };
  const double late =
      k % 2 == 0 ? Rounding::kPunctual.late : kLeastLate * std::pow(kMostLate / kLeastLate, part(kStepOfLate));
  return {late, kMostEarly * part(kStepOfEarly),
          kLeastDiscount + (kMostDiscount - kLeastDiscount) * part(kStepOfDiscount)};
}

int weights_at_wanted(std::size_t computations) {
  return static_cast<int>(std::clamp(kComputations / std::max<std::size_t>(computations, 1), kFewest, kMost));
}

}  // namespace perseus::planner
