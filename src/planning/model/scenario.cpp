#include "planning/model/scenario.h"

#include <algorithm>
#include <array>

namespace perseus::model {
namespace {

constexpr std::array<std::string_view, 4> kCauseNames{"thermal", "power", "storage", "failure"};

}  // namespace

std::string_view name_of(StragglerCause cause) { return kCauseNames[static_cast<std::size_t>(cause)]; }

std::optional<StragglerCause> straggler_cause_named(std::string_view name) {
  const auto found = std::ranges::find(kCauseNames, name);
  if (found == kCauseNames.end()) return std::nullopt;
  return static_cast<StragglerCause>(found - kCauseNames.begin());
}

std::string_view name_of(Scaling scaling) { return scaling == Scaling::strong ? "strong" : "weak"; }

}  // namespace perseus::model
