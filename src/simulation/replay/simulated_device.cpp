#include "simulation/replay/simulated_device.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace perseus::replay {

double monotonic_now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

SimulatedDevice::SimulatedDevice(std::unique_ptr<simulated_gpu::SimulatedGpu> gpu, std::map<int, int> computation_of,
                                 Watts blocking_power)
    : gpu_(std::move(gpu)), computation_of_(std::move(computation_of)), blocking_power_(blocking_power) {
  gpu_->wait();
}

ComputationStamp SimulatedDevice::run(int type, double start_s, const std::function<void(double)>& started) {
  ComputationStamp stamp;
  while (now_s() < start_s) {  // its inputs are in transit
    const auto whole_s = static_cast<time_t>(start_s);
    const timespec until{whole_s, static_cast<long>(1e9 * (start_s - static_cast<double>(whole_s)))};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  const double late_s = std::max(0.0, now_s() - start_s);
  stamp.start_s = gpu_->begin_in_the_past(computation_of_.at(type), start_s);
  const double lost_s = std::max(0.0, stamp.start_s - start_s);
  lateness_.made_up_s += std::max(0.0, late_s - lost_s);
  lateness_.lost_s += lost_s;
  started(stamp.start_s);
  const simulated_gpu::SimulatedGpu::Finished finished = gpu_->finish();
  stamp.end_s = finished.at_s;
  stamp.energy_j = finished.energy.value();
  stamp.clock_mhz = gpu_->clock().value();
  return stamp;
}

double SimulatedDevice::energy_j(double until_s) {
  const double now = now_s();
  return gpu_->energy().value() - blocking_power_.value() * std::max(0.0, now - until_s);
}

}  // namespace perseus::replay
