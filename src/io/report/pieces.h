// Collects small appends into pieces large enough to write.
//
// Output:  everything appended, in order, to the sink; the rest at destruction.
#pragma once

#include <string>
#include <string_view>

#include "io/report/report.h"

namespace perseus::report {

class Pieces {
 public:
  explicit Pieces(const Sink& sink) : sink_(sink) {}
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  ~Pieces() { flush(); }

  Pieces& operator<<(std::string_view text) {
    piece_ += text;
    if (piece_.size() >= kPieceSize) flush();
    return *this;
  }
  void flush() {
    if (!piece_.empty()) sink_(piece_);
    piece_.clear();
  }

 private:
  static constexpr std::size_t kPieceSize = 1 << 16;
  const Sink& sink_;
  std::string piece_;
};

}  // namespace perseus::report
