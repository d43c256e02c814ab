#include "server/power/profile_power.h"

#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "server/plans/stored_profiles.h"
#include "server/profiles/known_profile.h"

namespace perseus::power {

Result<policies::PowerChoices> choices_of_frontier(store::Store& store, const std::string& key, int accelerators,
                                                   const std::string& whose) {
  for (const std::string& known : {key, jobs::quick_frontier_key(key)}) {
    const auto text = store.blob("frontier/" + known);
    if (!text) return text.error();
    if (!*text) continue;
    auto parsed = jobs::parse_frontier(known, **text);
    if (!parsed) return parsed.error();
    const auto pipeline = std::make_shared<const jobs::CharacterizedPipeline>(*std::move(parsed));
    const double scale = static_cast<double>(accelerators) /
                         std::accumulate(pipeline->dag.accelerators.begin(), pipeline->dag.accelerators.end(), 0);
    const Seconds fastest = pipeline->frontier.points.back().time;
    const Watts all_max =
        pipeline->all_max_effective_energy / pipeline->all_max_time + pipeline->dag.total_blocking_power();
    const std::vector<policies::PolicyScope> groups{{pipeline.get(), scale, 1, 0}};
    return policies::PowerChoices{
        policies::powers_from(groups, fastest, Seconds(0)), fastest, scale * all_max, {}, {{pipeline, scale, 0}}};
  }
  return Error{ErrorCode::unavailable,
               fmt::format("{} has no frontier yet: repeat the request, or give accelerator_w", whose)};
}

Result<policies::PowerChoices> choices_of_profile(store::Store& store, const std::string& name, int accelerators,
                                                  const jobs::InputLimits& limits) {
  const auto profile = plans::read_named_profile(store, name);
  if (!profile) return profile.error();
  const auto known = profiles::known_input(profile->profile_csv, profile->shape, limits, name, {});
  if (!known) return known.error();
  return choices_of_frontier(store, known->event.input, accelerators, fmt::format("the profile '{}'", name));
}

}  // namespace perseus::power
