// Rate limit on token guessing: counts wrong tokens per address, for the answer and for the log, and for the log also
// calls that need a token and have none.
//
// Problem: every guess costs a hash, and a line for each would fill the log; without any, nothing reveals an attack.
// Input:   addresses that sent a wrong token or none, with times.
// Output:  whether an address has sent too many: the server then answers 429 until a minute is over. Valid tokens are
//          always accepted, so that one misconfigured rank does not block the others behind the same address. A line
//          for the log: the first at once, then at most one a minute, with the number since the one before.
// Errors:  none.
// Cost:    a lookup; at most 10,000 addresses are kept.
// Threads: io thread.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace perseus::routes {

class WrongTokens {
 public:
  static constexpr int kAllowed = 20;
  static constexpr double kWithin_s = 60;

  /// Counts one wrong token; true: too many.
  bool count(const std::string& address, double now_s) {
    ++total_;
    note(address);
    if (shown_.size() >= kMostAddresses)
      std::erase_if(shown_, [&](const auto& one) { return is_over(one.second, now_s); });
    if (shown_.size() >= kMostAddresses) shown_.clear();
    Shown& shown = shown_[address];
    if (is_over(shown, now_s)) shown = {now_s, 0};
    return ++shown.tokens > kAllowed;
  }
  [[nodiscard]] std::uint64_t total() const { return total_; }
  /// Counts one call for the log.
  void note(const std::string& address) {
    if (unlogged_.size() < kMostLogged || unlogged_.contains(address)) ++unlogged_[address];
    ++unlogged_total_;
  }

  /// When log_line() has one; nothing: no call since the last one.
  [[nodiscard]] std::optional<double> next_line_s() const {
    return unlogged_total_ == 0 ? std::nullopt : std::optional(next_line_s_);
  }
  std::optional<std::string> log_line(double now_s) {
    const bool early = now_s < next_line_s_ && now_s >= next_line_s_ - kWithin_s;  // or the clock was set back
    if (unlogged_total_ == 0 || early) return std::nullopt;
    const auto& [address, calls] = *std::ranges::max_element(unlogged_, {}, [](const auto& one) { return one.second; });
    std::string line = fmt::format("calls refused without a valid token: {} from {}", calls, address);
    if (unlogged_total_ > calls) line += fmt::format(", {} from other addresses", unlogged_total_ - calls);
    unlogged_.clear();
    unlogged_total_ = 0;
    next_line_s_ = now_s + kWithin_s;
    return line;
  }

 private:
  struct Shown {
    double since_s = 0;
    int tokens = 0;
  };
  static constexpr std::size_t kMostAddresses = 10000, kMostLogged = 100;
  static bool is_over(const Shown& shown, double now_s) {
    return now_s >= shown.since_s + kWithin_s || now_s < shown.since_s;  // or the clock was set back
  }

  std::map<std::string, Shown> shown_;
  std::uint64_t total_ = 0;
  std::map<std::string, std::uint64_t> unlogged_;  ///< since the last line
  std::uint64_t unlogged_total_ = 0;
  double next_line_s_ = 0;
};

}  // namespace perseus::routes
