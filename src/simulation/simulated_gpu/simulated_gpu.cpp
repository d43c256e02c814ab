#include "simulation/simulated_gpu/simulated_gpu.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "simulation/simulated_gpu/state_file.h"

namespace perseus::simulated_gpu {
namespace {

using simulated_gpu::Marks;
using simulated_gpu::Spec;
using simulated_gpu::State;

/// FNV-1a of the path: other files are other GPUs, the same file is the same GPU.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string uuid_of(std::uint64_t hash) {
  return fmt::format("GPU-{:08x}-{:04x}-5000-8000-{:012x}", hash >> 32, (hash >> 16) & 0xffff,
                     (hash * 0x9e3779b97f4a7c15) >> 16);
}

std::string pci_bus_id_of(std::uint64_t hash) {
  return fmt::format("{:08X}:{:02X}:00.0", (hash >> 8) & 0xffff, hash & 0xff);
}

template <std::size_t size>
std::string put(std::array<char, size>& to, const std::string& text, const char* what) {
  if (text.size() >= size || text.find('\0') != std::string::npos) {
    return fmt::format("its {} is longer than {} bytes", what, size - 1);
  }
  std::copy(text.begin(), text.end(), to.begin());
  return {};
}

template <class Unit>
std::string put(simulated_gpu::PerClock<double>& to, const std::vector<Unit>& values, std::size_t clocks,
                const std::string& what) {
  if (values.size() != clocks) return fmt::format("{} clocks, but {} for {} of them", clocks, what, values.size());
  std::ranges::transform(values, to.begin(), [](Unit value) { return value.value(); });
  return {};
}

/// Converts to bytes; empty: success, else what does not fit.
std::string put(Spec& bytes, const SimulatedGpuSpec& spec, const std::string& path) {
  const std::uint64_t hash = hash_of(std::filesystem::absolute(path).lexically_normal().string());
  std::vector<std::string> problems{
      put(bytes.name, spec.name, "name"), put(bytes.uuid, spec.uuid.empty() ? uuid_of(hash) : spec.uuid, "UUID"),
      put(bytes.pci_bus_id, spec.pci_bus_id.empty() ? pci_bus_id_of(hash) : spec.pci_bus_id, "PCI bus id"),
      put(bytes.architecture, spec.architecture, "architecture")};
  const std::size_t clocks = spec.clocks.size();
  if (clocks < 1 || clocks > simulated_gpu::kMostClocks) {
    return fmt::format("{} clocks; allowed: 1 to {}", clocks, simulated_gpu::kMostClocks);
  }
  if (spec.computations.size() > simulated_gpu::kMostComputations) {
    return fmt::format("{} computations; allowed: at most {}", spec.computations.size(),
                       simulated_gpu::kMostComputations);
  }
  bytes.clocks = static_cast<std::int32_t>(clocks);
  std::ranges::transform(spec.clocks, bytes.clock_mhz.begin(), [](Megahertz clock) { return clock.value(); });
  bytes.computations = static_cast<std::int32_t>(spec.computations.size());
  for (std::size_t c = 0; c < spec.computations.size(); ++c) {
    const SimulatedComputation& computation = spec.computations[c];
    problems.push_back(put(bytes.computation_name[c], computation.name, "computation's name"));
    problems.push_back(put(bytes.time_s[c], computation.time, clocks, "times of '" + computation.name + "'"));
    problems.push_back(put(bytes.power_w[c], computation.power, clocks, "powers of '" + computation.name + "'"));
  }
  problems.push_back(put(bytes.blocking_w, spec.blocking_power, clocks, "blocking powers"));
  if (!spec.switch_latency.empty()) {
    problems.push_back(put(bytes.switch_latency_s, spec.switch_latency, clocks, "switch latencies"));
  }
  bytes.idle_w = spec.idle_power.value();
  bytes.refresh_s = spec.counter_refresh.value();
  bytes.power_window_s = spec.power_window.value();
  bytes.set_call_s = spec.set_call_time.value();
  bytes.default_limit_w = spec.default_power_limit.value();
  bytes.needs_root = spec.needs_root ? 1 : 0;
  bytes.mig = spec.mig ? 1 : 0;
  bytes.power_smoothing = spec.power_smoothing ? 1 : 0;
  if (!(spec.power_limit.value() > 0)) problems.emplace_back("its power limit is not positive");
  for (const std::string& problem : problems) {
    if (!problem.empty()) return problem;
  }
  return {};
}

/// While this lives, timers of this thread end within a microsecond instead of the usual 50.
class SharpTimer {
 public:
  SharpTimer() : before_(prctl(PR_GET_TIMERSLACK)) { prctl(PR_SET_TIMERSLACK, 1000); }
  SharpTimer(const SharpTimer&) = delete;
  SharpTimer& operator=(const SharpTimer&) = delete;
  ~SharpTimer() {
    if (before_ > 0) prctl(PR_SET_TIMERSLACK, before_);
  }

 private:
  int before_;
};

/// Records that this process computes on the GPU.
void remember_process(State& state) {
  const auto self = static_cast<std::int32_t>(getpid());
  if (std::ranges::find(state.processes, self) != state.processes.end()) return;
  const auto free = std::ranges::find(state.processes, 0);
  if (free != state.processes.end()) *free = self;
}

}  // namespace

struct SimulatedGpu::Shared {
  std::unique_ptr<simulated_gpu::StateFile> file;
};

SimulatedGpu::SimulatedGpu(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}
SimulatedGpu::~SimulatedGpu() = default;

