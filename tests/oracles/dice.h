// Source of numbers for random instances: a seed, or RapidCheck (which then shrinks failures).
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <random>

namespace perseus::testing {

class Dice {
 public:
  virtual ~Dice() = default;
  /// A whole number from low to high, both included.
  virtual int roll(int low, int high) = 0;
  bool one_in(int n) { return roll(1, n) == n; }
  /// A number from low to high, in steps of a thousandth.
  double real(double low, double high) { return low + (high - low) * roll(0, 1000) / 1000.0; }
};

class SeededDice : public Dice {
 public:
  explicit SeededDice(std::uint64_t seed) : engine_(seed) {}
  int roll(int low, int high) override {
    // Not std::uniform_int_distribution, which differs between standard libraries.
    return low + static_cast<int>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::mt19937_64 engine_;
};

/// Only inside a RapidCheck property.
class ShrinkingDice : public Dice {
 public:
  int roll(int low, int high) override { return *rc::gen::resize(100, rc::gen::inRange(low, high + 1)); }
};

}  // namespace perseus::testing
