#include "simulation/site_emulator/day_run.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/result.h"
#include "planning/site/site_limits.h"
#include "simulation/site_emulator/day_feedback.h"
#include "simulation/site_emulator/day_limits.h"
#include "simulation/site_emulator/running_job.h"
#include "simulation/site_emulator/share_method.h"

namespace perseus::site_emulator {
namespace {

constexpr double kMostBins = 200'000;
constexpr double kFineBinsPerSecond = 64;
constexpr std::size_t kSteadyBins = std::size_t{1} << 15, kSurpriseBins = std::size_t{1} << 13;
constexpr Seconds kBeforeSurprise{16};
constexpr double kProgressSteps = 50;

class DayRunner {
 public:
  DayRunner(const SiteDay& day, std::string_view method, model::SiteObjective objective);
  DayRun run(const std::function<void(double)>& progress);

 private:
  const model::Site& site() const { return day_.timed.site; }
  JobKind& kind(std::size_t job) { return kinds_[day_.kind_of[job]]; }
  [[nodiscard]] std::vector<Watts> limits_at(Seconds time) const;
  site::GuardedLoad load_of(const std::vector<int>& ways);
  std::vector<int> settle(const std::vector<Watts>& limits);
  void advance_between(Seconds from, Seconds until, const std::function<void(double)>& progress);
  void trace_domains();
  void trace_finely();
  void begin(const std::vector<int>& ways);
  void advance(Seconds time);
  void run_between(Seconds from, Seconds until, const std::function<void(double)>& progress);
  void correct(Seconds time, Seconds next);
  [[nodiscard]] std::vector<Joules> drawn_by_domain(Seconds time) const;
  bool read_meters(Seconds time);
  void follow(Seconds time, Seconds next, bool delayed, const Surprise* surprise);
  Seconds send_falls(Seconds time, bool delayed, const Surprise* surprise, std::vector<std::size_t>& raises);
  void send_raises(Seconds time, bool delayed, const std::vector<std::size_t>& raises);
  void plan(Seconds time, const std::vector<Watts>& limits);
  [[nodiscard]] const Surprise* surprise_at(Seconds time) const;
  [[nodiscard]] RunningJob::Sink sink_of(std::size_t job);
  [[nodiscard]] double work_until(Seconds time) const;
  void collect();

