// Functions that no real driver has: simulation/simulated_cuda/extension.h.
#include "simulation/simulated_cuda/extension.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "driver.h"
#include "simulation/simulated_gpu/simulated_driver.h"
#include "simulation/simulated_gpu/simulated_gpu.h"

using namespace perseus::simulated_cuda;

namespace {

struct Departure {
  int socket;
  std::uint64_t message;
};

void depart(void* user, double time_s) {
  const std::unique_ptr<Departure> departure(static_cast<Departure*>(user));
  const struct {
    std::uint64_t message;
    double time_s;
  } packet{departure->message, time_s};
  if (::send(departure->socket, &packet, sizeof packet, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof packet)) {
    std::perror("simulated GPU: a message to a peer is lost");
  }
}

struct TimePower {
  double time_s, power_w;
};

perseus::Result<perseus::simulated_gpu::SimulatedGpuSpec> spec_of(const char* description) {
  perseus::simulated_gpu::SimulatedGpuSpec spec;
  std::map<std::string, double> values{
      {"blocking_power_w", 90}, {"switch_latency_s", 0.004}, {"counter_refresh_s", 0.1}};
  std::map<std::string, std::map<int, TimePower, std::greater<>>> kernels;
  std::istringstream lines(description);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    if (!(words >> name)) continue;
    if (const auto value = values.find(name); value != values.end() && words >> value->second) continue;
    int mhz = 0;
    TimePower at{};
    if (words >> mhz >> at.time_s >> at.power_w && mhz > 0 && at.time_s > 0 && at.power_w > 0) {
      kernels[name][mhz] = at;
      continue;
    }
    return perseus::Error{perseus::ErrorCode::invalid_input,
                          "'" + line + "': expected 'NAME VALUE' or 'KERNEL MHZ SECONDS WATTS'"};
  }
  if (kernels.empty()) return perseus::Error{perseus::ErrorCode::invalid_input, "it names no kernel"};
  double highest_w = 0;
  for (const auto& [mhz, at] : kernels.begin()->second) spec.clocks.emplace_back(mhz);
  for (const auto& [name, clocks] : kernels) {
    perseus::simulated_gpu::SimulatedComputation computation{name, {}, {}};
    for (const perseus::Megahertz clock : spec.clocks) {
      const auto at = clocks.find(clock.value());
      if (at == clocks.end() || clocks.size() != spec.clocks.size()) {
        return perseus::Error{perseus::ErrorCode::invalid_input,
                              name + " has other clocks than " + kernels.begin()->first};
      }
      computation.time.emplace_back(at->second.time_s);
      computation.power.emplace_back(at->second.power_w);
      highest_w = std::max(highest_w, at->second.power_w);
    }
    spec.computations.push_back(std::move(computation));
  }
  spec.blocking_power.assign(spec.clocks.size(), perseus::Watts(values["blocking_power_w"]));
  spec.switch_latency.assign(spec.clocks.size(), perseus::Seconds(values["switch_latency_s"]));
  spec.counter_refresh = perseus::Seconds(values["counter_refresh_s"]);
  spec.power_limit = spec.default_power_limit = perseus::Watts(1.05 * highest_w);
  return spec;
}

}  // namespace

PERSEUS_CUDA_API int perseus_simulated_stream_await(CudaStream stream, std::uint64_t message, double latency_s) {
  ContextHandle* context = nullptr;
  if (const int code = enter(kStreamAwaitName, context); code != 0) return code;
  Operation operation;
  operation.kind = Operation::Kind::await_message;
  operation.message = message;
  operation.latency_s = latency_s;
  return submit(*context, stream, std::move(operation));
}

PERSEUS_CUDA_API int perseus_simulated_stream_tell(CudaStream stream, ReachedFunction reached, void* user) {
  ContextHandle* context = nullptr;
  if (const int code = enter(kStreamTellName, context); code != 0) return code;
  if (reached == nullptr) return kInvalidValue;
  Operation operation;
  operation.kind = Operation::Kind::tell;
  operation.reached = reached;
  operation.user = user;
  return submit(*context, stream, std::move(operation));
}

