#include "server/jobs/report_checks.h"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "server/profiling/result_values.h"

namespace perseus::jobs {
namespace {

constexpr std::int64_t kMostIteration = std::int64_t{1} << 52;

Error wrong(std::string_view member, const auto& value, std::string_view allowed) {
  return {ErrorCode::usage, fmt::format("{}: {}; allowed: {}", member, value, allowed)};
}

Status check_clocks(const ClockFigures& clocks) {
  if (clocks.set_mhz < 0 || clocks.set_mhz > kMaxClock_mhz) {
    return wrong("clocks.set_mhz", clocks.set_mhz, fmt::format("0 (none) to {} MHz", kMaxClock_mhz));
  }
  for (const auto& [member, count] : {std::pair("failed", clocks.failed), std::pair("late", clocks.late),
                                      std::pair("throttled_iterations", clocks.throttled_iterations)}) {
    if (count < 0 || count > kMostIteration) return wrong(fmt::format("clocks.{}", member), count, "0 to 2^52");
  }
  return Ok{};
}

}  // namespace

Status check_report(const ReportIterations& request) {
  const auto count = static_cast<std::int64_t>(request.iteration_time.size());
  for (std::size_t i = 0; i < request.iteration_time.size(); ++i) {
    const Seconds time = request.iteration_time[i];
    if (time > Seconds(0) && time <= profiling::kLongestIteration) continue;
    return wrong(fmt::format("iteration_time_s[{}]", i), fmt::format("{} s", time.value()),
                 fmt::format("more than 0, at most {} s (30 days)", profiling::kLongestIteration.value()));
  }
  if (request.plan_version && *request.plan_version < 0) {
    return wrong("plan_version", *request.plan_version, "0 (the highest clock) or the version of a plan");
  }
  if (!request.microbatches.empty() && request.microbatches.size() != request.iteration_time.size()) {
    return wrong("microbatches", fmt::format("{} values", request.microbatches.size()),
                 fmt::format("{}, as many as iteration_time_s has", count));
  }
  for (const int microbatches : request.microbatches) {
    if (microbatches < 0) return wrong("microbatches", microbatches, "1 or more, or 0 (not known)");
  }
  if (request.clocks) {
    if (Status checked = check_clocks(*request.clocks); !checked) return checked;
  }
  if (!request.last_iteration) return Ok{};
  const std::int64_t last = *request.last_iteration;
  if (last < 0 || last > kMostIteration) return wrong("last_iteration", last, "0 to 2^52");
  if (last >= count - 1) return Ok{};
  return wrong(
      "last_iteration", last,
      fmt::format("at least {}, since iterations count from 0 and iteration_time_s has {} values", count - 1, count));
}

std::vector<std::string> leave_out_energies(ReportIterations& request) {
  std::vector<Joules>& energies = request.iteration_energy;
  const std::size_t iterations = request.iteration_time.size();
  if (!energies.empty() && energies.size() != iterations) {
    const std::size_t found = energies.size();
    energies.clear();
    return {
        fmt::format("iteration_energy_j: {} values; allowed: {}, as many as iteration_time_s has", found, iterations)};
  }
  std::vector<std::string> rejected;
  for (std::size_t i = 0; i < energies.size(); ++i) {
    if (energies[i] == Joules(0) || profiling::is_plausible(energies[i], request.iteration_time[i])) continue;
    rejected.push_back(fmt::format("iteration_energy_j[{}]: {} J; allowed: {}", i, energies[i].value(),
                                   profiling::allowed_energy(request.iteration_time[i])));
    energies[i] = Joules(0);  // no energy, for everything that reads the report
  }
  return rejected;
}

}  // namespace perseus::jobs
