#include "tests/server/scenario/budgeted_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "training/device/gpu.h"

namespace perseus::testing {
namespace {

const std::vector<int> kClocks(kSmallClocks.begin(), kSmallClocks.end());

struct Measured {
  double time_s = 0, energy_j = 0;
};
/// Of a stage's forward ('f') or backward ('b') at a clock.
const Measured& measured(int stage, char instruction, int mhz) {
  static const auto table = [] {
    std::map<std::tuple<int, char, int>, Measured> all;
    std::ifstream file(std::string(PERSEUS_SOURCE_DIR) + "/tests/server/scenario/small.csv");
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::ranges::replace(line, ',', ' ');
      std::stringstream fields(line);
      int of = 0, clock = 0;
      std::string name;
      Measured one;
      fields >> of >> name >> clock >> one.time_s >> one.energy_j;
      all[{of, name[0], clock}] = one;
    }
    return all;
  }();
  return table.at({stage, instruction, mhz});
}

struct Computation {
  char instruction = 'f';
  int microbatch = 0;
};
std::vector<Computation> one_f_one_b(int stage, int microbatches) {
  std::vector<Computation> steps;
  const int ahead = std::min(2 - stage, microbatches);
  for (int m = 0; m < ahead; ++m) steps.push_back({'f', m});
  for (int m = 0; m < microbatches; ++m) {
    steps.push_back({'b', m});
    if (m + ahead < microbatches) steps.push_back({'f', m + ahead});
  }
  return steps;
}

std::int64_t ns(double seconds) { return static_cast<std::int64_t>(1e9 * seconds); }

}  // namespace

Watts mean_power(const TwoStageClocks& clocks) {
  const int microbatches = clocks.microbatches;
  std::array<std::vector<double>, 2> forward, backward;  // ends, by microbatch
  for (int s = 0; s < 2; ++s) {
    forward[s].assign(microbatches, -1);
    backward[s].assign(microbatches, -1);
  }
  const std::array steps{one_f_one_b(0, microbatches), one_f_one_b(1, microbatches)};
  std::array<std::size_t, 2> next{};
  std::array<double, 2> free_s{}, busy_s{};
  double energy_j = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < 2; ++s) {
      if (next[s] == steps[s].size()) continue;
      const auto [instruction, m] = steps[s][next[s]];
      double ready_s = 0;
      if (instruction == 'f' && s == 1) ready_s = forward[0][m];
      if (instruction == 'b') ready_s = s == 0 ? backward[1][m] : forward[1][m];
      if (ready_s < 0) continue;
      const Measured& cost = measured(s, instruction, clocks.mhz[s][next[s]]);
      free_s[s] = std::max(free_s[s], ready_s) + cost.time_s;
      busy_s[s] += cost.time_s;
      energy_j += cost.energy_j;
      (instruction == 'f' ? forward : backward)[s][m] = free_s[s];
      ++next[s];
      moved = true;
    }
  }
  const double time_s = std::max({free_s[0], free_s[1], clocks.period_s});
  energy_j += kBlocking_w * (2 * time_s - busy_s[0] - busy_s[1]);
  return Watts(energy_j / time_s);
}

Watts mean_power_at(int microbatches, int mhz) {
  const std::vector<int> all(2 * static_cast<std::size_t>(microbatches), mhz);
  return mean_power({microbatches, {all, all}});
}

BudgetedRank::BudgetedRank(std::string job, int rank, int microbatches, std::string host)
    : job_(std::move(job)), host_(std::move(host)), rank_(rank), microbatches_(microbatches) {}

void BudgetedRank::start(InProcess& server, bool keeps_budgets, bool paces, work::Done<jobs::RegisterRankAnswer> done) {
  jobs::RegisterRank request = rank_of(job_, {1, 2, 1}, rank_);
  request.host = host_;
  request.accelerator = fmt::format("{}-gpu-{}", job_, rank_);
  request.epoch = ++epoch_;
  request.keeps_budgets = keeps_budgets_ = keeps_budgets;
  request.paces = paces_ = keeps_budgets && paces;
  period_s_ = 0;
  ahead_.clear();
  // Where the store fails, it is registered by a later call, or not at all.
  server.service().registrations.register_rank(request, std::move(done));
  server.settle();
  version_ = 0;
  plan_.clear();
  lease_s_.reset();
  limit_ = std::make_unique<clock_control::ClockLimit>();
  wait_.reset();
  ask_s_ = server.now_s();
}

void BudgetedRank::end(InProcess& server, bool closes) {
  for (const int wait : std::exchange(open_, {})) {
    if (server.is_answered(wait)) continue;
    closes ? server.close_wait(wait) : server.lose_wait(wait);
  }
  wait_.reset();
}

