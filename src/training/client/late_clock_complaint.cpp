#include "training/client/late_clock_complaint.h"

#include <fmt/format.h>

namespace perseus::client {

void LateClockComplaint::judge(std::int64_t late, Complaints& complaints) {
  constexpr std::int64_t enough = 200;
  constexpr double many = 0.05, few = 0.02;
  const std::int64_t ran = computations_ - judged_computations_;
  if (ran < enough) return;
  const double share = static_cast<double>(late - judged_late_) / static_cast<double>(ran);
  judged_computations_ = computations_;
  judged_late_ = late;
  if (share > many) {
    complaints.raise(
        Cause::late_clocks,
        fmt::format("{:.0f} % of the computations ran partly at the clock of the one before: clocks come too "
                    "late, so the plan saves less or slows training",
                    100 * share));
  } else if (share < few) {
    complaints.clear(Cause::late_clocks, "clocks come in time again");
  }
}

}  // namespace perseus::client