Result<std::unique_ptr<SimulatedGpu>> SimulatedGpu::create(const std::string& path, const SimulatedGpuSpec& spec,
                                                           TimeSource now) {
  const auto bytes = std::make_unique<Spec>();
  if (const std::string why = put(*bytes, spec, path); !why.empty()) {
    return Error{ErrorCode::invalid_input, fmt::format("a simulated GPU cannot be made of this: {}", why)};
  }
  auto file = simulated_gpu::StateFile::create(path, *bytes, spec.power_limit.value(), std::move(now));
  if (!file) return file.error();
  return std::unique_ptr<SimulatedGpu>(new SimulatedGpu(std::make_unique<Shared>(Shared{std::move(*file)})));
}

Result<std::unique_ptr<SimulatedGpu>> SimulatedGpu::attach(const std::string& path, TimeSource now) {
  auto file = simulated_gpu::StateFile::attach(path, std::move(now));
  if (!file) return file.error();
  return std::unique_ptr<SimulatedGpu>(new SimulatedGpu(std::make_unique<Shared>(Shared{std::move(*file)})));
}

void SimulatedGpu::begin(int computation) {
  simulated_gpu::StateFile& file = *shared_->file;
  file.change([&](State& state, Marks& marks) {
    simulated_gpu::begin(file.spec(), state, marks, computation);
    remember_process(state);
  });
}

Seconds SimulatedGpu::remaining() {
  simulated_gpu::StateFile& file = *shared_->file;
  return file.change([&](State& state, Marks&) { return Seconds(remaining_s(file.spec(), state)); });
}

void SimulatedGpu::wait() {
  shared_->file->change([](State& state, Marks& marks) { rest(state, marks, simulated_gpu::kWaiting); });
}

void SimulatedGpu::idle() {
  shared_->file->change([](State& state, Marks& marks) { rest(state, marks, simulated_gpu::kIdle); });
}

void SimulatedGpu::run(int computation) {
  begin(computation);
  finish();
}

SimulatedGpu::Finished SimulatedGpu::finish() {
  simulated_gpu::StateFile& file = *shared_->file;
  const SharpTimer sharp;
  while (true) {
    const std::uint32_t seen = file.changes();
    const Seconds left = remaining();
    if (left <= Seconds(0)) break;
    file.wait_change(seen, left.value());
  }
  return file.change([](State& state, Marks&) { return Finished{state.finished_s, Joules(state.run_energy_j)}; });
}

double SimulatedGpu::begin_in_the_past(int computation, double began_s) {
  simulated_gpu::StateFile& file = *shared_->file;
  return file.change([&](State& state, Marks& marks) {
    const double began = simulated_gpu::begin_in_the_past(file.spec(), state, marks, computation, began_s);
    remember_process(state);
    return began;
  });
}

void SimulatedGpu::set_power_limit(Watts limit) {
  shared_->file->change([&](State& state, Marks& marks) { limit_power(state, marks, limit.value()); });
  shared_->file->tell_change();
}

void SimulatedGpu::inject(std::string_view function, int nvml_code, int times) {
  shared_->file->change([&](State& state, Marks&) {
    simulated_gpu::Fault* place = nullptr;
    for (simulated_gpu::Fault& fault : state.faults) {
      if (function == fault.function.data()) {
        place = &fault;
        break;
      }
      if (fault.times == 0 && place == nullptr) place = &fault;
    }
    PERSEUS_CHECK(place != nullptr, "more faults at once than a simulated GPU remembers");
    PERSEUS_CHECK(function.size() < place->function.size(), "no driver function has such a long name");
    place->function.fill('\0');
    std::ranges::copy(function, place->function.begin());
    place->code = nvml_code;
    place->times = times;
  });
}

Megahertz SimulatedGpu::clock() {
  simulated_gpu::StateFile& file = *shared_->file;
  return file.change(
      [&](State& state, Marks&) { return Megahertz(file.spec().clock_mhz[running_clock(file.spec(), state)]); });
}

bool SimulatedGpu::locked() {
  return shared_->file->change([](State& state, Marks&) { return state.locked != 0; });
}

bool SimulatedGpu::locked_while_stopped() const { return shared_->file->last().locked != 0; }

Joules SimulatedGpu::energy() {
  return shared_->file->change([](State& state, Marks&) { return Joules(state.energy_j); });
}

Joules SimulatedGpu::energy(double until_s) {
  return shared_->file->change(
      [&](State& state, Marks& marks) { return Joules(simulated_gpu::energy_at_j(state, marks, until_s)); });
}

double SimulatedGpu::remembered_from_s() {
  return shared_->file->change(
      [](State& state, Marks& marks) { return simulated_gpu::remembered_from_s(state, marks); });
}

std::uint32_t SimulatedGpu::changes() const { return shared_->file->changes(); }
void SimulatedGpu::tell_change() { shared_->file->tell_change(); }
void SimulatedGpu::wait_change(std::uint32_t seen, double at_most_s) const {
  shared_->file->wait_change(seen, at_most_s);
}

std::vector<std::string> SimulatedGpu::computations() const {
  const Spec& spec = shared_->file->spec();
  std::vector<std::string> names;
  for (int c = 0; c < spec.computations; ++c) names.emplace_back(spec.computation_name[c].data());
  return names;
}

std::string SimulatedGpu::uuid() const { return shared_->file->spec().uuid.data(); }
std::string SimulatedGpu::pci_bus_id() const { return shared_->file->spec().pci_bus_id.data(); }

SimulatedTruth SimulatedGpu::truth(int computation) {
  return shared_->file->change([&](State& state, Marks&) {
    if (computation < 0 || computation >= simulated_gpu::kMostComputations) return SimulatedTruth{};
    const simulated_gpu::Run& run = state.truth[computation];
    return SimulatedTruth{run.runs, Seconds(run.time_s), Joules(run.energy_j)};
  });
}

}  // namespace perseus::simulated_gpu
