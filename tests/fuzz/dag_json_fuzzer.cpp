// Any text is a valid DAG or an error.
#include <cstdint>

#include "io/formats/dag_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  const auto named = formats::parse_dag_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!named) {
    PERSEUS_CHECK(named.error().message.starts_with("fuzz:"), "the error names the file");
    return 0;
  }
  PERSEUS_CHECK(named->dag.validate().ok(), "what was read is valid");
  PERSEUS_CHECK(named->computation_ids.size() == named->dag.computations.size(), "every computation has its id");
  return 0;
}
