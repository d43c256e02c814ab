// sample_gpu FILE: makes the tests' simulated GPU there, for tests in other languages.
#include <cstdio>

#include "../sample_gpu.h"

int main(int count, char** arguments) {
  if (count != 2) return 64;
  const auto made = perseus::SimulatedGpu::create(arguments[1], perseus::sample_spec());
  if (!made) std::fprintf(stderr, "%s\n", made.error().message.c_str());
  return made ? 0 : 1;
}
