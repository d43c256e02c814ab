#include "server/policies/policy_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planning/model/default_plan.h"
#include "server/jobs/event.h"
#include "server/jobs/event_text.h"
#include "server/policies/pacing.h"

namespace perseus::policies {
namespace {

constexpr std::size_t kMaxSamples = 100'000;
constexpr double kMaxSlowdown = 1000;

Error out_of_range(const std::string& what) { return {ErrorCode::usage, what}; }

struct Check {
  Status operator()(const jobs::PowerCap& cap) const {
    const double w = cap.average.value();
    if (w > 0 && std::isfinite(w)) return Ok{};
    return out_of_range(fmt::format("power_cap: average_w: {}; allowed: more than 0", w));
  }
  Status operator()(const jobs::Pin& pin) const {
    if (pin.time.has_value() == pin.point.has_value()) {
      return out_of_range("pinned: exactly one of time_s and point is needed");
    }
    if (pin.time && !(pin.time->value() > 0 && std::isfinite(pin.time->value()))) {
      return out_of_range(fmt::format("pinned: time_s: {}; allowed: more than 0", pin.time->value()));
    }
    if (pin.point && *pin.point < 0) return out_of_range(fmt::format("pinned: point: {}; allowed: 0 ...", *pin.point));
    return Ok{};
  }
  Status operator()(const jobs::MaxSlowdown& s) const {
    if (!(s.slowdown >= 1 && s.slowdown <= kMaxSlowdown)) {
      return out_of_range(fmt::format("max_slowdown: slowdown: {}; allowed: 1 to {}", s.slowdown, kMaxSlowdown));
    }
    if (s.threshold && !std::isfinite(*s.threshold)) {
      return out_of_range(fmt::format("max_slowdown: threshold: {}; allowed: finite values", *s.threshold));
    }
    if (s.threshold && s.signal.empty()) {
      return out_of_range(fmt::format(
          "max_slowdown: threshold: {}, and no signal that could be above it; allowed: both, or neither to be slower "
          "always",
          *s.threshold));
    }
    if (s.signal.size() > kMaxSamples) {
      return out_of_range(fmt::format("max_slowdown: {} samples; allowed: {}", s.signal.size(), kMaxSamples));
    }
    for (std::size_t i = 0; i < s.signal.size(); ++i) {
      if (!std::isfinite(s.signal[i].from_s) || !std::isfinite(s.signal[i].value) ||
          (i > 0 && s.signal[i].from_s <= s.signal[i - 1].from_s)) {
        return out_of_range(fmt::format(
            "max_slowdown: signal[{}]: value {} from {} s; allowed: finite values, each from {}", i, s.signal[i].value,
            s.signal[i].from_s,
            i == 0 ? "a finite time" : fmt::format("later than the one before ({} s)", s.signal[i - 1].from_s)));
      }
    }
    return Ok{};
  }
};

template <class P>
const P* find(const std::map<std::string, jobs::Policy>& policies, std::string_view kind) {
  const auto found = policies.find(std::string(kind));
  return found == policies.end() ? nullptr : std::get_if<P>(&found->second);
}

bool is_above(const jobs::MaxSlowdown::Sample& sample, const jobs::MaxSlowdown& policy) {
  return sample.value > policy.threshold.value_or(0);
}

bool in_force(const jobs::MaxSlowdown& policy, double now_s) {
  if (policy.signal.empty()) return true;
  const auto next = std::ranges::upper_bound(policy.signal, now_s, {}, &jobs::MaxSlowdown::Sample::from_s);
  return next != policy.signal.begin() && is_above(*(next - 1), policy);
}

/// The time of least total energy that takes no longer than allowed.
Seconds least_energy_time(const std::vector<PolicyScope>& groups, Seconds straggler, Seconds allowed) {
  std::vector<model::Followers> followers;
  Watts others;
  for (const PolicyScope& group : groups) {
    if (group.count > 0) followers.push_back({&group.pipeline->frontier, group.scale * group.count});
    others += group.scale * group.stragglers * group.pipeline->dag.total_blocking_power();
  }
  return perseus::model::least_energy_time(followers, others, straggler, allowed);
}

/// As slow as allowed without a tolerance, or as slow as `slow` allows where that needs less energy.
Target tolerated(const jobs::MaxSlowdown& slow, const std::vector<PolicyScope>& groups, const TimeBounds& bounds) {
  const Seconds accepted = slow.slowdown * bounds.allowed;
  const Seconds without = least_energy_time(groups, bounds.straggler, bounds.allowed);
  if (accepted <= std::max(bounds.straggler, bounds.allowed)) return {without, ""};
  const Seconds best = least_energy_time(groups, bounds.straggler, accepted);
  const bool straggles = bounds.straggler > Seconds(0);
  if (best <= without && straggles) return {without, ""};
  std::string reason = jobs::text_of(jobs::Policy(slow));
  if (best < accepted) reason += fmt::format("; slower than {:.6g} s saves nothing", best.value());
  return {best, std::move(reason)};
}

/// The fastest time, and those of all slower plans, ascending.
std::vector<Seconds> times_from(const std::vector<PolicyScope>& groups, Seconds fastest) {
  std::vector<Seconds> times{fastest};
  for (const PolicyScope& group : groups) {
    if (group.count == 0) continue;
    for (const model::FrontierPoint& point : group.pipeline->frontier.points) {
      if (point.time > fastest) times.push_back(point.time);
    }
  }
  std::ranges::sort(times);
  return times;
}

/// An iteration of the whole job that is planned for some time.
struct PlannedIteration {
  Joules energy;    ///< beyond waiting
  Watts waiting;    ///< of all accelerators
  Seconds longest;  ///< that a pipeline takes if nothing delays it