PERSEUS_CUDA_API int perseus_simulated_stream_send(CudaStream stream, int socket, std::uint64_t message) {
  auto departure = std::make_unique<Departure>(Departure{socket, message});
  const int code = perseus_simulated_stream_tell(stream, depart, departure.get());
  if (code == kSuccess) static_cast<void>(departure.release());  // the device owns it
  return code;
}

PERSEUS_CUDA_API int perseus_simulated_stream_stamp(CudaStream stream, Stamp* stamp) {
  ContextHandle* context = nullptr;
  if (const int code = enter(kStreamStampName, context); code != 0) return code;
  if (stamp == nullptr) return kInvalidValue;
  Operation operation;
  operation.kind = Operation::Kind::stamp;
  operation.stamp = stamp;
  return submit(*context, stream, std::move(operation));
}

PERSEUS_CUDA_API int perseus_simulated_deliver(CudaContext handle, std::uint64_t message, double time_s) {
  Driver& d = driver();
  Engine* engine = nullptr;
  {
    const std::lock_guard lock(d.mutex);
    const ContextHandle* const context = find(d.contexts, handle);
    if (context == nullptr) return kInvalidContext;
    engine = &context->engine();
  }
  return engine->deliver(message, time_s);
}

PERSEUS_CUDA_API int perseus_simulated_abort(CudaContext handle) {
  Driver& d = driver();
  Engine* engine = nullptr;
  {
    const std::lock_guard lock(d.mutex);
    const ContextHandle* const context = find(d.contexts, handle);
    if (context == nullptr) return kInvalidContext;
    engine = &context->engine();
  }
  engine->fail(kLaunchFailed);
  return kSuccess;
}

PERSEUS_CUDA_API int perseus_simulated_configure(const char* knobs) {
  auto parsed = parse_knobs(knobs == nullptr ? "" : knobs);
  if (!parsed) {
    std::fprintf(stderr, "%s\n", parsed.error().message.c_str());
    return kInvalidValue;
  }
  driver().knobs.set(*std::move(parsed));
  return kSuccess;
}

PERSEUS_CUDA_API int perseus_simulated_make_gpu(const char* path, const char* description) {
  if (path == nullptr || description == nullptr) return kInvalidValue;
  const auto spec = spec_of(description);
  if (!spec) {
    std::fprintf(stderr, "%s: cannot create the simulated GPU: %s\n", path, spec.error().message.c_str());
    return kInvalidValue;
  }
  const auto gpu = perseus::simulated_gpu::SimulatedGpu::create(path, *spec);
  if (!gpu) {
    std::fprintf(stderr, "%s\n", gpu.error().message.c_str());
    return kInvalidValue;
  }
  return kSuccess;
}

PERSEUS_CUDA_API int perseus_simulated_read_gpu(const char* path, double at_s, GpuRecord* record) {
  if (path == nullptr || record == nullptr) return kInvalidValue;
  const auto gpu = perseus::simulated_gpu::SimulatedGpu::attach(path);
  if (!gpu) {
    std::fprintf(stderr, "%s\n", gpu.error().message.c_str());
    return kInvalidValue;
  }
  const auto driver = perseus::simulated_gpu::SimulatedDriver::attach(path);
  if (!driver) {
    std::fprintf(stderr, "%s\n", driver.error().message.c_str());
    return kInvalidValue;
  }
  record->energy_j = (*gpu)->energy(at_s).value();
  record->remembered_from_s = (*gpu)->remembered_from_s();
  record->power_limit_w = (*driver)->power_limit().value();
  record->clock_mhz = (*gpu)->clock().value();
  record->locked = (*gpu)->locked() ? 1 : 0;
  return kSuccess;
}
