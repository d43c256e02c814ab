#include "replay/rank_report.h"

#include <cstring>
#include <type_traits>

namespace perseus {
namespace {

struct Fixed {
  std::int64_t worker, iteration, stamps;
  double start_s, end_s, own_end_s, energy_j, late_s, lost_s;
  ClientFigures client;
};
static_assert(std::is_trivially_copyable_v<Fixed> && std::is_trivially_copyable_v<ComputationStamp>);

}  // namespace

std::string bytes_of(const RankReport& r) {
  const Fixed fixed{r.worker,   r.iteration, static_cast<std::int64_t>(r.stamps.size()),
                    r.start_s,  r.end_s,     r.own_end_s,
                    r.energy_j, r.late_s,    r.lost_s,
                    r.client};
  std::string bytes(sizeof fixed + r.stamps.size() * sizeof(ComputationStamp), '\0');
  std::memcpy(bytes.data(), &fixed, sizeof fixed);
  if (!r.stamps.empty()) {
    std::memcpy(bytes.data() + sizeof fixed, r.stamps.data(), r.stamps.size() * sizeof(ComputationStamp));
  }
  return bytes;
}

Result<RankReport> report_from(std::string_view bytes) {
  Fixed fixed;
  const Error none{ErrorCode::internal, "a worker's report is not one"};
  if (bytes.size() < sizeof fixed) return none;
  std::memcpy(&fixed, bytes.data(), sizeof fixed);
  bytes.remove_prefix(sizeof fixed);
  if (fixed.stamps < 0 || bytes.size() != static_cast<std::size_t>(fixed.stamps) * sizeof(ComputationStamp))
    return none;
  RankReport r;
  r.worker = static_cast<std::int32_t>(fixed.worker);
  r.iteration = fixed.iteration;
  r.start_s = fixed.start_s;
  r.end_s = fixed.end_s;
  r.own_end_s = fixed.own_end_s;
  r.energy_j = fixed.energy_j;
  r.late_s = fixed.late_s;
  r.lost_s = fixed.lost_s;
  r.client = fixed.client;
  r.stamps.resize(static_cast<std::size_t>(fixed.stamps));
  if (!r.stamps.empty()) std::memcpy(r.stamps.data(), bytes.data(), bytes.size());
  return r;
}

}  // namespace perseus