  [[nodiscard]] Watts power(Seconds time) const { return energy / time + waiting; }
};

Seconds alone(const jobs::CharacterizedPipeline& pipeline) {
  return model::time_without_straggler(pipeline.frontier, pipeline.all_max_time);
}

/// Of one job, for any time. A straggler's time alone costs a look at all its points, so it is looked up once.
class PlannedIterations {
 public:
  explicit PlannedIterations(const std::vector<PolicyScope>& groups) : groups_(groups) {
    for (const PolicyScope& group : groups) alone_.push_back(group.stragglers > 0 ? alone(*group.pipeline) : Seconds());
  }
  [[nodiscard]] Seconds straggler_alone(std::size_t group) const { return alone_[group]; }
  [[nodiscard]] PlannedIteration at(Seconds time, double stretch) const {
    PlannedIteration iteration;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].count > 0) add(iteration, groups_[g], groups_[g].count, time);
      if (groups_[g].stragglers > 0) add(iteration, groups_[g], groups_[g].stragglers, stretch * alone_[g]);
    }
    return iteration;
  }
  [[nodiscard]] Watts average_power(Seconds time) const { return at(time, 1).power(time); }

 private:
  static void add(PlannedIteration& iteration, const PolicyScope& group, int pipelines, Seconds within) {
    const model::Frontier& frontier = group.pipeline->frontier;
    const model::FrontierPoint& plan = frontier.points[model::slowest_within(frontier, within)];
    iteration.energy += group.scale * pipelines * plan.effective_energy;
    iteration.waiting += group.scale * pipelines * group.pipeline->dag.total_blocking_power();
    iteration.longest = std::max(iteration.longest, plan.time);
  }

  const std::vector<PolicyScope>& groups_;
  std::vector<Seconds> alone_;
};

Target within(Watts most, const std::string& what, const std::vector<PolicyScope>& groups, Seconds fastest) {
  const PlannedIterations iterations(groups);
  if (iterations.average_power(fastest) <= most) return {fastest, ""};
  Seconds last = fastest;
  for (const Seconds time : times_from(groups, fastest)) {
    const Watts power = iterations.average_power(time);
    if (power <= most) return {time, fmt::format("{}: {:.4g} W at {:.6g} s", what, power.value(), time.value())};
    last = time;
  }
  return {last,
          fmt::format("{} cannot be kept: the least is {:.4g} W, at {:.6g} s", what,
                      iterations.average_power(last).value(), last.value()),
          false};
}

