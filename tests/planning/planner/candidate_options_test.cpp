#include "planning/planner/candidate_options.h"

#include <gmock/gmock.h>

namespace perseus::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;

model::Measurement option(double time_s, double energy_j) {
  model::Measurement measurement;
  measurement.time = Seconds(time_s);
  measurement.energy = Joules(energy_j);
  return measurement;
}

TEST(CandidateOptions, DropsSlowerOptionsThatTakeMoreRawEnergy) {
  const auto candidates = candidate_options(
      {option(0.0105, 9), option(0.0125, 10), option(0.0145, 5), option(0.0165, 5), option(0.0185, 6)}, Seconds(0.001));
  EXPECT_THAT(candidates, ElementsAre(FieldsAre(3, 16), FieldsAre(2, 14), FieldsAre(0, 10)));
}

TEST(CandidateOptions, KeepsTheMostEnergyAmongEqualUnits) {
  const auto candidates =
      candidate_options({option(0.0107, 8.0), option(0.0101, 8.7), option(0.0104, 8.5)}, Seconds(0.001));
  EXPECT_THAT(candidates, ElementsAre(FieldsAre(1, 10)));
}

TEST(CandidateOptions, OneOptionAndTimesShorterThanTheUnit) {
  EXPECT_THAT(candidate_options({option(0.0004, 1)}, Seconds(0.001)), ElementsAre(FieldsAre(0, 0)));
}

TEST(CandidateOptions, EqualTimesAreBothKeptUntilUnitsAreCompared) {
  EXPECT_THAT(candidate_options({option(0.01, 4), option(0.01, 3), option(0.02, 3)}, Seconds(0.001)),
              ElementsAre(FieldsAre(2, 20), FieldsAre(0, 10)));
}

TEST(FloorToUnits, MultiplesAreNotLostToRounding) {
  for (int k = 0; k < 1000; ++k) EXPECT_EQ(floor_to_units(Seconds(k * 0.0001), Seconds(0.0001)), k);
  EXPECT_EQ(floor_to_units(Seconds(0.0029999), Seconds(0.001)), 2);
}

}  // namespace
}  // namespace perseus::planner