  const SiteDay& day_;
  DayFeedback feedback_;
  model::SiteObjective objective_;
  std::vector<JobKind> kinds_;
  ShareMethod method_;
  Seconds lead_;  ///< the longest iteration
  LimitSteps limits_;
  std::vector<double> factors_;
  DayDice delays_;
  std::vector<RunningJob> jobs_;
  std::vector<int> wanted_;           ///< ways
  site::GuardedLoad load_;            ///< of those
  std::vector<int> traced_;           ///< domains
  std::vector<std::size_t> slot_of_;  ///< per job: the innermost traced domain around it
  std::vector<PowerTrace> traces_;    ///< the day's, then finer ones of slot 0 only
  Seconds steady_from_;               ///< since then no plan changes
  std::vector<Joules> drawn_;         ///< per domain, until then
  DayRun result_;
};

std::vector<JobKind> kinds_of(const SiteDay& day) {
  std::vector<JobKind> kinds;
  kinds.reserve(day.kinds.size());
  for (const DayKind& kind : day.kinds) kinds.emplace_back(*kind.dag, kind.frontier->points.back().time);
  return kinds;
}

/// The longest iteration on any frontier: an announced fall that begins so long before its limit is over when it holds.
Seconds lead_of(const SiteDay& day, std::vector<JobKind>& kinds) {
  Seconds lead;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const int slowest = kinds[k].way(day.kinds[k].frontier->points.front().plan);
    lead = std::max(lead, Seconds(kinds[k].steady(slowest)->length_s()));
  }
  return lead;
}

DayRunner::DayRunner(const SiteDay& day, std::string_view method, model::SiteObjective objective)
    : day_(day),
      feedback_(day),
      objective_(objective),
      kinds_(kinds_of(day)),
      method_(make_share_method(method, feedback_.believed(), kinds_, objective)),
      factors_(draw_factors(day)),
      delays_(day.seed + 1) {
  PERSEUS_CHECK(method_, "the name of a method");
  PERSEUS_CHECK(day.timed.end > Seconds(0), "a day takes time");
  lead_ = lead_of(day_, kinds_);
  limits_ = planned_limits(day_, lead_);
  result_.method = method;
  trace_domains();
  trace_finely();
}

std::vector<Watts> DayRunner::limits_at(Seconds time) const {
  std::vector<Watts> limits;
  for (const auto& steps : limits_) limits.push_back(site::limit_at(steps, time));
  return limits;
}

/// Mean power per domain, and the guard of those that have a window.
site::GuardedLoad DayRunner::load_of(const std::vector<int>& ways) {
  const auto& domains = site().domains;
  site::GuardedLoad load{std::vector<Watts>(domains.size()), std::vector<Watts>(domains.size())};
  std::vector<site::SwingSum> swings(domains.size());
  for (std::size_t j = 0; j < ways.size(); ++j) {
    const double copies = feedback_.believed().copies[j];
    const Watts mean = copies * kind(j).mean(ways[j]);
    for (int d = site().jobs[j].domain; d >= 0; d = domains[d].parent) {
      load.used[d] += mean;
      if (const auto window = day_.timed.window_of(d)) { swings[d].add(copies * kind(j).swing(ways[j], *window)); }
    }
  }
  for (std::size_t d = 0; d < domains.size(); ++d) load.guard[d] = site::window_guard(swings[d]);
  return load;
}

std::vector<int> DayRunner::settle(const std::vector<Watts>& limits) {
  std::vector<int> ways;
  site::settle_guards(limits, [&](std::span<const Watts> left) {
    ways = method_(left);
    load_ = load_of(ways);
    return load_;
  });
  return ways;
}

void DayRunner::trace_domains() {
  const auto& domains = site().domains;
  std::vector<int> slot(domains.size());
  for (int d = 0; d < std::ssize(domains); ++d) {
    const bool limited =
        std::ranges::any_of(limits_[d], [](const model::LimitStep& step) { return step.limit != model::kNoLimit; });
    if (d > 0 && !limited) {
      slot[d] = slot[domains[d].parent];
      continue;
    }
    slot[d] = static_cast<int>(traced_.size());
    traced_.push_back(d);
  }
  for (const model::SiteJob& job : site().jobs) slot_of_.push_back(static_cast<std::size_t>(slot[job.domain]));
  const Seconds width(std::max(1.0, std::ceil(day_.timed.end.value() / kMostBins)));
  const auto bins = static_cast<std::size_t>(std::ceil(day_.timed.end / width));
  traces_.emplace_back(Seconds(0), width, bins, traced_.size());
  result_.bin_width = width;
}

/// Before the first change, around every surprise, and while it lasts.
void DayRunner::trace_finely() {
  const Seconds width(1 / kFineBinsPerSecond);
  const auto add = [&](const std::string& name, Seconds from, Seconds until, std::size_t bins) {
    from = std::max(Seconds(0), from);
    const double fit = std::min(until - from, day_.timed.end - from) / width;
    if (fit < 128) return;
    bins = std::min(bins, std::bit_floor(static_cast<std::size_t>(fit)));
    traces_.emplace_back(from, width, bins, 1);
    result_.fine.push_back({name, from, width, {}});
  };
  const std::vector<Seconds> times = change_times(limits_, day_.timed.end);
  const Seconds first = times.size() > 1 ? times[1] : day_.timed.end;
  add("before", first - static_cast<double>(kSteadyBins) * width, first, kSteadyBins);
  for (std::size_t k = 0; k < day_.surprises.size(); ++k) {
    const Surprise& surprise = day_.surprises[k];
    const std::string name = k == 0 ? "surprise" : "surprise " + std::to_string(k + 1);
    add(name, surprise.at - kBeforeSurprise, surprise.until, kSurpriseBins);
    const Seconds middle = surprise.at + (surprise.until - surprise.at) / 2;
    add(name + " holds", middle, surprise.until, kSteadyBins);
  }
}

RunningJob::Sink DayRunner::sink_of(std::size_t job) {
  const double factor = factors_[job] * day_.copies[job];
  return [this, job, factor, slot = slot_of_[job]](const IterationRun& run) {
    if (run.one_plan) {
      const auto times = static_cast<double>(run.times);
      const Joules planned = day_.copies[job] * times * Joules(kind(job).steady(jobs_[job].followed())->whole_j());
      const Joules measured = factors_[job] * day_.copies[job] * times * Joules(run.energy->at_s(run.period_s));
      feedback_.report(job, Seconds(run.start_s + times * run.period_s), times, measured, planned);
    }
    traces_[0].add(slot, run, factor);
    for (std::size_t k = 1; k < traces_.size(); ++k) traces_[k].add(0, run, factor);
  };
}

void DayRunner::begin(const std::vector<int>& ways) {
  const std::vector<double> places = draw_places(day_);
  for (std::size_t j = 0; j < ways.size(); ++j) jobs_.emplace_back(kind(j), ways[j], places[j]);
}

void DayRunner::advance(Seconds time) {
  for (std::size_t j = 0; j < jobs_.size(); ++j) jobs_[j].advance_to(time, sink_of(j));
}

const Surprise* DayRunner::surprise_at(Seconds time) const {
  for (const Surprise& surprise : day_.surprises) {
    if (surprise.at == time || surprise.until == time) return &surprise;
  }
  return nullptr;
}

/// Falls act at once. Returns when the last job has confirmed its fall; `raises` are the jobs that want more.
Seconds DayRunner::send_falls(Seconds time, bool delayed, const Surprise* surprise, std::vector<std::size_t>& raises) {
  Seconds confirmed = time;
  Reaction reaction;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    RunningJob& job = jobs_[j];
    const int follows = job.followed();
    if (wanted_[j] == follows) {
      job.forget_raise();
      continue;
    }
    const Watts now = kind(j).mean(follows), then = kind(j).mean(wanted_[j]);
    if (then > now) {
      if (job.granted() != wanted_[j]) job.forget_raise(), raises.push_back(j);
      continue;
    }
    std::vector<double> from_s(kind(j).dag().num_ranks(), time.value());
    if (delayed) {
      for (double& from : from_s) from += draw_delay_s(day_.delay, delays_);
    }
    reaction.guaranteed = std::max(reaction.guaranteed, day_.delay.most + kind(j).longest_computation(follows));
    const Seconds follows_from = job.fall_to(wanted_[j], from_s);
    reaction.reached = std::max(reaction.reached, follows_from - time);
    confirmed = std::max(confirmed, follows_from + Seconds(draw_delay_s(day_.delay, delays_)));
    ++reaction.falls;
  }
  result_.falls += reaction.falls;
  if (surprise != nullptr && surprise->at == time) result_.reactions.push_back(reaction);
  return reaction.falls > 0 ? confirmed : time;
}

