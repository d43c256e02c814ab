#include "simulation/simulated_gpu/simulated_driver.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>

#include "simulation/simulated_gpu/state_file.h"

namespace perseus::simulated_gpu {
namespace {

using simulated_gpu::Marks;
using simulated_gpu::Spec;
using simulated_gpu::State;

constexpr Watts kLeastLimit(100);
constexpr int kDone = 0, kBadArgument = 2, kNoPermission = 4;

bool is_alive(int process) { return kill(process, 0) == 0 || errno != ESRCH; }

}  // namespace

SimulatedDriver::SimulatedDriver(std::unique_ptr<simulated_gpu::StateFile> file) : file_(std::move(file)) {}
SimulatedDriver::~SimulatedDriver() = default;

Result<std::unique_ptr<SimulatedDriver>> SimulatedDriver::attach(const std::string& path,
                                                                 SimulatedGpu::TimeSource now) {
  auto file = simulated_gpu::StateFile::attach(path, std::move(now));
  if (!file) return file.error();
  return std::unique_ptr<SimulatedDriver>(new SimulatedDriver(std::move(*file)));
}

std::string SimulatedDriver::name() const { return file_->spec().name.data(); }
std::string SimulatedDriver::uuid() const { return file_->spec().uuid.data(); }
std::string SimulatedDriver::pci_bus_id() const { return file_->spec().pci_bus_id.data(); }
std::string SimulatedDriver::architecture() const { return file_->spec().architecture.data(); }
bool SimulatedDriver::mig() const { return file_->spec().mig != 0; }
bool SimulatedDriver::power_smoothing() const { return file_->spec().power_smoothing != 0; }
Watts SimulatedDriver::default_power_limit() const { return Watts(file_->spec().default_limit_w); }

std::vector<Megahertz> SimulatedDriver::clocks() const {
  std::vector<Megahertz> clocks;
  for (int k = 0; k < file_->spec().clocks; ++k) clocks.emplace_back(file_->spec().clock_mhz[k]);
  return clocks;
}

Megahertz SimulatedDriver::clock() {
  return file_->change(
      [&](State& state, Marks&) { return Megahertz(file_->spec().clock_mhz[running_clock(file_->spec(), state)]); });
}

Joules SimulatedDriver::counter() {
  return file_->change([](State& state, Marks&) { return Joules(state.counter_j); });
}

Watts SimulatedDriver::power() {
  return file_->change([&](State& state, Marks&) { return Watts(power_w(file_->spec(), state)); });
}

Watts SimulatedDriver::average_power() {
  const double window_s = file_->spec().power_window_s;
  if (window_s <= 0) return power();
  return file_->change([&](State& state, Marks& marks) {
    return Watts(average_power_w(state, marks, state.now_s - window_s, state.now_s));
  });
}

Watts SimulatedDriver::power_limit() {
  return file_->change([](State& state, Marks&) { return Watts(state.limit_w); });
}

std::pair<Watts, Watts> SimulatedDriver::power_limit_range() const {
  return {kLeastLimit, std::max(kLeastLimit, default_power_limit())};
}

bool SimulatedDriver::power_capped() {
  return file_->change([&](State& state, Marks&) { return running_clock(file_->spec(), state) != state.clock; });
}

Seconds SimulatedDriver::power_capped_for() {
  return file_->change([](State& state, Marks&) { return Seconds(state.capped_s); });
}

bool SimulatedDriver::idle() {
  return file_->change([](State& state, Marks&) { return state.activity == simulated_gpu::kIdle; });
}

bool SimulatedDriver::persistence() {
  return file_->change([](State& state, Marks&) { return state.persistence != 0; });
}

std::vector<int> SimulatedDriver::processes() {
  return file_->change([](State& state, Marks&) {
    std::vector<int> alive;
    for (std::int32_t& process : state.processes) {
      if (process != 0 && !is_alive(process)) process = 0;
      if (process != 0) alive.push_back(process);
    }
    return alive;
  });
}

std::vector<std::pair<double, Watts>> SimulatedDriver::power_samples(Seconds period, int count) {
  return file_->change([&](State& state, Marks& marks) {
    std::vector<std::pair<double, Watts>> samples;
    const double period_s = period.value(), last_s = std::floor(state.now_s / period_s) * period_s;
    for (int i = count; i-- > 0;) {
      const double end_s = last_s - i * period_s;
      if (end_s - period_s < file_->spec().made_s) continue;
      samples.emplace_back(end_s, Watts(average_power_w(state, marks, end_s - period_s, end_s)));
    }
    return samples;
  });
}

double SimulatedDriver::now_s() {
  return file_->change([](State& state, Marks&) { return state.now_s; });
}

bool SimulatedDriver::permitted() const { return file_->spec().needs_root == 0 || geteuid() == 0; }

void SimulatedDriver::block() {
  const double call_s = file_->spec().set_call_s;
  if (call_s <= 0 || !file_->real_time()) return;
  timespec left{static_cast<time_t>(call_s), static_cast<long>((call_s - std::floor(call_s)) * 1e9)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

int SimulatedDriver::lock_clocks(Megahertz least, Megahertz most) {
  if (!permitted()) return kNoPermission;
  if (least.value() <= 0 || most < least) return kBadArgument;
  const Spec& spec = file_->spec();
  int clock = 0;
  while (clock + 1 < spec.clocks && spec.clock_mhz[clock] > most.value()) ++clock;
  file_->change([&](State& state, Marks& marks) { lock(spec, state, marks, clock); });
  file_->tell_change();
  block();
  return kDone;
}

int SimulatedDriver::unlock_clocks() {
  if (!permitted()) return kNoPermission;
  file_->change([&](State& state, Marks& marks) { lock(file_->spec(), state, marks, -1); });
  file_->tell_change();
  block();
  return kDone;
}

int SimulatedDriver::set_power_limit(Watts limit) {
  if (!permitted()) return kNoPermission;
  const auto [least, most] = power_limit_range();
  if (limit < least || limit > most) return kBadArgument;
  file_->change([&](State& state, Marks& marks) { limit_power(state, marks, limit.value()); });
  file_->tell_change();
  return kDone;
}

int SimulatedDriver::set_persistence(bool on) {
  if (!permitted()) return kNoPermission;
  file_->change([&](State& state, Marks&) { state.persistence = on ? 1 : 0; });
  return kDone;
}

int SimulatedDriver::fault(std::string_view function) {
  return file_->change([&](State& state, Marks&) {
    for (simulated_gpu::Fault& fault : state.faults) {
      if (fault.times == 0 || function != fault.function.data()) continue;
      if (fault.times > 0) --fault.times;
      return static_cast<int>(fault.code);
    }
    return kDone;
  });
}

}  // namespace perseus::simulated_gpu
