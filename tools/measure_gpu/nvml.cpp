// What NVML answers: refresh periods, costs of calls, clocks, conditions, permissions. It calls getters only.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "clock_map.h"
#include "parts.h"
#include "training/device/nvml_abi.h"

namespace perseus::measure {
namespace {

using device::nvml::Device;

class Nvml {
 public:
  Nvml() {
    const char* const given = std::getenv("PERSEUS_NVML");
    library_ = ::dlopen(given != nullptr && *given != '\0' ? given : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw std::runtime_error(std::string("no NVML: ") + ::dlerror());
    if (const int code = call("nvmlInit_v2"); code != 0) throw std::runtime_error("nvmlInit_v2: " + name_of(code));
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() { (void)call("nvmlShutdown"); }

  /// Arguments must have exactly the types of the parameters. A missing function: FUNCTION_NOT_FOUND.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library_, name));
    return function == nullptr ? 13 : function(arguments...);
  }
  [[nodiscard]] std::string name_of(int code) const {
    const auto text = reinterpret_cast<const char* (*)(int)>(::dlsym(library_, "nvmlErrorString"));
    return (text != nullptr ? text(code) : "error") + (" (" + std::to_string(code) + ")");
  }

 private:
  void* library_ = nullptr;
};

/// Polls until `seconds` are over; the times between two changes of what `read` returns.
std::vector<double> times_between_changes_ms(double seconds, const std::function<unsigned long long()>& read) {
  std::vector<double> times;
  const double until_us = host_now_us() + 1e6 * seconds;
  unsigned long long before = read();
  double changed_us = 0;
  while (host_now_us() < until_us) {
    const unsigned long long now = read();
    if (now == before) continue;
    const double at_us = host_now_us();
    if (changed_us != 0) times.push_back(1e-3 * (at_us - changed_us));
    changed_us = at_us;
    before = now;
  }
  return times;
}

bool may_administrate() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("CapEff:", 0) == 0) return (std::stoull(line.substr(7), nullptr, 16) >> 21U & 1U) != 0;
  }
  return false;
}

}  // namespace