void DayRunner::send_raises(Seconds time, bool delayed, const std::vector<std::size_t>& raises) {
  for (const std::size_t j : raises) {
    const Seconds delay(delayed ? draw_delay_s(day_.delay, delays_) : 0);
    jobs_[j].raise_to(wanted_[j], time + delay);
    ++result_.raises;
  }
}

void DayRunner::plan(Seconds time, const std::vector<Watts>& limits) {
  PlannedPower planned{time, {}, {}, {}};
  for (const int d : traced_) {
    planned.limit.push_back(limits[d]);
    planned.used.push_back(load_.used[d]);
    planned.guard.push_back(load_.guard[d]);
  }
  result_.planned.push_back(std::move(planned));
  result_.work_until.push_back(jobs_.empty() ? 0 : work_until(time));
}

double DayRunner::work_until(Seconds time) const {
  double work = 0, full = 0;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    work += site().jobs[j].weight * jobs_[j].work_s(time);
    full += site().jobs[j].weight;
  }
  return full > 0 ? work / full : 0;
}

/// Makes the plans anew and sends what changes.
void DayRunner::follow(Seconds time, Seconds next, bool delayed, const Surprise* surprise) {
  const std::vector<Watts> limits = limits_at(time);
  wanted_ = settle(feedback_.left(limits, time));
  plan(time, limits);
  std::vector<std::size_t> raises;
  const long falls = result_.falls;
  const Seconds confirmed = send_falls(time, delayed, surprise, raises);
  if (result_.falls > falls || !raises.empty()) {
    steady_from_ = confirmed + day_.delay.most + lead_;
    drawn_.clear();
  }
  if (confirmed >= next) return;
  send_raises(confirmed, delayed || confirmed > time, raises);
}

/// Of all jobs in each domain, since 0 s.
std::vector<Joules> DayRunner::drawn_by_domain(Seconds time) const {
  std::vector<Joules> drawn(site().domains.size());
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const Joules energy = factors_[j] * day_.copies[j] * jobs_[j].drawn(time);
    for (int d = site().jobs[j].domain; d >= 0; d = site().domains[d].parent) drawn[d] += energy;
  }
  return drawn;
}

/// Means since the plans changed, or since the last reading.
bool DayRunner::read_meters(Seconds time) {
  if (time < steady_from_) return false;
  if (drawn_.empty()) {
    steady_from_ = time;
    drawn_ = drawn_by_domain(time);
  }
  if (time < steady_from_ + DayFeedback::kReading) return false;
  const std::vector<Joules> drawn = drawn_by_domain(time);
  std::vector<int> followed;
  for (const RunningJob& job : jobs_) followed.push_back(job.followed());
  const site::GuardedLoad expected = load_of(followed);
  bool changed = false;
  for (const int d : traced_) {
    const Watts metered = (drawn[d] - drawn_[d]) / (time - steady_from_);
    changed = feedback_.read_meter(d, time, metered, expected.used[d]) || changed;
  }
  steady_from_ = time;
  drawn_ = drawn;
  return changed;
}

