// A small simulated GPU for tests, and a hand-turned clock.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "simulation/simulated_gpu/simulated_gpu.h"

namespace perseus::device {

/// A folder that is removed with its owner.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "perseus-device-XXXXXX").string();
    PERSEUS_CHECK(mkdtemp(name.data()) != nullptr, "no folder for the test's files");
    path_ = name;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// Three clocks; forward takes 1, 2 and 4 s at 400, 200 and 100 W, backward twice as long.
inline simulated_gpu::SimulatedGpuSpec sample_spec() {
  simulated_gpu::SimulatedGpuSpec spec;
  spec.clocks = {Megahertz(1400), Megahertz(700), Megahertz(350)};
  spec.computations = {{"forward", {Seconds(1), Seconds(2), Seconds(4)}, {Watts(400), Watts(200), Watts(100)}},
                       {"backward", {Seconds(2), Seconds(4), Seconds(8)}, {Watts(400), Watts(200), Watts(100)}}};
  spec.blocking_power = {Watts(80), Watts(70), Watts(60)};
  spec.idle_power = Watts(50);
  spec.power_limit = spec.default_power_limit = Watts(500);
  return spec;
}

/// A time shared by all objects in this process that were made with source().
class HandTurnedTime {
 public:
  [[nodiscard]] simulated_gpu::SimulatedGpu::TimeSource source() const {
    return [now = now_] { return *now; };
  }
  void advance(double by_s) { *now_ += by_s; }
  void turn_to(double to_s) { *now_ = to_s; }

 private:
  std::shared_ptr<double> now_ = std::make_shared<double>(100);
};

}  // namespace perseus::device
