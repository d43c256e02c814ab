// Tier of a job under a site's power limits: where its watts count, how far it may be slowed, how much its rate weighs.
//
// Threads: plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace perseus::jobs {

/// Fact of a job: the team of the token that registered it, or the token's id; absent while tokens are off.
inline constexpr std::string_view kTeamFact = "team";

struct Tier {
  std::string domain = {};  ///< power domain; empty: that of its ranks' hosts
  std::optional<double> least_rate =
      std::nullopt;                               ///< least part of its full speed; nothing: its team's, or the site's
  std::optional<double> priority = std::nullopt;  ///< nothing: its team's, or 1
  bool operator==(const Tier&) const = default;
};

}  // namespace perseus::jobs
