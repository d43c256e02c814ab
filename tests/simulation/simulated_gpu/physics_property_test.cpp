// The physics on random sequences of events: reading changes nothing, and small steps of a naive simulation give the
// same result.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "simulation/simulated_gpu/physics.h"

namespace perseus::simulated_gpu {
namespace {

struct Event {
  enum Kind { begins, waits, idles, locks, unlocks, limits } kind;
  double after_s;  ///< after the previous event
  int which;       ///< computation or clock
  double limit_w;
};

struct Story {
  std::unique_ptr<Spec> spec = std::make_unique<Spec>();
  std::vector<Event> events;
};

double between(double least, double most) { return least + (most - least) * *rc::gen::inRange(0, 1001) / 1000.0; }

Story any_story() {
  Story story;
  Spec& spec = *story.spec;
  spec.clocks = *rc::gen::inRange(1, 6);
  spec.computations = 2;
  for (int k = 0; k < spec.clocks; ++k) {
    spec.clock_mhz[k] = 1400 - 100 * k;
    spec.blocking_w[k] = between(60, 90);
    spec.switch_latency_s[k] = *rc::gen::element(0.0, 0.01, 0.2);
    for (int c = 0; c < 2; ++c) {
      spec.time_s[c][k] = between(0.05, 0.5);
      spec.power_w[c][k] = between(100, 400);
    }
  }
  spec.idle_w = 50;
  spec.refresh_s = *rc::gen::element(0.0, 0.03, 0.1);
  spec.default_limit_w = 500;
  spec.made_s = 10;
  const int count = *rc::gen::inRange(1, 15);
  for (int i = 0; i < count; ++i) {
    story.events.push_back({static_cast<Event::Kind>(*rc::gen::inRange(0, 6)), between(0, 0.4), *rc::gen::inRange(0, 2),
                            between(50, 450)});
    if (story.events.back().kind == Event::locks) story.events.back().which = *rc::gen::inRange(0, int{spec.clocks});
  }
  return story;
}

void happen(const Event& event, const Spec& spec, State& state, Marks& marks) {
  switch (event.kind) {
    case Event::begins:
      begin(spec, state, marks, event.which);
      break;
    case Event::waits:
      rest(state, marks, kWaiting);
      break;
    case Event::idles:
      rest(state, marks, kIdle);
      break;
    case Event::locks:
      lock(spec, state, marks, event.which);
      break;
    case Event::unlocks:
      lock(spec, state, marks, -1);
      break;
    case Event::limits:
      limit_power(state, marks, event.limit_w);
      break;
  }
}

/// Runs the events, and reads the state this many times between two events.
State state_after(const Story& story, int looks, Marks& marks) {
  const Spec& spec = *story.spec;
  State state = initial_state(spec, 450, marks);
  double now_s = spec.made_s;
  const auto pass = [&](double dt) {
    for (int i = 1; i <= looks; ++i) advance(spec, state, marks, now_s + dt * i / (looks + 1));
    now_s += dt;
    advance(spec, state, marks, now_s);
  };
  for (const Event& event : story.events) {
    pass(event.after_s);
    happen(event, spec, state, marks);
  }
  pass(1);
  return state;
}

/// The same in steps of `dt`, written from the description and not from the code.
struct Naive {
  double energy_j = 0, run_energy_j[2] = {0, 0};
  int runs[2] = {0, 0};
};
Naive naively(const Story& story, double dt) {
  const Spec& spec = *story.spec;
  Naive naive;
  int clock = 0, target = -1, next = -1, doing = kIdle;
  double switch_s = 0, left = 0, limit_w = 450, now_s = spec.made_s, this_run_j = 0;
  const auto watts = [&](int at) {
    return doing == kIdle ? spec.idle_w : doing == kWaiting ? spec.blocking_w[at] : spec.power_w[doing][at];
  };
  const auto pass = [&](double seconds) {
    const double end_s = now_s + seconds;
    while (now_s < end_s) {
      const double step = std::min(dt, end_s - now_s);
      if (target >= 0 && now_s >= switch_s) {
        clock = target;
        target = next;
        next = -1;
        if (target >= 0) switch_s = now_s + spec.switch_latency_s[target];
      }
      int held = clock;
      while (held + 1 < spec.clocks && watts(held) > limit_w) ++held;
      naive.energy_j += watts(held) * step;
      if (doing >= 0) {
        this_run_j += watts(held) * step;
        left -= step / spec.time_s[doing][held];
        if (left <= 0) {
          ++naive.runs[doing];
          naive.run_energy_j[doing] += this_run_j;
          doing = kWaiting;
        }
      }
      now_s += step;
    }
  };
  for (const Event& event : story.events) {
    pass(event.after_s);
    if (event.kind == Event::begins) {
      doing = event.which;
      left = 1;
      this_run_j = 0;
    } else if (event.kind == Event::waits || event.kind == Event::idles) {
      doing = event.kind == Event::waits ? kWaiting : kIdle;
    } else if (event.kind == Event::limits) {
      limit_w = event.limit_w;
    } else {
      const int wanted = event.kind == Event::locks ? event.which : 0;
      if (target >= 0) {
        next = wanted == target ? -1 : wanted;
      } else if (wanted != clock) {
        target = wanted;
        switch_s = now_s + spec.switch_latency_s[wanted];
      }
    }
  }
  pass(1);
  return naive;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * (1 + std::abs(a)); }

TEST(PhysicsProperty, LookingChangesNothing) {
  const bool holds = rc::check([] {
    const Story story = any_story();
    const auto marks = std::make_unique<Marks>();
    const State once = state_after(story, 0, *marks), often = state_after(story, *rc::gen::inRange(1, 20), *marks);
    RC_ASSERT(near(once.energy_j, often.energy_j));
    RC_ASSERT(near(once.counter_j, often.counter_j) || story.spec->refresh_s > 0);
    RC_ASSERT(std::abs(once.counter_j - often.counter_j) <= 1e-6);
    RC_ASSERT(near(once.capped_s, often.capped_s));
    RC_ASSERT(once.clock == often.clock && once.activity == often.activity);
    for (int c = 0; c < 2; ++c) {
      RC_ASSERT(once.truth[c].runs == often.truth[c].runs);
      RC_ASSERT(near(once.truth[c].time_s, often.truth[c].time_s));
      RC_ASSERT(near(once.truth[c].energy_j, often.truth[c].energy_j));
    }
  });
  EXPECT_TRUE(holds);
}

TEST(PhysicsProperty, SmallStepsComeToTheSame) {
  const bool holds = rc::check([] {
    const Story story = any_story();
    const auto marks = std::make_unique<Marks>();
    const State exact = state_after(story, 2, *marks);
    constexpr double dt = 1e-4;
    const Naive naive = naively(story, dt);
    // Each event, end of a computation and switch may be late by one step.
    const double slack_j = 400 * dt * 3 * static_cast<double>(story.events.size() + 1);
    RC_ASSERT(std::abs(exact.energy_j - naive.energy_j) <= slack_j);
    for (int c = 0; c < 2; ++c) {
      // A computation that ends just when it is interrupted may count here and not there.
      const auto run_j = [&](const auto& energy_j, auto runs) {
        return runs == 0 ? 0 : energy_j / static_cast<double>(runs);
      };
      RC_ASSERT(std::abs(static_cast<double>(exact.truth[c].runs) - naive.runs[c]) <= 1);
      if (exact.truth[c].runs == naive.runs[c]) {
        RC_ASSERT(std::abs(run_j(exact.truth[c].energy_j, exact.truth[c].runs) -
                           run_j(naive.run_energy_j[c], naive.runs[c])) <= slack_j);
      }
    }
  });
  EXPECT_TRUE(holds);
}

TEST(PhysicsProperty, TheRemainingTimeIsTheTimeTaken) {
  const bool holds = rc::check([] {
    const Story story = any_story();
    const Spec& spec = *story.spec;
    const auto marks = std::make_unique<Marks>();
    State state = state_after(story, 0, *marks);
    lock(spec, state, *marks, *rc::gen::inRange(0, int{spec.clocks}));
    begin(spec, state, *marks, 0);
    const std::int64_t before = state.truth[0].runs;
    const double left_s = remaining_s(spec, state);
    RC_ASSERT(left_s > 0);
    advance(spec, state, *marks, state.now_s + left_s * (1 - 1e-9));
    RC_ASSERT(state.truth[0].runs == before);
    advance(spec, state, *marks, state.now_s + left_s * 1e-8);
    RC_ASSERT(state.truth[0].runs == before + 1);
    RC_ASSERT(remaining_s(spec, state) == 0);
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace perseus::simulated_gpu
