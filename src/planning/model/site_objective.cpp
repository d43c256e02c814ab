#include "planning/model/site_objective.h"

#include <algorithm>
#include <array>

namespace perseus::model {
namespace {

struct Name {
  SiteObjective objective;
  std::string_view name;
};
constexpr std::array kNames = {Name{SiteObjective::slowdown, "slowdown"}, Name{SiteObjective::throughput, "throughput"},
                               Name{SiteObjective::max_min, "max-min"}};

}  // namespace

std::string_view name_of(SiteObjective objective) {
  return std::ranges::find(kNames, objective, &Name::objective)->name;
}

std::optional<SiteObjective> site_objective_named(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name, &Name::name);
  if (found == kNames.end()) return std::nullopt;
  return found->objective;
}

std::vector<std::string_view> site_objective_names() {
  std::vector<std::string_view> names;
  for (const Name& name : kNames) names.push_back(name.name);
  return names;
}

double value_of(SiteObjective objective, const SiteJob& job, double rate) {
  switch (objective) {
    case SiteObjective::throughput:
      return job.weight * rate;
    case SiteObjective::slowdown:
      return -job.weight / rate;
    case SiteObjective::max_min:
      break;
  }
  return rate;
}

}  // namespace perseus::model
