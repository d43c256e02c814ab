// A brake on guessing: how many wrong tokens an address has shown lately.
//
// Problem: every guess costs a hash and a line of the log, and nothing says that somebody is guessing.
// Input:   addresses that showed a wrong token, and when.
// Output:  whether an address has shown too many: it is then answered 429 until a minute is over. Right tokens are
//          always taken, so that one wrong rank does not keep out the others behind the same address.
// Errors:  none.
// Cost:    a look-up; at most 10,000 addresses are remembered.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace perseus::routes {

class WrongTokens {
 public:
  static constexpr int allowed = 20;
  static constexpr double within_s = 60;

  /// Counts one; true: too many.
  bool count(const std::string& address, double now_s) {
    ++total_;
    if (shown_.size() >= most_addresses)
      std::erase_if(shown_, [&](const auto& one) { return is_over(one.second, now_s); });
    if (shown_.size() >= most_addresses) shown_.clear();
    Shown& shown = shown_[address];
    if (is_over(shown, now_s)) shown = {now_s, 0};
    return ++shown.tokens > allowed;
  }
  [[nodiscard]] std::uint64_t total() const { return total_; }

 private:
  struct Shown {
    double since_s = 0;
    int tokens = 0;
  };
  static constexpr std::size_t most_addresses = 10000;
  static bool is_over(const Shown& shown, double now_s) {
    return now_s >= shown.since_s + within_s || now_s < shown.since_s;  // or the clock was set back
  }

  std::map<std::string, Shown> shown_;
  std::uint64_t total_ = 0;
};

}  // namespace perseus::routes
