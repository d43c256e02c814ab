// Any text is layers or an error; layers that were read can be written, read back and cut.
#include <algorithm>
#include <cstdint>

#include "io/formats/layers_csv.h"
#include "planning/partitioner/balance.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  const auto layers = formats::parse_layers_csv({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!layers) {
    PERSEUS_CHECK(layers.error().message.starts_with("fuzz:"), "the error names the file");
    return 0;
  }
  const std::string written = formats::format_layers_csv(*layers);
  const auto again = formats::parse_layers_csv(written, "fuzz");
  PERSEUS_CHECK(again.ok(), "what was written is read");
  PERSEUS_CHECK(formats::format_layers_csv(*again) == written, "and is the same");
  const int stages = static_cast<int>(std::min<std::size_t>(layers->size(), 4));
  const auto partition = partitioner::balance_layers(model::forward_latencies(*layers), stages);
  PERSEUS_CHECK(partition.ok() && partition->num_stages() == stages, "layers that were read can be cut");
  return 0;
}
