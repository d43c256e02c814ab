// Any text is constants of a pipeline or an error; constants that were read can be written and read back.
#include <algorithm>
#include <cstdint>

#include "io/formats/pipeline_constants.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  const auto constants = formats::parse_pipeline_constants({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!constants) {
    PERSEUS_CHECK(constants.error().message.starts_with("fuzz:"), "the error names the file");
    return 0;
  }
  PERSEUS_CHECK(constants->microbatches >= 1, "a pipeline has a microbatch");
  PERSEUS_CHECK(constants->costs.blocking_power >= Watts(0), "waiting gives no energy");
  PERSEUS_CHECK(
      constants->costs.transfer_latency
          .check(static_cast<int>(std::max<std::size_t>(1, constants->costs.transfer_latency.boundaries.size() + 1)))
          .ok(),
      "latencies are valid");
  const std::string written = formats::format_pipeline_constants(*constants);
  const auto again = formats::parse_pipeline_constants(written, "fuzz");
  PERSEUS_CHECK(again.ok(), "what was written is read");
  PERSEUS_CHECK(formats::format_pipeline_constants(*again) == written, "and is the same");
  return 0;
}
