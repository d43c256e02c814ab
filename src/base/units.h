// Strong units for time, energy, power and clock frequency.
//
// Problem: seconds, joules and watts are all doubles, which code mixes up easily.
// Input:   one explicit constructor per unit.
// Output:  `.value()` at the untyped edges (CSV, JSON, C ABI), where names carry a suffix (_s, _j, _w, _mhz). Only
//          meaningful products compile: W * s = J, J / s = W, J / W = s.
// Cost:    none, each is a plain double (int for Megahertz).
// Threads: plain values.
#pragma once

#include <compare>
#include <optional>

namespace perseus {

template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}
  [[nodiscard]] constexpr double value() const { return value_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity& operator+=(Quantity o) {
    value_ += o.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value_ -= o.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity(a.value_ * k); }
  friend constexpr Quantity operator*(double k, Quantity a) { return Quantity(a.value_ * k); }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity(a.value_ / k); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }

 private:
  double value_ = 0;
};

using Seconds = Quantity<struct SecondsTag>;
using Joules = Quantity<struct JoulesTag>;
using Watts = Quantity<struct WattsTag>;

/// The quantity's number, or nullopt.
template <class Tag>
constexpr std::optional<double> number_of(const std::optional<Quantity<Tag>>& quantity) {
  return quantity ? std::optional(quantity->value()) : std::nullopt;
}

constexpr Joules operator*(Watts p, Seconds t) { return Joules(p.value() * t.value()); }
constexpr Joules operator*(Seconds t, Watts p) { return p * t; }
constexpr Watts operator/(Joules e, Seconds t) { return Watts(e.value() / t.value()); }
constexpr Seconds operator/(Joules e, Watts p) { return Seconds(e.value() / p.value()); }

/// SM clock. 0 means "leave the clock as it is" (constant-time operations).
class Megahertz {
 public:
  constexpr Megahertz() = default;
  constexpr explicit Megahertz(int value) : value_(value) {}
  [[nodiscard]] constexpr int value() const { return value_; }
  constexpr auto operator<=>(const Megahertz&) const = default;

 private:
  int value_ = 0;
};

}  // namespace perseus
