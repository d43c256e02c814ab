// Rate limit on token guessing: counts wrong tokens per address.
//
// Problem: every guess costs a hash and a line of the log, and nothing reveals an attack.
// Input:   addresses that sent a wrong token, with times.
// Output:  whether an address has sent too many: the server then answers 429 until a minute is over. Valid tokens are
//          always accepted, so that one misconfigured rank does not block the others behind the same address.
// Errors:  none.
// Cost:    a lookup; at most 10,000 addresses are kept.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace perseus::routes {

class WrongTokens {
 public:
  static constexpr int kAllowed = 20;
  static constexpr double kWithin_s = 60;

  /// Counts one wrong token; true: too many.
  bool count(const std::string& address, double now_s) {
    ++total_;
    if (shown_.size() >= kMostAddresses)
      std::erase_if(shown_, [&](const auto& one) { return is_over(one.second, now_s); });
    if (shown_.size() >= kMostAddresses) shown_.clear();
    Shown& shown = shown_[address];
    if (is_over(shown, now_s)) shown = {now_s, 0};
    return ++shown.tokens > kAllowed;
  }
  [[nodiscard]] std::uint64_t total() const { return total_; }

 private:
  struct Shown {
    double since_s = 0;
    int tokens = 0;
  };
  static constexpr std::size_t kMostAddresses = 10000;
  static bool is_over(const Shown& shown, double now_s) {
    return now_s >= shown.since_s + kWithin_s || now_s < shown.since_s;  // or the clock was set back
  }

  std::map<std::string, Shown> shown_;
  std::uint64_t total_ = 0;
};

}  // namespace perseus::routes
