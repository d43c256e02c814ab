// Time from the device passing a boundary until perseus-clockd's device call, on a GPU whose clock calls do nothing.
//
// The helper is the real one (src/training/clock_control), started from this program; see no_op_gpu.cpp.
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "clock_map.h"
#include "parts.h"
#include "training/client/device_progress.h"
#include "training/clock_control/clock_controller.h"

namespace perseus::measure {
namespace {

constexpr int kStep = 16;  // computations of a training step: as many forward as backward

/// A folder for the lease, which goes away.
class LeaseFolder {
 public:
  LeaseFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "perseus-measure-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("cannot create a folder in the temporary directory");
    path_ = name;
    ::setenv("PERSEUS_RUNTIME_DIR", name.c_str(), 1);
    ::unsetenv("PERSEUS_CEILING_MHZ");  // of real GPUs
  }
  LeaseFolder(const LeaseFolder&) = delete;
  LeaseFolder& operator=(const LeaseFolder&) = delete;
  ~LeaseFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

 private:
  std::filesystem::path path_;
};

void measure_computations(Bench& bench, client::ProgressWay way, int milliseconds, int steps) {
  const Cuda& cuda = bench.cuda;
  const std::string name = std::to_string(milliseconds) + " ms computations, " + std::string(client::name_of(way));
  const Stream stream = cuda.make_stream();
  clock_control::ClockControllerOptions options;
  options.device = "no-op";
  options.daemon = "none";  // a daemon of this machine has real GPUs
  options.helper = bench.settings.program;
  auto controller = clock_control::ClockController::start(options);
  if (!controller) throw std::runtime_error(controller.error().message);
  const auto memory = (*controller)->share_memory();
  (*controller)->position_comes_from_cpu(way != client::ProgressWay::write_value);
  auto progress = client::DeviceProgress::open(cuda.client(), stream,
                                               {memory.begin, memory.bytes, memory.position, memory.reached}, way);
  if (!progress) return bench.figures.fact(name, "not possible: " + progress.error().message);

  std::vector<Event> events;
  for (int i = 0; i < kStep * steps; ++i) events.push_back(cuda.make_event());
  ClockMap map(cuda);
  const double began_us = host_now_us(), cpu_before_s = (*controller)->statistics().helper_cpu_s;
  std::uint64_t read = 0;
  std::vector<double> call_us(events.size() + 1, 0);
  const auto take = [&] {
    (*controller)->applied_since(read, [&](const clock_control::AppliedClock& applied) {
      if (applied.at_device_time && applied.position < call_us.size()) {
        call_us[applied.position] = 1e-3 * static_cast<double>(applied.call_ns);
      }
    });
  };
  std::uint32_t position = 0;
  for (int step = 0; step < steps; ++step) {
    (*controller)->begin_step();
    for (int i = 0; i < kStep; ++i) {
      cuda.spin(stream, 1000.0 * milliseconds * (i % 2 == 0 ? 2.0 / 3 : 4.0 / 3));
      cuda.record(events[position], stream);
      ++position;
      if (!(*progress)->mark(position)) throw CudaFailure(name + ": the driver refused a boundary");
      (*controller)->set_from(position, Megahertz(i % 2 == 0 ? 1 : 2));
    }
    // The host stays one step ahead, and maps the clocks meanwhile, on a stream of its own.
    while (step > 0 && cuda.client()->event_query(events[kStep * step - 1]) == client::CudaDriver::kNotReady) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      map.probe(5);
    }
    take();
  }
  cuda.synchronize(stream);
  map.probe();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for the last call
  take();
  const double wall_s = 1e-6 * (host_now_us() - began_us);
  const clock_control::ControlStatistics statistics = (*controller)->statistics();

  // The first two steps teach the helper the rhythm.
  std::vector<double> latency, learning, uncertainty;
  int missing = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (call_us[i + 1] == 0) {
      ++missing;
      continue;
    }
    const double device_us = map.device_us(events[i]);
    (i < 2 * kStep ? learning : latency).push_back(call_us[i + 1] - map.host_us(device_us));
    uncertainty.push_back(map.offset_at(device_us).half_width_us);
  }
  bench.figures.add(name + ": boundary to device call", "us", std::move(latency));
  bench.figures.add(name + ": the same, first two steps", "us", std::move(learning));
  bench.figures.add(name + ": uncertainty of the clock map (+-)", "us", std::move(uncertainty));
  bench.figures.fact(name + ": processor time of the helper", 100 * (statistics.helper_cpu_s - cpu_before_s) / wall_s,
                     "% of a core");
  bench.figures.fact(name + ": changes that a newer one overtook or that failed", missing, "");
}

}  // namespace

void measure_helper(Bench& bench) {
  const LeaseFolder folder;
  for (const int milliseconds : {5, 20, 40}) {
    const int seconds = milliseconds == 5 ? 4 : 6;
    const int steps = bench.settings.of(1000 * seconds / (kStep * milliseconds) + 2, 3);
    measure_computations(bench, client::ProgressWay::write_value, milliseconds, steps);
    measure_computations(bench, client::ProgressWay::host_function, milliseconds, steps);
  }
}

}  // namespace perseus::measure