Target capped(const jobs::PowerCap& cap, const std::vector<PolicyScope>& groups, Seconds fastest) {
  return within(cap.average, jobs::text_of(jobs::Policy(cap)), groups, fastest);
}

}  // namespace

Status check_policy(const jobs::Policy& policy) { return std::visit(Check{}, policy); }

const PowerAtTime& fastest_within(std::span<const PowerAtTime> powers, Watts most) {
  const auto within = std::ranges::find_if(powers, [most](const PowerAtTime& at) { return at.power <= most; });
  return within == powers.end() ? powers.back() : *within;
}

int straggling_point(const jobs::CharacterizedPipeline& pipeline, double stretch) {
  return model::slowest_within(pipeline.frontier, stretch * alone(pipeline));
}

Watts power_with_waits(const std::vector<PolicyScope>& groups, const PowerAtTime& at, Seconds time) {
  return PlannedIterations(groups).at(at.time, at.straggler_stretch).power(time);
}

Watts average_power(const std::vector<PolicyScope>& groups, Seconds time) {
  return PlannedIterations(groups).average_power(time);
}

std::vector<PowerAtTime> powers_from(const std::vector<PolicyScope>& groups, Seconds fastest, Seconds straggler) {
  const PlannedIterations iterations(groups);
  std::vector<Seconds> times = times_from(groups, fastest);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].stragglers == 0) continue;
    for (const model::FrontierPoint& point : groups[g].pipeline->frontier.points) {
      const Seconds slowed = point.time / iterations.straggler_alone(g) * straggler;
      if (slowed > fastest) times.push_back(slowed);
    }
  }
  std::ranges::sort(times);
  std::vector<PowerAtTime> powers;
  for (const Seconds time : times) {
    const double stretch = time > fastest && time > straggler && straggler > Seconds(0) ? time / straggler : 1;
    const PlannedIteration iteration = iterations.at(time, stretch);
    powers.push_back({time, iteration.power(std::min(iteration.longest, time)), stretch});
  }
  return powers;
}

namespace {

/// Slows the slowest plan by waits until it keeps to that power.
void pace(Target& target, const PowerAtTime& slowest, Watts most, const std::vector<PolicyScope>& groups,
          const TimeBounds& bounds) {
  const std::vector<PowerAtTime> paced = paced_runs(groups, slowest, bounds.paced_to_rate).powers;
  if (paced.empty() || (paced.back().power > most && paced.back().power >= target.power)) return;
  const PowerAtTime& chosen = fastest_within(paced, most);
  target.kept = chosen.power <= most;
  target.paced = chosen.time;
  target.power = chosen.power;
  target.reason = fmt::format("grant of the site's limits {:.4g} W{}: paced, {:.4g} W at {:.6g} s with waits",
                              bounds.granted->value(), target.kept ? "" : " cannot be kept", chosen.power.value(),
                              chosen.time.value());
}

/// Without what the site grants.
Target own_target(const std::map<std::string, jobs::Policy>& policies, const std::vector<PolicyScope>& groups,
                  std::size_t first, const TimeBounds& bounds, double now_s) {
  if (const jobs::Pin* pin = find<jobs::Pin>(policies, "pinned")) {
    const auto& points = groups[first].pipeline->frontier.points;
    const auto point = std::min<std::size_t>(pin->point.value_or(0), points.size() - 1);
    Target pinned{pin->time.value_or(points[point].time), jobs::text_of(jobs::Policy(*pin))};
    if (pin->point && static_cast<std::size_t>(*pin->point) > point) {
      pinned.reason += fmt::format(" cannot be kept: the fastest is point {}", point);
      pinned.kept = false;
    }
    if (pin->time && model::kSameTime * *pin->time < points.back().time) {
      pinned.reason += fmt::format(" cannot be kept: the fastest plan takes {:.6g} s", points.back().time.value());
      pinned.kept = false;
    }
    return pinned;
  }
  jobs::MaxSlowdown slow{1 + bounds.default_slowdown, {}, {}, ""};
  if (const jobs::MaxSlowdown* own = find<jobs::MaxSlowdown>(policies, "max_slowdown")) slow = *own;
  if (!in_force(slow, now_s)) slow.slowdown = 1;
  Target target = tolerated(slow, groups, bounds);
  if (const jobs::PowerCap* cap = find<jobs::PowerCap>(policies, "power_cap")) {
    if (Target under = capped(*cap, groups, target.time); !under.reason.empty()) target = std::move(under);
  }
  return target;
}

}  // namespace

