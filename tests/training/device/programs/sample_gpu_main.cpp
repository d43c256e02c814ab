// sample_gpu FILE: creates the tests' simulated GPU in FILE, for tests in other languages.
// sample_gpu FILE FUNCTION CODE TIMES: the next TIMES calls of this NVML function fail with CODE; TIMES -1: all
// calls.
#include <cstdio>
#include <cstdlib>

#include "../sample_gpu.h"

int main(int count, char** arguments) {
  if (count != 2 && count != 5) return 64;
  const auto gpu = count == 2
                       ? perseus::simulated_gpu::SimulatedGpu::create(arguments[1], perseus::device::sample_spec())
                       : perseus::simulated_gpu::SimulatedGpu::attach(arguments[1]);
  if (gpu && count == 5) (*gpu)->inject(arguments[2], std::atoi(arguments[3]), std::atoi(arguments[4]));
  if (!gpu) std::fprintf(stderr, "%s\n", gpu.error().message.c_str());
  return gpu ? 0 : 1;
}