/// What was reported by then.
void DayRunner::correct(Seconds time, Seconds next) {
  const bool reported = day_.feedback.reports && feedback_.read_reports(time);
  const bool metered = day_.feedback.meter && read_meters(time);
  if (!reported && !metered) return;
  if (reported) method_ = make_share_method(result_.method, feedback_.believed(), kinds_, objective_);
  ++result_.corrections;
  follow(time, next, true, nullptr);
}

/// Between two changes of the limits.
void DayRunner::run_between(Seconds from, Seconds until, const std::function<void(double)>& progress) {
  if (!feedback_.is_closed()) return advance_between(from, until, progress);
  Seconds time = from;
  while (time < until) {
    const Seconds tick = DayFeedback::kTick * (std::floor(time / DayFeedback::kTick) + 1);
    const Seconds next = std::min(until, tick);
    advance_between(time, next, progress);
    if (next < until) correct(next, until);
    time = next;
  }
}

void DayRunner::collect() {
  for (std::size_t slot = traced_.size() - 1; slot > 0; --slot) {
    int around = site().domains[traced_[slot]].parent;
    while (std::ranges::find(traced_, around) == traced_.end()) around = site().domains[around].parent;
    const auto outer = std::ranges::find(traced_, around) - traced_.begin();
    traces_[0].add_slot(slot, static_cast<std::size_t>(outer));
  }
  settle(std::vector<Watts>(site().domains.size(), model::kNoLimit));
  for (std::size_t slot = 0; slot < traced_.size(); ++slot) {
    result_.domains.push_back({traced_[slot], traces_[0].power_w(slot), load_.used[traced_[slot]]});
  }
  for (std::size_t k = 1; k < traces_.size(); ++k) result_.fine[k - 1].power_w = traces_[k].power_w(0);
  for (const RunningJob& job : jobs_) result_.rate.push_back(job.work_s(day_.timed.end) / day_.timed.end.value());
}

/// In steps, so that progress moves.
void DayRunner::advance_between(Seconds from, Seconds until, const std::function<void(double)>& progress) {
  const int steps = static_cast<int>(std::ceil((until - from) / day_.timed.end * kProgressSteps));
  for (int step = 1; step <= steps; ++step) {
    const Seconds time = step == steps ? until : from + (until - from) * step / steps;
    advance(time);
    if (progress) progress(time / day_.timed.end);
  }
}

DayRun DayRunner::run(const std::function<void(double)>& progress) {
  const Seconds end = day_.timed.end;
  const std::vector<Seconds> times = change_times(limits_, end);
  const std::vector<Watts> limits = limits_at(Seconds(0));
  begin(settle(limits));
  plan(Seconds(0), limits);
  for (std::size_t k = 0; k < times.size(); ++k) {
    const Seconds next = k + 1 < times.size() ? times[k + 1] : end;
    const Surprise* surprise = surprise_at(times[k]);
    if (k > 0) follow(times[k], next, surprise != nullptr, surprise);
    run_between(times[k], next, progress);
  }
  for (std::size_t j = 0; j < jobs_.size(); ++j) jobs_[j].finish(sink_of(j));
  result_.planned.push_back({end, {}, {}, {}});
  result_.work_until.push_back(work_until(end));
  collect();
  return std::move(result_);
}

}  // namespace

DayRun run_day(const SiteDay& day, std::string_view method, model::SiteObjective objective,
               const std::function<void(double)>& progress) {
  return DayRunner(day, method, objective).run(progress);
}

double DayDice::uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

double DayDice::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

std::vector<double> draw_places(const SiteDay& day) {
  DayDice dice(day.seed);
  std::vector<double> places(day.kind_of.size());
  std::ranges::generate(places, [&] { return dice.uniform(); });
  return places;
}

std::vector<double> draw_factors(const SiteDay& day) {
  DayDice dice(day.seed ^ 0x9e3779b97f4a7c15U);
  std::vector<double> factors(day.kind_of.size());
  std::ranges::generate(factors, [&] { return std::max(0.1, 1 + day.draw_more + day.bias * dice.normal()); });
  return factors;
}

double draw_delay_s(const GrantDelay& delay, DayDice& dice) {
  return std::min(delay.most.value(), delay.median.value() * std::exp(delay.spread * dice.normal()));
}

}  // namespace perseus::site_emulator