Target policy_target(const std::map<std::string, jobs::Policy>& policies, const std::vector<PolicyScope>& groups,
                     std::size_t first, const TimeBounds& bounds, double now_s) {
  Target target = own_target(policies, groups, first, bounds, now_s);
  if (!bounds.granted) return target;
  const std::vector<PowerAtTime> powers = powers_from(groups, target.time, bounds.straggler);
  // Grants are powers of plans, read from a log.
  constexpr double same_power = 1 + 1e-9;
  const Watts most = same_power * *bounds.granted;
  const PowerAtTime& at = fastest_within(powers, most);
  const bool kept = at.power <= most;
  if (kept && &at == &powers.front()) {
    target.power = at.power;
    return target;
  }
  Target under{
      at.time,
      fmt::format("grant of the site's limits {:.4g} W{} {:.4g} W{} at {:.6g} s", bounds.granted->value(),
                  kept ? ":" : " cannot be kept: the least is", at.power.value(), kept ? "" : ",", at.time.value()),
      kept,
      at.straggler_stretch,
      {},
      at.power};
  if (!kept && bounds.paced_to_rate > 0) pace(under, at, most, groups, bounds);
  return under;
}

std::string policy_not_kept(const std::map<std::string, jobs::Policy>& policies, std::string_view kind,
                            const std::vector<PolicyScope>& groups, std::size_t first, const TimeBounds& bounds,
                            double now_s) {
  const Target target = policy_target(policies, groups, first, bounds, now_s);
  const jobs::PowerCap* cap = find<jobs::PowerCap>(policies, "power_cap");
  const jobs::Pin* pin = find<jobs::Pin>(policies, "pinned");
  if (pin == nullptr) return kind == "power_cap" && !target.kept ? target.reason : "";
  if (kind == "pinned" && !target.kept) return target.reason;
  if (kind == "max_slowdown") return fmt::format("the job is {}, which comes first", jobs::text_of(jobs::Policy(*pin)));
  if (cap == nullptr) return "";
  Seconds time = target.time;  // or that of the slowest pipeline's fastest plan
  for (const PolicyScope& group : groups) time = std::max(time, group.pipeline->frontier.points.back().time);
  const Watts drawn = average_power(groups, time);
  if (drawn <= cap->average) return "";
  return fmt::format("{} is not kept: the job is {}, which comes first and draws {:.4g} W",
                     jobs::text_of(jobs::Policy(*cap)), jobs::text_of(jobs::Policy(*pin)), drawn.value());
}

std::optional<double> next_policy_change(const std::map<std::string, jobs::Policy>& policies, double now_s) {
  const jobs::MaxSlowdown* slow = find<jobs::MaxSlowdown>(policies, "max_slowdown");
  if (slow == nullptr) return std::nullopt;
  const bool now = in_force(*slow, now_s);
  for (auto next = std::ranges::upper_bound(slow->signal, now_s, {}, &jobs::MaxSlowdown::Sample::from_s);
       next != slow->signal.end(); ++next) {
    if (is_above(*next, *slow) != now) return next->from_s;
  }
  return std::nullopt;
}

}  // namespace perseus::policies
