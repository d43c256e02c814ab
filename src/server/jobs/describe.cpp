#include "server/jobs/describe.h"

namespace perseus::jobs {

PolicyMembers members_of(const Policy& policy) {
  PolicyMembers members;
  if (const auto* cap = std::get_if<PowerCap>(&policy)) members.power_cap = *cap;
  if (const auto* pin = std::get_if<Pin>(&policy)) members.pinned = *pin;
  if (const auto* slowdown = std::get_if<MaxSlowdown>(&policy)) members.max_slowdown = *slowdown;
  return members;
}

std::optional<Policy> policy_of(const PolicyMembers& members) {
  if (int{members.power_cap.has_value()} + int{members.pinned.has_value()} + int{members.max_slowdown.has_value()} != 1)
    return std::nullopt;
  if (members.power_cap) return *members.power_cap;
  if (members.pinned) return *members.pinned;
  return *members.max_slowdown;
}

}  // namespace perseus::jobs
