// Any bytes as the state file of a simulated GPU: rejected, or a usable GPU.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/result.h"
#include "simulation/simulated_gpu/physics.h"
#include "simulation/simulated_gpu/state_file.h"

using namespace perseus;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_cast<void>(simulated_gpu::check_content({reinterpret_cast<const std::byte*>(data), size}, 1e9));
  // A file has 400 KB, so the rest draws the parts that matter over a good one and has the physics run on it.
  static const auto spec = std::make_unique<simulated_gpu::Spec>();
  static const auto marks = std::make_unique<simulated_gpu::Marks>();
  simulated_gpu::State state{};
  spec->clocks = 2;
  spec->clock_mhz[0] = 1000;
  spec->clock_mhz[1] = 500;
  spec->computations = 1;
  spec->blocking_w.fill(70);
  spec->time_s[0].fill(0.1);
  spec->power_w[0].fill(100);
  spec->default_limit_w = 400;
  spec->refresh_s = 0.1;
  std::memcpy(&state, data, size < sizeof state ? size : sizeof state);
  if (!simulated_gpu::check(*spec).empty() || !simulated_gpu::check(*spec, state).empty()) return 0;
  simulated_gpu::advance(*spec, state, *marks, state.now_s + 1);
  static_cast<void>(simulated_gpu::remaining_s(*spec, state));
  static_cast<void>(simulated_gpu::average_power_w(state, *marks, state.now_s - 0.5, state.now_s));
  static_cast<void>(simulated_gpu::power_w(*spec, state));
  simulated_gpu::lock(*spec, state, *marks, 1);
  simulated_gpu::begin(*spec, state, *marks, 0);
  simulated_gpu::advance(*spec, state, *marks, state.now_s + 1);
  return 0;
}
