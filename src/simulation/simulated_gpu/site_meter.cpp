#include "simulation/simulated_gpu/site_meter.h"

#include <fmt/format.h>

#include <utility>

namespace perseus::simulated_gpu {

SiteMeter::SiteMeter(Seconds interval, Seconds behind, SimulatedGpu::TimeSource now)
    : interval_s_(interval.value()), behind_s_(behind.value()), first_s_(now()), now_(std::move(now)) {}

Result<SiteMeter> SiteMeter::attach(const std::vector<std::string>& files, Seconds interval, Seconds behind,
                                    SimulatedGpu::TimeSource now) {
  SiteMeter meter(interval, behind, now);
  for (const std::string& file : files) {
    auto gpu = SimulatedGpu::attach(file, now);
    if (!gpu) return gpu.error();
    meter.gpus_.push_back(*std::move(gpu));
  }
  return meter;
}

Status SiteMeter::read() {
  const double until_s = now_() - behind_s_;
  while (true) {
    const double at_s = first_s_ + interval_s_ * static_cast<double>(samples_.size());
    if (at_s > until_s) return Ok{};
    Joules energy;
    for (const auto& gpu : gpus_) {
      energy += gpu->energy(at_s);
      if (gpu->remembered_from_s() <= at_s) continue;
      return Error{
          ErrorCode::unavailable,
          fmt::format("the meter reads {} too late, by {:.1f} s: the machine is too busy", gpu->uuid(), now_() - at_s)};
    }
    samples_.push_back({at_s, energy});
  }
}

}  // namespace perseus::simulated_gpu
