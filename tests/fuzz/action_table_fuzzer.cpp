// Any text is a valid schedule or an error; a schedule that was read survives being written and read again.
#include <cstdint>

#include "io/formats/action_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  const auto schedule = formats::parse_action_table({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!schedule) {
    PERSEUS_CHECK(schedule.error().message.starts_with("fuzz:"), "the error names the file");
    return 0;
  }
  PERSEUS_CHECK(schedule->validate().ok(), "what was read is valid");
  const auto table = formats::format_action_table(*schedule);
  PERSEUS_CHECK(table.ok(), "a table has only what tables have names for");
  const auto again = formats::parse_action_table(*table, "fuzz");
  PERSEUS_CHECK(again.ok() && again->ranks == schedule->ranks, "written and read again it is the same");
  return 0;
}