void BudgetedRank::disconnected(double now_s) {
  wait_.reset();
  open_.clear();
  ask_s_ = now_s;
}

void BudgetedRank::act(InProcess& server, Dice& dice) {
  const double now_s = server.now_s();
  if (is_cut_off(now_s)) {
    wait_.reset();
    return;
  }
  if (!wait_ && now_s >= ask_s_) {
    jobs::WaitForPlan request{job_, rank_, version_, std::nullopt, std::nullopt, epoch_};
    std::erase_if(open_, [&](int wait) { return server.is_answered(wait); });
    if (dice.one_in(10)) open_.push_back(server.wait_for_plan(request));  // sent twice; the first answer is not read
    wait_ = server.wait_for_plan(request);
    open_.push_back(*wait_);
    asked_s_ = now_s;
    arrives_s_.reset();
  }
  if (!wait_) return;
  if (!server.is_answered(*wait_) && now_s < asked_s_ + patience_s_) return;
  const auto answer = server.answer_of(*wait_);
  if (answer && !arrives_s_) {
    arrives_s_ = now_s + (dice.one_in(4) ? dice.real(0, 1) : 0);
    lost_ = dice.one_in(20);
  }
  if (answer && now_s < *arrives_s_) return;
  wait_.reset();
  ask_s_ = now_s;
  if (!answer || lost_) return;
  if (*answer) {
    arrives(**answer, now_s);
  } else {
    ask_s_ = now_s + 1;
  }
}

void BudgetedRank::arrives(const jobs::PlanAnswer& answer, double now_s) {
  if (answer.schedule) {
    version_ = answer.schedule->version;
    plan_.clear();
    if (answer.schedule->kind != jobs::StageSchedule::Kind::maximum_clock) {
      for (const formats::ClockedInstruction& one : answer.schedule->clocks) plan_.push_back(one.clock.value());
    }
    if (!keeps_budgets_) return;
    if (answer.schedule->budget) return obey(*answer.schedule->budget, now_s);
    lease_s_.reset();
    limit_->set(Megahertz(0), 0);
    limit_->falls({});
    period_s_ = 0;
    ahead_.clear();
  } else if (lease_s_) {
    limit_->extend(ns(now_s + *lease_s_));
  }
}

void BudgetedRank::obey(const jobs::PowerBudget& budget, double now_s) {
  lease_s_ = budget.lease_s;
  limit_->set(Megahertz(device::highest_within(kClocks, budget.ceiling_mhz)), ns(now_s + budget.lease_s));
  std::vector<clock_control::CeilingFall> falls;
  for (const jobs::LaterBudget& later : budget.ahead) {
    falls.push_back({ns(later.at_s), Megahertz(device::highest_within(kClocks, later.ceiling_mhz))});
  }
  limit_->falls(falls);
  constexpr double least_of_a_microbatch_s = 0.3;
  earlier_period_s_ = period_s(now_s);
  paces_from_s_ = now_s + least_of_a_microbatch_s * microbatches_;
  period_s_ = paces_ ? budget.paced_iteration_s : 0;
  ahead_ = budget.ahead;
}

double BudgetedRank::period_s(double now_s) const {
  double period_s = now_s < paces_from_s_ ? std::min(earlier_period_s_, period_s_) : period_s_;
  for (const jobs::LaterBudget& later : ahead_) {
    if (paces_ && later.at_s <= now_s) period_s = std::max(period_s, later.paced_iteration_s);
  }
  return period_s;
}

std::vector<int> BudgetedRank::clocks(double now_s) const {
  const clock_control::ClockBounds bounds = limit_->at(ns(now_s));
  std::vector<int> clocks = plan_;
  if (clocks.empty()) {
    clocks.assign(2 * static_cast<std::size_t>(microbatches_), kClocks.front());
    if (bounds.unlocked.value() != 0) clocks.assign(clocks.size(), bounds.unlocked.value());
  } else if (bounds.locked.value() != 0) {
    for (int& clock : clocks) clock = std::min(clock, bounds.locked.value());
  }
  return clocks;
}

bool BudgetedRank::is_expired(double now_s) const { return limit_->at(ns(now_s)).expired; }

std::string BudgetedRank::text(double now_s) const {
  return fmt::format("rank {}, version {}{}, ceiling {} MHz, plan {}: {} MHz", rank_, version_,
                     is_expired(now_s) ? " (expired)" : "", limit_->ceiling().value(), plan_.empty() ? "none" : "some",
                     fmt::join(clocks(now_s), " "));
}

}  // namespace perseus::testing
