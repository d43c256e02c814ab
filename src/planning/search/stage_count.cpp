#include "planning/search/stage_count.h"

#include <fmt/format.h>

#include <algorithm>

#include "planning/model/instruction.h"

namespace perseus::search {
namespace {

Error bad_cut(std::string message) { return {ErrorCode::invalid_input, "profile: " + std::move(message)}; }

bool is_load(const model::ProfileEntry& entry) { return entry.instruction == model::name_of(model::Instruction::load); }

model::Profile divided(const model::Profile& profile, int chunks) {
  model::Profile result;
  const int last = profile.num_stages() - 1;
  for (int stage = 0; stage <= last; ++stage) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      result.accelerators.push_back(profile.accelerators[stage]);
      for (const model::ProfileEntry& entry : profile.entries) {
        if (entry.stage != stage) continue;
        const bool loads_here = chunk == (stage == last && stage > 0 ? chunks - 1 : 0);
        if (is_load(entry) && !loads_here) continue;
        model::ProfileEntry part = entry;
        part.stage = stage * chunks + chunk;
        for (model::Measurement& m : part.measurements) {
          if (!is_load(entry)) m.time = m.time / chunks, m.energy = m.energy / chunks;
          m.time_stddev = Seconds(), m.energy_stddev = Joules();
        }
        result.entries.push_back(std::move(part));
      }
    }
  }
  return result;
}

Result<model::Profile> merged(const model::Profile& profile, int together) {
  model::Profile result;
  const int num_stages = profile.num_stages() / together;
  for (int stage = 0; stage < num_stages; ++stage) {
    const int first = stage * together;
    result.accelerators.push_back(profile.accelerators[first]);
    for (int part = first; part < first + together; ++part) {
      if (profile.accelerators[part] != profile.accelerators[first]) {
        return bad_cut(fmt::format("stages {} and {} have {} and {} accelerators; to be merged they need equally many",
                                   first, part, profile.accelerators[first], profile.accelerators[part]));
      }
    }
    std::vector<model::ProfileEntry> sums;
    std::vector<int> parts;  // per sum
    for (const model::ProfileEntry& entry : profile.entries) {
      if (entry.stage < first || entry.stage >= first + together) continue;
      const auto found = std::ranges::find(sums, entry.instruction, &model::ProfileEntry::instruction);
      if (found == sums.end()) {
        sums.push_back(entry);
        sums.back().stage = stage;
        for (model::Measurement& m : sums.back().measurements) m.time_stddev = Seconds(), m.energy_stddev = Joules();
        parts.push_back(1);
        continue;
      }
      ++parts[found - sums.begin()];
      std::vector<model::Measurement> common;
      for (const model::Measurement& sum : found->measurements) {
        const auto more = std::ranges::find(entry.measurements, sum.clock, &model::Measurement::clock);
        if (more == entry.measurements.end()) continue;
        common.push_back({sum.clock, sum.time + more->time, sum.energy + more->energy, {}, {}, sum.samples});
      }
      if (common.empty()) {
        return bad_cut(fmt::format("{} of stages {} to {} shares no clock, so they cannot be merged", entry.instruction,
                                   first, entry.stage));
      }
      found->measurements = std::move(common);
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto instruction = model::instruction_named(sums[i].instruction);
      if (parts[i] == together || (instruction && model::is_constant_time(*instruction))) continue;
      return bad_cut(fmt::format("only {} of stages {} to {} have {}; to be merged all need it", parts[i], first,
                                 first + together - 1, sums[i].instruction));
    }
    std::ranges::move(sums, std::back_inserter(result.entries));
  }
  return result;
}

}  // namespace

Result<model::Profile> with_stages(const model::Profile& profile, int num_stages) {
  const int measured = profile.num_stages();
  if (num_stages == measured) return profile;
  if (num_stages >= 1 && num_stages % measured == 0) return divided(profile, num_stages / measured);
  if (num_stages >= 1 && measured % num_stages == 0) return merged(profile, measured / num_stages);
  return bad_cut(
      fmt::format("{} stages are needed and {} were measured; allowed: a multiple or a divisor", num_stages, measured));
}

std::optional<std::vector<int>> with_stages(const std::vector<int>& layers_per_stage, int num_stages) {
  const int known = static_cast<int>(layers_per_stage.size()), parts = std::max(known, num_stages);
  PERSEUS_CHECK(num_stages % known == 0 || known % num_stages == 0, "a multiple or a divisor");
  const int chunks = parts / known;
  std::vector<int> result(num_stages);
  for (int part = 0; part < parts; ++part) {
    const int layers = layers_per_stage[part * known / parts];
    if (layers % chunks != 0) return std::nullopt;
    result[part * num_stages / parts] += layers / chunks;
  }
  return result;
}

}  // namespace perseus::search
