#include "tests/server/scenario/deployed_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "server/jobs/pipeline_input.h"

namespace perseus::testing {
namespace {

struct FrontierTimes {
  model::Frontier frontier;
  Watts waiting;
};
/// Frontiers are stored under the hash of their input, so they may be kept between databases.
const FrontierTimes& frontier_of(const TestDatabase& database, const std::string& input) {
  static std::map<std::string, FrontierTimes> known;
  auto found = known.find(input);
  if (found == known.end()) {
    auto parsed = jobs::parse_frontier(input, database.blob("frontier/" + input));
    PERSEUS_CHECK(parsed.ok(), "a stored frontier");
    const Watts waiting = parsed->dag.total_blocking_power();
    found = known.emplace(input, FrontierTimes{std::move(parsed->frontier), waiting}).first;
  }
  return found->second;
}

/// The slowest point that is fast enough, by looking at every point.
int slowest_within(const model::Frontier& frontier, Seconds deadline) {
  for (std::size_t i = 0; i < frontier.points.size(); ++i) {
    if (frontier.points[i].time <= (1 + 1e-9) * deadline) return static_cast<int>(i);
  }
  return static_cast<int>(frontier.points.size()) - 1;
}

/// The time between these at which the pipelines (waiting stragglers included) draw least, by trying all.
Seconds cheapest(const std::vector<const FrontierTimes*>& pipelines, const std::vector<double>& degrees,
                 Seconds at_least, Seconds at_most) {
  const auto energy = [&](Seconds time) {
    Joules sum;
    for (std::size_t p = 0; p < pipelines.size(); ++p) {
      const auto& points = pipelines[p]->frontier.points;
      sum += pipelines[p]->waiting * time;
      if (degrees[p] <= 1) sum += points[slowest_within(pipelines[p]->frontier, time)].effective_energy;
    }
    return sum;
  };
  Seconds best = at_least;
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    if (degrees[p] > 1) continue;
    for (const model::FrontierPoint& point : pipelines[p]->frontier.points) {
      const bool allowed = point.time > at_least && point.time <= (1 + 1e-9) * at_most;
      if (allowed && energy(point.time) < energy(best)) best = point.time;
    }
  }
  return best;
}

/// In effect, and no later one of the same source is.
bool holds(const jobs::Job& job, const jobs::Notice& notice, double now_s) {
  const auto in_effect = [&](const jobs::Notice& n) { return n.in_force || n.effective_s <= now_s; };
  const auto replaces = [&](const jobs::Notice& n) {
    const bool same_source =
        n.target == notice.target && n.pipeline == notice.pipeline && n.detected == notice.detected;
    return same_source && in_effect(n) && n.effective_s > notice.effective_s;
  };
  return in_effect(notice) && std::ranges::none_of(job.notices, replaces);
}

double tolerated_slowdown(const jobs::Job& job, double now_s) {
  const auto found = job.policies.find("max_slowdown");
  if (found == job.policies.end()) return 1;
  const auto& policy = std::get<jobs::MaxSlowdown>(found->second);
  double level = -INFINITY;
  for (const auto& sample : policy.signal) {
    if (sample.from_s <= now_s) level = sample.value;
  }
  return level > policy.threshold ? policy.slowdown : 1;
}

}  // namespace

std::vector<int> wanted_points(const TestDatabase& database, const jobs::Job& job, double now_s) {
  std::vector<double> degrees(job.num_pipelines(), 1);
  for (const jobs::Notice& n : job.notices) {
    if (holds(job, n, now_s)) degrees[n.pipeline] = std::max(degrees[n.pipeline], n.degree);
  }
  Seconds at_least, t_min;
  std::vector<const FrontierTimes*> pipelines;
  for (int p = 0; p < job.num_pipelines(); ++p) {
    if (!database.has_blob("frontier/" + job.input_of[p])) return {};
    pipelines.push_back(&frontier_of(database, job.input_of[p]));
    const Seconds own = pipelines.back()->frontier.points.back().time;
    t_min = std::max(t_min, own);
    at_least = std::max(at_least, degrees[p] * own);
  }
  const double tolerated = tolerated_slowdown(job, now_s);
  Seconds pace = cheapest(pipelines, degrees, at_least, std::max(at_least, tolerated * t_min));
  if (const auto found = job.policies.find("pinned"); found != job.policies.end()) {
    const auto& points = frontier_of(database, job.input_of[0]).frontier.points;
    const auto point = static_cast<std::size_t>(*std::get<jobs::Pin>(found->second).point);
    pace = points[std::min(point, points.size() - 1)].time;
  }
  std::vector<int> wanted;
  for (int p = 0; p < job.num_pipelines(); ++p) {
    const model::Frontier& frontier = pipelines[p]->frontier;
    wanted.push_back(degrees[p] > 1 ? static_cast<int>(frontier.points.size()) - 1 : slowest_within(frontier, pace));
  }
  return wanted;
}

Status check_deployed_plan(const TestDatabase& database, const jobs::Job& job, double now_s) {
  if (!job.plan || !job.live()) return Ok{};
  const auto wrong = [&](const std::string& what) { return Error{ErrorCode::internal, job.id + ": " + what}; };
  for (const jobs::Notice& n : job.notices) {
    if (!n.in_force && n.effective_s <= now_s) return wrong("notice " + n.id + " is not in force at its time");
  }
  if (job.plan->budget) return Ok{};
  const std::vector<int> wanted = wanted_points(database, job, now_s);
  if (wanted.empty()) return wrong("it has a plan, and no frontier");
  for (int p = 0; p < job.num_pipelines(); ++p) {
    if (job.plan->of(p).input != job.input_of[p]) return wrong("its plan is of another input");
    if (job.plan->of(p).point != wanted[p]) {
      return wrong(fmt::format("pipeline {} runs point {}, {} is wanted", p, job.plan->of(p).point, wanted[p]));
    }
  }
  return Ok{};
}

}  // namespace perseus::testing