void measure_nvml(Bench& bench) {
  Figures& figures = bench.figures;
  const Nvml nvml;
  Device device = nullptr;
  const std::string& bus = bench.cuda.pci_bus_id();
  if (const int code = nvml.call("nvmlDeviceGetHandleByPciBusId_v2", bus.c_str(), &device); code != 0) {
    throw std::runtime_error("nvmlDeviceGetHandleByPciBusId_v2(" + bus + "): " + nvml.name_of(code));
  }
  const auto answer = [&](int code, const std::string& text) { return code == 0 ? text : nvml.name_of(code); };
  const auto on_off = [](unsigned value) { return std::string(value != 0 ? "on" : "off"); };

  std::array<char, 96> text{};
  int code = nvml.call("nvmlSystemGetDriverVersion", text.data(), static_cast<unsigned>(text.size()));
  figures.fact("driver", answer(code, text.data()));
  code = nvml.call("nvmlSystemGetNVMLVersion", text.data(), static_cast<unsigned>(text.size()));
  figures.fact("NVML", answer(code, text.data()));
  unsigned value = 0, pending = 0;
  code = nvml.call("nvmlDeviceGetPersistenceMode", device, &value);
  figures.fact("persistence mode", answer(code, on_off(value)));
  code = nvml.call("nvmlDeviceGetMigMode", device, &value, &pending);
  figures.fact("MIG", answer(code, on_off(value)));
  code = nvml.call("nvmlDeviceGetEnforcedPowerLimit", device, &value);
  figures.fact("enforced power limit", answer(code, std::to_string(value / 1000) + " W"));
  code = nvml.call("nvmlDeviceGetPowerManagementDefaultLimit", device, &value);
  figures.fact("default power limit", answer(code, std::to_string(value / 1000) + " W"));
  unsigned long long reasons = 0;
  code = nvml.call("nvmlDeviceGetCurrentClocksEventReasons", device, &reasons);
  if (code == 13) code = nvml.call("nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons);
  std::array<char, 32> hex{};
  std::snprintf(hex.data(), hex.size(), "0x%llx", reasons);
  figures.fact("clock event reasons now", answer(code, hex.data()));

  std::array<unsigned, 128> memory_clocks{};
  auto count = static_cast<unsigned>(memory_clocks.size());
  code = nvml.call("nvmlDeviceGetSupportedMemoryClocks", device, &count, memory_clocks.data());
  figures.fact("supported memory clocks", answer(code, std::to_string(count)));
  if (code == 0 && count > 0) {
    const unsigned highest = *std::max_element(memory_clocks.begin(), memory_clocks.begin() + count);
    std::array<unsigned, 1024> clocks{};
    count = static_cast<unsigned>(clocks.size());
    code = nvml.call("nvmlDeviceGetSupportedGraphicsClocks", device, highest, &count, clocks.data());
    std::string found;
    if (code == 0 && count > 0) {
      std::sort(clocks.begin(), clocks.begin() + count);
      found = std::to_string(count) + ", " + std::to_string(clocks[0]) + " to " + std::to_string(clocks[count - 1]) +
              " MHz";
    }
    figures.fact("supported SM clocks at the highest memory clock", answer(code, found));
  }

  // No call of NVML says whether nvmlDeviceSetGpuLockedClocks would be permitted without trying it.
  figures.fact("effective user is root", ::geteuid() == 0 ? "yes" : "no");
  figures.fact("CAP_SYS_ADMIN", may_administrate() ? "yes" : "no");
  int restricted = 0;
  code = nvml.call("nvmlDeviceGetAPIRestriction", device, 0, &restricted);
  figures.fact("setting application clocks is restricted to root", answer(code, restricted != 0 ? "yes" : "no"));
  figures.fact("permission for locked clocks", "not tried: no NVML call answers this without setting a clock");

  const std::pair<std::string, std::function<int()>> getters[] = {
      {"nvmlDeviceGetTotalEnergyConsumption",
       [&] { return nvml.call("nvmlDeviceGetTotalEnergyConsumption", device, &reasons); }},
      {"nvmlDeviceGetPowerUsage", [&] { return nvml.call("nvmlDeviceGetPowerUsage", device, &value); }},
      {"nvmlDeviceGetFieldValues, instant power",
       [&] {
         device::nvml::FieldValue field{};
         field.fieldId = device::nvml::field_power_instant;
         const int got = nvml.call("nvmlDeviceGetFieldValues", device, 1, &field);
         return got != 0 ? got : field.nvmlReturn;
       }},
      {"nvmlDeviceGetClockInfo, SM",
       [&] { return nvml.call("nvmlDeviceGetClockInfo", device, static_cast<int>(device::nvml::clock_sm), &value); }},
      {"nvmlDeviceGetCurrentClocksEventReasons",
       [&] { return nvml.call("nvmlDeviceGetCurrentClocksEventReasons", device, &reasons); }},
      {"nvmlDeviceGetEnforcedPowerLimit", [&] { return nvml.call("nvmlDeviceGetEnforcedPowerLimit", device, &value); }},
  };
  for (const auto& [name, get] : getters) {
    if (const int first = get(); first != 0) {
      figures.fact(name, nvml.name_of(first));
      continue;
    }
    std::vector<double> samples;
    for (int i = 0; i < bench.settings.of(500, 20); ++i) {
      const double before = host_now_us();
      (void)get();
      samples.push_back(host_now_us() - before);
    }
    figures.add(name + ", cost", "us", std::move(samples));
  }

  // A GPU at work, so that energy and power change.
  const double seconds = bench.settings.of(5, 1);
  const Stream stream = bench.cuda.make_stream();
  const auto work = [&] {
    for (double launched_s = 0; launched_s < seconds; launched_s += 0.04) bench.cuda.spin(stream, 40'000);
  };
  const std::pair<std::string, std::function<unsigned long long()>> counters[] = {
      {"energy counter, refresh period",
       [&] {
         unsigned long long energy = 0;
         (void)nvml.call("nvmlDeviceGetTotalEnergyConsumption", device, &energy);
         return energy;
       }},
      {"power reading, time between changes",
       [&] {
         unsigned power = 0;
         (void)nvml.call("nvmlDeviceGetPowerUsage", device, &power);
         return static_cast<unsigned long long>(power);
       }},
  };
  for (const auto& [name, read] : counters) {
    work();
    figures.add(name, "ms", times_between_changes_ms(seconds, read));
    bench.cuda.synchronize(stream);
  }
}

}  // namespace perseus::measure
