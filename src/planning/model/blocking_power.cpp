#include "planning/model/blocking_power.h"

#include <algorithm>

namespace perseus::model {

Watts guessed_blocking_power(const Profile& profile) {
  constexpr double share = 0.2;
  Watts highest;
  for (const ProfileEntry& entry : profile.entries) {
    for (const Measurement& m : entry.measurements) highest = std::max(highest, m.energy / m.time);
  }
  return share * highest;
}

}  // namespace perseus::model
