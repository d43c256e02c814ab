#include "server/profiling/link_times.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/median.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"

namespace perseus::profiling {
namespace {

constexpr double kWaitingShare = 0.5;  ///< of a latency: a sender that is idle for longer waits
// A receiver that is idle for longer than its own send and the variation of begin times has waited.
constexpr double kSendVaries = 1.1, kBeginsVary_s = 2e-4;

/// All instructions of the schedule at one clock, with negligible time.
model::Profile profile_of(const model::Schedule& schedule) {
  model::Profile profile;
  profile.accelerators.assign(static_cast<std::size_t>(schedule.num_stages), 1);
  std::set<std::pair<int, model::Instruction>> run;  // by stage, as in every profile
  for (const auto& actions : schedule.ranks) {
    for (const model::Action& action : actions) run.emplace(action.stage, action.instruction);
  }
  for (const auto& [stage, instruction] : run) {
    const Megahertz clock(model::is_constant_time(instruction) ? 0 : 1);
    profile.entries.push_back(
        {stage, std::string(model::name_of(instruction)), {{clock, Seconds(1), Joules(1), {}, {}, 1}}});
  }
  return profile;
}

/// The boundary of two ranks; nothing: they are not neighbors.
std::optional<std::size_t> boundary_of(std::pair<int, int> ranks, int num_ranks) {
  if (ranks.second == ranks.first + 1) return static_cast<std::size_t>(ranks.first);
  if (ranks.first == 0 && ranks.second == num_ranks - 1) return static_cast<std::size_t>(ranks.second);
  return std::nullopt;
}

}  // namespace

LinkTimes::LinkTimes(const model::Schedule& schedule) {
  for (const auto& actions : schedule.ranks) actions_.push_back(actions.size());
  const auto dag = model::build_dag(profile_of(schedule), schedule, {});
  if (!dag) return;
  std::vector<Place> place(dag->computations.size());
  for (int rank = 0; rank < dag->num_ranks(); ++rank) {
    const std::vector<int>& order = dag->rank_order[rank];
    if (order.size() != actions_[rank]) return;
    for (std::size_t a = 0; a < order.size(); ++a) place[order[a]] = {rank, static_cast<int>(a)};
  }
  for (const model::Dependency& d : dag->dependencies) {
    if (place[d.before].rank != place[d.after].rank) messages_.push_back({place[d.before], place[d.after]});
  }
}

bool LinkTimes::fits(const IterationTimes& iteration) const {
  if (iteration.size() != actions_.size()) return false;
  for (std::size_t rank = 0; rank < iteration.size(); ++rank) {
    if (iteration[rank].size() != actions_[rank]) return false;
    for (const RunTime& run : iteration[rank]) {
      if (!std::isfinite(run.begin_s) || !(run.end_s >= run.begin_s && std::isfinite(run.end_s))) return false;
    }
  }
  return true;
}

void LinkTimes::add(const IterationTimes& iteration) {
  if (!fits(iteration)) return;
  const auto at = [&](const Place& place) { return iteration[place.rank][place.action]; };
  std::map<Ranks, double> least_s;
  for (const Message& m : messages_) {
    const double gap_s = at(m.receiver).begin_s - at(m.sender).end_s;
    const auto [known, first] = least_s.try_emplace({m.sender.rank, m.receiver.rank}, gap_s);
    if (!first) known->second = std::min(known->second, gap_s);
  }
  const auto send_s = send_times(least_s);
  std::set<Ranks> waited;
  for (const Message& m : messages_) {
    const auto [rank, action] = m.receiver;
    const bool first = action == 0;
    const double idle_s = first ? HUGE_VAL : at(m.receiver).begin_s - iteration[rank][action - 1].end_s;
    if (first || idle_s > kSendVaries * send_s[rank][action] + kBeginsVary_s) waited.emplace(m.sender.rank, rank);
  }
  for (const auto& [ranks, gap_s] : least_s) {
    const Ranks other(ranks.second, ranks.first);
    const auto back = least_s.find(other);
    if (ranks.first > ranks.second || back == least_s.end()) continue;
    const double round_trip_s = std::max(0.0, gap_s + back->second);
    RoundTrips& all = round_trips_[ranks];
    ++all.iterations;
    all.bound_s = std::min(all.bound_s.value_or(round_trip_s), round_trip_s);
    if (waited.contains(ranks) && waited.contains(other)) all.waited_s.push_back(round_trip_s);
  }
  compare_sends(iteration, least_s, send_s);
}

std::vector<std::vector<double>> LinkTimes::send_times(const std::map<Ranks, double>& least_s) const {
  std::vector<std::vector<double>> send_s;
  for (const std::size_t actions : actions_) send_s.emplace_back(actions + 1);
  for (const Message& m : messages_) {
    const auto there = least_s.find({m.sender.rank, m.receiver.rank});
    const auto back = least_s.find({m.receiver.rank, m.sender.rank});
    if (back == least_s.end()) continue;
    double& own_s = send_s[m.sender.rank][m.sender.action + 1];
    own_s = std::max(own_s, (there->second + back->second) / 2);
  }
  return send_s;
}

/// Idle time of each sender before its next computation although the inputs of that computation are available.
void LinkTimes::compare_sends(const IterationTimes& iteration, const std::map<Ranks, double>& least_s,
                              const std::vector<std::vector<double>>& send_s) {
  std::vector<std::vector<double>> inputs_s;  // when an action's inputs are available
  for (const std::size_t actions : actions_) inputs_s.emplace_back(actions, -HUGE_VAL);
  for (const Message& m : messages_) {
    double& own_s = inputs_s[m.receiver.rank][m.receiver.action];
    const double there_s = least_s.at({m.sender.rank, m.receiver.rank});
    own_s = std::max(own_s, iteration[m.sender.rank][m.sender.action].end_s + there_s);
  }
  for (std::size_t rank = 0; rank < actions_.size(); ++rank) {
    for (std::size_t a = 1; a < actions_[rank]; ++a) {
      const double end_s = iteration[rank][a - 1].end_s;
      if (send_s[rank][a] <= 0 || inputs_s[rank][a] > end_s) continue;
      sender_idle_.push_back((iteration[rank][a].begin_s - end_s) / send_s[rank][a]);
    }
  }
}

std::optional<MeasuredLinks> LinkTimes::links() const {
  const int num_ranks = static_cast<int>(actions_.size());
  std::vector<std::optional<Seconds>> latencies(static_cast<std::size_t>(std::max(num_ranks, 1)));
  for (const auto& [ranks, all] : round_trips_) {
    const auto boundary = boundary_of(ranks, num_ranks);
    if (!boundary || all.iterations < kLeastIterations) return std::nullopt;
    const bool waited = all.waited_s.size() >= kLeastIterations;
    latencies[*boundary] = Seconds((waited ? median(all.waited_s) : *all.bound_s) / 2);
  }
  // The boundary between the last rank and the first may be unused.
  if (!latencies.back()) latencies.pop_back();
  if (latencies.empty()) return std::nullopt;
  MeasuredLinks links;
  for (const auto& latency : latencies) {
    if (!latency) return std::nullopt;
    links.latency.boundaries.push_back({*latency, *latency});
  }
  links.blocking_transfers = !sender_idle_.empty() && median(sender_idle_) > kWaitingShare;
  return links;
}

}  // namespace perseus::profiling
