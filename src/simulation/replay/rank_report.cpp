#include "simulation/replay/rank_report.h"

#include <cstring>
#include <type_traits>

namespace perseus::replay {
namespace {

struct Fixed {
  std::int64_t worker, iteration, stamps, log_bytes;
  double start_s, end_s, own_end_s, energy_j, late_s, lost_s;
  ClientFigures client;
};
static_assert(std::is_trivially_copyable_v<Fixed> && std::is_trivially_copyable_v<ComputationStamp>);

}  // namespace

std::string bytes_of(const RankReport& r) {
  const Fixed fixed{r.worker,
                    r.iteration,
                    static_cast<std::int64_t>(r.stamps.size()),
                    static_cast<std::int64_t>(r.client_log.size()),
                    r.start_s,
                    r.end_s,
                    r.own_end_s,
                    r.energy_j,
                    r.late_s,
                    r.lost_s,
                    r.client};
  std::string bytes(sizeof fixed + r.stamps.size() * sizeof(ComputationStamp), '\0');
  std::memcpy(bytes.data(), &fixed, sizeof fixed);
  if (!r.stamps.empty()) {
    std::memcpy(bytes.data() + sizeof fixed, r.stamps.data(), r.stamps.size() * sizeof(ComputationStamp));
  }
  return bytes + r.client_log;
}

Result<RankReport> report_from(std::string_view bytes) {
  Fixed fixed;
  const Error none{ErrorCode::internal, "a worker's report is invalid"};
  if (bytes.size() < sizeof fixed) return none;
  std::memcpy(&fixed, bytes.data(), sizeof fixed);
  bytes.remove_prefix(sizeof fixed);
  const auto limit = static_cast<std::int64_t>(bytes.size());
  if (fixed.stamps < 0 || fixed.stamps > limit || fixed.log_bytes < 0 || fixed.log_bytes > limit) return none;
  const auto stamp_bytes = static_cast<std::size_t>(fixed.stamps) * sizeof(ComputationStamp);
  if (bytes.size() != stamp_bytes + static_cast<std::size_t>(fixed.log_bytes)) return none;
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
  if (!r.stamps.empty()) std::memcpy(r.stamps.data(), bytes.data(), stamp_bytes);
  r.client_log = bytes.substr(stamp_bytes);
  return r;
}

}  // namespace perseus::replay
