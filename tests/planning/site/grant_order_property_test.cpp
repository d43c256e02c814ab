// Every interleaving of grants, deliveries, acknowledgements and restarts of small sites: what the jobs may draw never
// exceeds a limit.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "oracles/dice.h"
#include "planning/site/grant_order.h"

namespace perseus::site {
namespace {

/// A job of several ranks: the log has the grants, each rank follows one of them, and has acknowledged one.
struct Job {
  std::vector<int> grants;           ///< in W, in the order of the log
  std::vector<int> follows, logged;  ///< per rank: index of its grant; of the last one that the log knows it has
  auto operator<=>(const Job&) const = default;

  [[nodiscard]] int draws() const {
    int most = 0;
    for (const int version : follows) most = std::max(most, grants[version]);
    return most;
  }
  [[nodiscard]] int counted() const {
    const int first = *std::ranges::min_element(logged);
    return *std::max_element(grants.begin() + first, grants.end());
  }
};

struct State {
  std::vector<Job> jobs;
  std::size_t target = 0;  ///< index of the allocation in force
  auto operator<=>(const State&) const = default;
};

/// domains: the site, and one rack with the first two jobs.
struct Model {
  std::vector<model::PowerDomain> domains{{"site", -1}, {"rack", 0}};
  std::vector<Watts> limits;
  std::vector<std::vector<int>> targets;  ///< allocations, one after the other
  bool waits_for_others = true;           ///< false: the rule under test is removed

  [[nodiscard]] static int domain_of(std::size_t job) { return job < 2 ? 1 : 0; }
  [[nodiscard]] bool fits(const std::vector<int>& watts) const {
    int site = 0, rack = 0;
    for (std::size_t j = 0; j < watts.size(); ++j) {
      site += watts[j];
      if (domain_of(j) == 1) rack += watts[j];
    }
    return site <= limits[0].value() && rack <= limits[1].value();
  }

  /// A step of the server, which knows the log alone: so it is also that of a server that has just started.
  [[nodiscard]] State granted(State state) const {
    std::vector<GrantedPower> powers;
    for (std::size_t j = 0; j < state.jobs.size(); ++j) {
      const Job& job = state.jobs[j];
      const int counted = waits_for_others ? job.counted() : job.grants.back();
      powers.push_back({domain_of(j), Watts(counted), Watts(job.grants.back()), Watts(targets[state.target][j]), true});
    }
    const std::vector<Watts> next = next_grants(domains, limits, powers);
    for (std::size_t j = 0; j < next.size(); ++j) {
      const int watts = static_cast<int>(next[j].value());
      if (watts != state.jobs[j].grants.back()) state.jobs[j].grants.push_back(watts);
    }
    return state;
  }

  [[nodiscard]] std::vector<State> after(const State& state) const {
    std::vector<State> next{granted(state)};
    if (state.target + 1 < targets.size()) {
      next.push_back(state);
      ++next.back().target;
    }
    for (std::size_t j = 0; j < state.jobs.size(); ++j) {
      for (std::size_t r = 0; r < state.jobs[j].follows.size(); ++r) {
        State delivered = state;  // the newest grant, or one that is late
        for (int v = state.jobs[j].follows[r] + 1; v < static_cast<int>(state.jobs[j].grants.size()); ++v) {
          delivered.jobs[j].follows[r] = v;
          next.push_back(delivered);
        }
        State acknowledged = state;  // lost acknowledgements are those that never happen
        acknowledged.jobs[j].logged[r] = state.jobs[j].follows[r];
        next.push_back(acknowledged);
      }
    }
    return next;
  }

  /// The sum that is above a limit in some reachable state; nothing: none.
  [[nodiscard]] std::optional<State> first_above() const {
    State start;
    for (const int watts : targets[0]) start.jobs.push_back({{watts}, {0, 0}, {0, 0}});
    std::set<State> seen{start};
    std::vector<State> open{start};
    while (!open.empty()) {
      const State state = std::move(open.back());
      open.pop_back();
      std::vector<int> drawn;
      for (const Job& job : state.jobs) drawn.push_back(job.draws());
      if (!fits(drawn)) return state;
      for (State& next : after(state)) {
        if (seen.insert(next).second) open.push_back(std::move(next));
      }
    }
    return std::nullopt;
  }
};

Model two_swap() {
  Model model;
  model.limits = {Watts(5), Watts(4)};
  model.targets = {{3, 1, 1}, {1, 3, 1}};
  return model;
}

TEST(GrantOrder, NoInterleavingExceedsALimit) {
  Model model = two_swap();
  EXPECT_FALSE(model.first_above());
  model.targets = {{3, 1}, {1, 3}, {2, 2}};
  EXPECT_FALSE(model.first_above());
  model.targets = {{1, 1, 3}, {2, 2, 1}};
  EXPECT_FALSE(model.first_above());
}

TEST(GrantOrder, ARaiseThatDoesNotWaitExceedsALimit) {
  Model model = two_swap();
  model.waits_for_others = false;
  EXPECT_TRUE(model.first_above());
}

TEST(GrantOrder, FallsDoNotWait) {
  const std::vector<model::PowerDomain> domains{{"site", -1}};
  const std::vector<Watts> limits{Watts(3)};
  const std::vector<GrantedPower> jobs{{0, Watts(5), Watts(5), Watts(1), true},
                                       {0, Watts(1), Watts(1), Watts(2), true}};
  EXPECT_EQ(next_grants(domains, limits, jobs), (std::vector{Watts(1), Watts(1)}));
}

RC_GTEST_PROP(GrantOrderProperty, RandomWalksOfLargerSitesExceedNoLimit, ()) {
  testing::ShrinkingDice dice;
  Model model;
  const int jobs = dice.roll(2, 5);
  const auto random_target = [&] {
    std::vector<int> watts(static_cast<std::size_t>(jobs), 1);
    for (int more = 0; more < 3 * jobs; ++more) {
      std::vector<int> tried = watts;
      ++tried[static_cast<std::size_t>(dice.roll(0, jobs - 1))];
      if (model.fits(tried)) watts = tried;
    }
    return watts;
  };
  model.limits = {Watts(jobs + dice.roll(0, 6)), Watts(2 + dice.roll(0, 4))};
  for (int t = 0; t < 4; ++t) model.targets.push_back(random_target());
  State state;
  for (const int watts : model.targets[0]) state.jobs.push_back({{watts}, {0, 0, 0}, {0, 0, 0}});
  for (int step = 0; step < 60; ++step) {
    std::vector<State> next = model.after(state);
    state = std::move(next[static_cast<std::size_t>(dice.roll(0, static_cast<int>(next.size()) - 1))]);
    std::vector<int> drawn;
    for (const Job& job : state.jobs) drawn.push_back(job.draws());
    RC_ASSERT(model.fits(drawn));
  }
}

}  // namespace
}  // namespace perseus::site
