#include "server/jobs/describe.h"

namespace perseus::jobs {

PolicyMembers members_of(const Policy& policy) {
  PolicyMembers members;
  if (const auto* cap = std::get_if<PowerCap>(&policy)) members.power_cap = *cap;
  if (const auto* pin = std::get_if<Pin>(&policy)) members.pinned = *pin;
  if (const auto* slowdown = std::get_if<MaxSlowdown>(&policy)) members.max_slowdown = *slowdown;
  return members;
}

Status read_json_form(const formats::JsonReader& json, Policy& policy) {
  PolicyMembers members;
  if (Status read = formats::read_json(json, members); !read) return read;
  if (int{members.power_cap.has_value()} + int{members.pinned.has_value()} + int{members.max_slowdown.has_value()} != 1)
    return json.error("exactly one of power_cap, pinned and max_slowdown");
  if (members.power_cap) policy = *members.power_cap;
  if (members.pinned) policy = *members.pinned;
  if (members.max_slowdown) policy = *members.max_slowdown;
  return Ok{};
}

}  // namespace perseus::jobs
