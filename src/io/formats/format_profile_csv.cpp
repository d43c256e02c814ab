#include "io/formats/format_profile_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace perseus::formats {

std::string format_profile_csv(const model::Profile& profile) {
  const bool ranks = std::ranges::any_of(profile.accelerators, [](int count) { return count > 1; });
  const bool spread = std::ranges::any_of(profile.entries, [](const model::ProfileEntry& entry) {
    return std::ranges::any_of(entry.measurements, [](const model::Measurement& m) {
      return m.time_stddev > Seconds(0) || m.energy_stddev > Joules(0) || m.samples > 1;
    });
  });
  std::string csv = fmt::format("stage,instruction,frequency,time,energy{}{}\n", ranks ? ",rank" : "",
                                spread ? ",time_stddev,energy_stddev,samples" : "");
  int first_rank = 0;
  int stage = 0;
  for (const model::ProfileEntry& entry : profile.entries) {
    for (; stage < entry.stage; ++stage) first_rank += profile.accelerators[stage];
    const int count = profile.accelerators[stage];
    for (const model::Measurement& m : entry.measurements) {
      for (int rank = 0; rank < count; ++rank) {
        csv += fmt::format("{},{},{},{},{}", entry.stage, entry.instruction, m.clock.value(), m.time.value(),
                           m.energy.value() / count);
        if (ranks) csv += fmt::format(",{}", first_rank + rank);
        if (spread) {
          csv += fmt::format(",{},{},{}", m.time_stddev.value(), m.energy_stddev.value() / std::sqrt(count), m.samples);
        }
        csv += '\n';
      }
    }
  }
  return csv;
}

}  // namespace perseus::formats
