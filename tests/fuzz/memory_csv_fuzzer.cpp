// Any text is the memory of stages or an error that names the file.
#include <cstdint>

#include "io/formats/memory_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  const auto memory = formats::parse_memory_csv({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!memory) {
    PERSEUS_CHECK(memory.error().message.starts_with("fuzz:"), "the error names the file");
    return 0;
  }
  PERSEUS_CHECK(!memory->empty(), "there is a stage");
  for (const model::StageMemory& stage : *memory) {
    PERSEUS_CHECK(stage.weights_gib >= 0 && stage.activations_gib >= 0 && stage.checkpoint_gib >= 0,
                  "no memory is negative");
  }
  return 0;
}
