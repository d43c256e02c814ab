// What happened in a simulation: the last lines to read, and a hash of all.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace perseus::testing {

class Trace {
 public:
  static constexpr std::size_t kKept = 60;
  /// Prints each line as it comes.
  static inline bool prints = false;

  void add(std::string line) {
    constexpr std::uint64_t prime = 1'099'511'628'211;  // FNV-1a
    for (const char c : line + "\n") hash_ = (hash_ ^ static_cast<unsigned char>(c)) * prime;
    ++count_;
    if (prints) fmt::print("{}\n", line);
    lines_.push_back(std::move(line));
    if (lines_.size() > kKept) lines_.pop_front();
  }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const std::string& line : lines_) text += "  " + line + "\n";
    return text;
  }

 private:
  std::deque<std::string> lines_;
  std::size_t count_ = 0;
  std::uint64_t hash_ = 14'695'981'039'346'656'037U;
};

}  // namespace perseus::testing
