#include "planning/planner/choices.h"

#include <gtest/gtest.h>

namespace perseus::planner {
namespace {

model::Measurement at(int mhz, double time_s, double energy_j) {
  model::Measurement m;
  m.clock = Megahertz(mhz);
  m.time = Seconds(time_s);
  m.energy = Joules(energy_j);
  return m;
}

std::vector<int> options_of(const ChoiceSet& set) {
  std::vector<int> options;
  for (const Choice& choice : set.pareto) options.push_back(choice.option);
  return options;
}

TEST(Choices, KeepTheParetoSetSlowestFirst) {
  // 1300 MHz is slower and needs more energy than 1200; 1000 saves nothing over 1100.
  const std::vector<model::Measurement> options{at(1400, 1.0, 10), at(1300, 1.3, 9), at(1200, 1.2, 8), at(1100, 1.4, 6),
                                                at(1000, 1.6, 6)};
  EXPECT_EQ(options_of(make_choices(options, Watts(0))), (std::vector<int>{3, 2, 0}));
}

TEST(Choices, FilterEffectiveEnergyNotRawEnergy) {
  // By raw energy the second is useless; waiting would cost more than the energy it adds.
  const std::vector<model::Measurement> options{at(1400, 1.0, 10), at(1000, 2.0, 11)};
  EXPECT_EQ(options_of(make_choices(options, Watts(0))), (std::vector<int>{0}));
  EXPECT_EQ(options_of(make_choices(options, Watts(5))), (std::vector<int>{1, 0}));
}

TEST(Choices, TheHullExcludesChoicesAboveIt) {
  const std::vector<model::Measurement> options{at(1400, 1.0, 10), at(1300, 1.5, 9.5), at(1200, 2.0, 5),
                                                at(1100, 3.0, 4)};
  const ChoiceSet set = make_choices(options, Watts(0));
  EXPECT_EQ(options_of(set), (std::vector<int>{3, 2, 1, 0}));
  EXPECT_EQ(set.hull, (std::vector<int>{0, 1, 3}));
}

TEST(Choices, OfEqualOptionsOneIsKept) {
  const std::vector<model::Measurement> options{at(1400, 1.0, 10), at(1300, 1.0, 10), at(1200, 1.0, 9)};
  EXPECT_EQ(options_of(make_choices(options, Watts(0))), (std::vector<int>{2}));
}

}  // namespace
}  // namespace perseus::planner
