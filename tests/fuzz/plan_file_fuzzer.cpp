// Any text is a frontier that fits its DAG or an error; one that was read survives being written and read again.
#include <cstdint>

#include "io/formats/plan_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  const auto file = formats::parse_plan_file({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!file) {
    PERSEUS_CHECK(file.error().message.starts_with("fuzz:"), "the error names the file");
    return 0;
  }
  PERSEUS_CHECK(file->dag.validate().ok(), "its DAG is valid");
  const std::string text = formats::format_plan_file(file->dag, file->frontier, file->metadata);
  const auto again = formats::parse_plan_file(text, "fuzz");
  PERSEUS_CHECK(again.ok(), "what was written can be read");
  PERSEUS_CHECK(formats::format_plan_file(again->dag, again->frontier, again->metadata) == text, "and is the same");
  return 0;
}
