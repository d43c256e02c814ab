#include "simulation/simulated_cuda/knobs.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/split.h"

namespace perseus::simulated_cuda {
namespace {

struct NamedKnob {
  std::string_view name;
  double Knobs::*value;
};

constexpr std::array kKnobs{
    NamedKnob{"stream_memory_operations", &Knobs::stream_memory_operations},
    NamedKnob{"stream_memory_operations_v1", &Knobs::stream_memory_operations_v1},
    NamedKnob{"capture_memory_operations", &Knobs::capture_memory_operations},
    NamedKnob{"host_functions", &Knobs::host_functions},
    NamedKnob{"host_register", &Knobs::host_register},
    NamedKnob{"host_pointer_is_device_pointer", &Knobs::host_pointer_is_device_pointer},
    NamedKnob{"launch_queue", &Knobs::launch_queue},
    NamedKnob{"launch_latency_us", &Knobs::launch_latency_us},
    NamedKnob{"visible_after_us", &Knobs::visible_after_us},
    NamedKnob{"host_function_after_us", &Knobs::host_function_after_us},
    NamedKnob{"call_us", &Knobs::call_us},
    NamedKnob{"event_resolution_us", &Knobs::event_resolution_us},
    NamedKnob{"driver_version", &Knobs::driver_version},
};

bool number(std::string_view text, double& value) {
  const std::string copy(text);
  char* end = nullptr;
  value = std::strtod(copy.c_str(), &end);
  return !copy.empty() && *end == '\0' && value >= 0 && value < 1e9;
}

bool number(std::string_view text, int& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size();
}

Error misunderstood(std::string_view part) {
  std::string names;
  for (const NamedKnob& knob : kKnobs) names += fmt::format("{}=NUMBER, ", knob.name);
  return {ErrorCode::usage, fmt::format("PERSEUS_SIMULATED_CUDA: not understood: '{}'; allowed: {}"
                                        "fail=FUNCTION:CODE[:TIMES[:AFTER]]",
                                        part, names)};
}

bool parse_fault(std::string_view text, CudaFault& fault) {
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 4 || parts[0].empty()) return false;
  fault.function = parts[0];
  return number(parts[1], fault.code) && (parts.size() < 3 || number(parts[2], fault.times)) &&
         (parts.size() < 4 || number(parts[3], fault.after));
}

}  // namespace

Result<Knobs> parse_knobs(std::string_view text) {
  Knobs knobs;
  if (text.empty()) return knobs;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return misunderstood(part);
    const std::string_view name = part.substr(0, equals), value = part.substr(equals + 1);
    if (name == "fail") {
      CudaFault fault;
      if (!parse_fault(value, fault)) return misunderstood(part);
      knobs.faults.push_back(std::move(fault));
      continue;
    }
    bool known = false;
    for (const NamedKnob& knob : kKnobs) {
      if (knob.name == name) known = number(value, knobs.*knob.value);
    }
    if (!known) return misunderstood(part);
  }
  return knobs;
}

void KnobBoard::set(Knobs knobs) {
  const std::lock_guard lock(mutex_);
  faults_ = knobs.faults;
  all_.push_back(std::make_unique<const Knobs>(std::move(knobs)));
  in_force_.store(all_.back().get(), std::memory_order_release);
}

int KnobBoard::fault(std::string_view function) {
  if (get().faults.empty()) return 0;
  const std::lock_guard lock(mutex_);
  for (CudaFault& fault : faults_) {
    if (fault.function != function || fault.times == 0) continue;
    if (fault.after > 0) {
      --fault.after;
      continue;
    }
    if (fault.times > 0) --fault.times;
    return fault.code;
  }
  return 0;
}

}  // namespace perseus::simulated_cuda
