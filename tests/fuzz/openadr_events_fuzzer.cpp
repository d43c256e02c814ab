// Any text is a list of events or an error that names its source; any event gives steps that begin now and ascend.
#include <cstdint>
#include <string_view>

#include "server/openadr/event_json.h"
#include "server/openadr/event_memory.h"
#include "server/openadr/vtn_client.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(openadr::parse_programs(text, "fuzz"));
  static_cast<void>(openadr::parse_token_url(std::string(text)));
  static_cast<void>(openadr::parse_access_token(std::string(text)));
  static_cast<void>(openadr::parse_event_time(text));
  static_cast<void>(openadr::parse_iso_duration(text));
  auto list = openadr::parse_events(text, "fuzz");
  if (!list) {
    PERSEUS_CHECK(list.error().message.starts_with("fuzz:"), "the error names its source");
    return 0;
  }
  constexpr double now_s = 1.8e9;
  openadr::EventMemory memory("fuzz");
  memory.take(*std::move(list), {}, now_s);
  openadr::FollowSettings settings;
  settings.baseline = Watts(1e6);
  settings.levels = {std::nullopt, Watts(9e5), Watts(6e5), Watts(3e5)};
  settings.emergency = Watts(2e5);
  settings.most_steps = 100;
  const auto steps = openadr::watt_steps(memory.events(), {}, settings, "fuzz", now_s).steps;
  PERSEUS_CHECK(!steps.empty() && steps.size() <= settings.most_steps,
                "at least one step and at most as many as allowed");
  PERSEUS_CHECK(steps.front().from_s == now_s, "from now on");
  for (std::size_t k = 0; k < steps.size(); ++k) {
    PERSEUS_CHECK(k == 0 || steps[k - 1].from_s < steps[k].from_s, "in order of time");
    PERSEUS_CHECK(!steps[k].limit || (*steps[k].limit >= Watts(0) && *steps[k].limit <= Watts(1e12)), "in range");
  }
  return 0;
}
