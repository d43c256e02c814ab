#include "tests/server/simulation/simulated_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error_table.h"
#include "tests/server/simulation/simulated_calls.h"

namespace perseus::testing {
namespace {

constexpr double kDay_s = 86'400;
constexpr double kSoon_s = 0.6;  // more than kLate_s of the promises
const std::map<std::string, int> kProfiles{{"short", 3}, {"long", 6}};

}  // namespace

bool SimulatedJob::runs() const {
  return !finished && !ranks.empty() && std::ranges::all_of(ranks, &SimulatedRank::alive);
}

/// With one pipeline: what its clocks draw.
Watts SimulatedJob::draws(double now_s) const {
  const double period_s = std::max(ranks[0].process.period_s(now_s), ranks[1].process.period_s(now_s));
  return mean_power({microbatches, {ranks[0].process.clocks(now_s), ranks[1].process.clocks(now_s)}, period_s});
}

SimulatedCluster::SimulatedCluster(std::uint64_t seed) : dice_(seed), seed_(seed) {
  options_.host = this;
  options_.idle_expiry_s = kDay_s / 4;
  options_.plan_deadlines = 40;  // what plans cost counts, not how many there are to choose from
  server_ = std::make_unique<InProcess>(options_, database_with(kProfiles, options_));
  up_s_ = well_s_ = awake_s_ = now_s();
}

std::string SimulatedCluster::random_id() { return fmt::format("{:016x}{:016x}", seed_, ++ids_); }

SimulatedCluster::~SimulatedCluster() { *run_ = -1; }

void SimulatedCluster::live(double days) {
  const double until_s = seconds_ + days * kDay_s;
  for (int jobs = dice_.roll(1, 3); jobs > 0; --jobs) job_comes();
  while (seconds_ < until_s) {
    ++figures_.actions;
    act();
    pass(dice_.one_in(4) ? dice_.real(5, 30) : dice_.real(0.25, 3));
    if (!dice_.one_in(3)) continue;
    const double rest_s = dice_.one_in(2) ? dice_.real(60, 3600) : dice_.real(1, 9) * 3600;
    has_site_ ? sleep(rest_s) : pass(rest_s);
  }
}

// ---- Time

bool SimulatedCluster::healthy_for(double seconds) const {
  return trouble_ == Trouble::none && now_s() - std::max(well_s_, up_s_) >= seconds;
}

void SimulatedCluster::pass(double seconds) {
  const double until_s = seconds_ + seconds;
  double step_s = 0.5;
  while (seconds_ < until_s) {
    // Longer and longer steps where nothing is due.
    const double most_s = has_site_ ? 1 : trouble_ != Trouble::none ? 5 : 600;
    step_s = std::min(1.6 * step_s, most_s);
    const double moment_s = std::min({step_s, until_s - seconds_, std::max(0.01, next_due_s() + kSoon_s - now_s())});
    one_moment(moment_s, seconds_ + moment_s >= until_s);
  }
}

double SimulatedCluster::next_due_s() const {
  double next_s = std::numeric_limits<double>::infinity();
  for (const double at_s : straggles_s_) next_s = at_s > now_s() - kSoon_s ? std::min(next_s, at_s) : next_s;
  for (const TimedWait& one : timed_) next_s = one.until_s > now_s() - kSoon_s ? std::min(next_s, one.until_s) : next_s;
  return next_s;
}

void SimulatedCluster::end_trouble() {
  server_->break_store(false);
  server_->fill_disk(false);
  server_->lose_answers(false);
  trouble_ = Trouble::none;
  well_s_ = now_s();
}

void SimulatedCluster::one_moment(double seconds, bool thorough) {
  seconds_ += seconds;
  ++figures_.steps;
  server_->go_to_as_due(seconds_);
  if (trouble_ != Trouble::none && now_s() >= trouble_until_s_) {
    end_trouble();
    note("the database is well again");
    server_->freeze_store(false);
    server_->hold_answers(false);
    server_->hold_results(false);
    server_->go_to_as_due(seconds_);
  }
  ranks_act();
  server_->go_to_as_due(seconds_);
  check(thorough);
}

/// The machine of the server sleeps; its clock shows how long when it wakes up.
void SimulatedCluster::sleep(double seconds) {
  note(fmt::format("the server sleeps for {:.0f} s", seconds));
  figures_.slept_s += seconds;
  seconds_ += seconds;
  server_->sleep_until(seconds_);
  awake_s_ = now_s();
  one_moment(0);
  pass(2);
}

void SimulatedCluster::ranks_act() {
  for (const auto& job : jobs_) {
    for (SimulatedRank& rank : job->ranks) {
      if (!rank.alive || rank.process.is_cut_off(now_s())) continue;
      take_answer(*job, rank);
      // Its connection was open until now, or until it was answered.
      if (const auto wait = rank.process.waits(); wait && !server_->is_answered(*wait)) rank.contact_s = now_s();
      rank.process.act(*server_, dice_);
      take_answer(*job, rank);
      if (rank.process.waits()) rank.contact_s = now_s();
    }
  }
  for (auto& what : std::exchange(later_, {})) what();
}

/// The server has gone: it answers nothing that it was asked.
void SimulatedCluster::killed() {
  ++figures_.kills;
  run_ = std::make_shared<int>(*run_ + 1);
  calls_.clear();
  timed_.clear();
  up_s_ = now_s();
  for (const auto& job : jobs_) {
    for (SimulatedRank& rank : job->ranks) rank.process.disconnected(now_s());
    job->counted = 0;  // a crash may lose some reports
    job->late_steps = 0;
    subscribe(*job);
  }
}

void SimulatedCluster::note(std::string line) { trace_.add(fmt::format("{:10.2f} {}", seconds_, line)); }

/// Noted, since it may be found inside a call of the server; check() throws it.
void SimulatedCluster::broken(const std::string& what) {
  note("BROKEN: " + what);
  if (failure_.empty()) failure_ = what;
}

void SimulatedCluster::check_error(const Call& call, const Error& error) {
  if (error.code == ErrorCode::internal) broken(fmt::format("{}: answered by {}", call.what, error.message));
  if (error.code == ErrorCode::conflict && call.of_rank != nullptr && !call.of_rank->finished &&
      !call.of_rank->may_be_gone) {
    broken(fmt::format("{}: refused though it is the latest process: {}", call.what, error.message));
  }
  if (error.code == ErrorCode::unavailable && healthy_for(now_s() - call.sent_s + 30) &&
      error.message.find("revived") == std::string::npos) {
    broken(fmt::format("{}: refused though the database is well: {}", call.what, error.message));
  }
}

}  // namespace perseus::testing
