#include "server/profiling/online_profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "planning/planner/look_up.h"
#include "server/profiling/choose_clocks.h"
#include "server/profiling/few_plans.h"
#include "server/profiling/layout.h"
#include "server/profiling/measured_pipelines.h"
#include "server/profiling/plain_order.h"
#include "server/profiling/plan_uncertainty.h"
#include "server/profiling/planning.h"
#include "server/profiling/profile_estimate.h"
#include "server/profiling/samples.h"
#include "server/profiling/slowdown_limit.h"
#include "server/profiling/time_energy_model.h"

namespace perseus::profiling {

namespace {

// How often the plan runs, at each slowdown, before it is accepted.
constexpr int kConfirmingRounds = 2;
// A window may be slower than the allowed mean by this factor: as many iterations of rest, less one, precede it
// anyway while ranks report and receive it. Only a part of the allowed worst slowdown is used, less a multiple of the
// lateness that is possible, since predictions may be wrong; but enough to learn more.
constexpr double kTimesTheMean = 4, kShareOfTheWorst = 0.8, kTimesLate = 4;
// The noise of a single value up to which the tolerance is what the options say.
constexpr double kUsualNoise = 0.01;
// Refining ends when the iterations up to the limit would leave more than this share of the uncertainty, which falls
// with the root of their number, and no more than the tolerance is expected to be lost.
constexpr double kBetter = 0.9;
// Windows in turns: at the highest clock, which all else is compared with; twice the clocks that decide which plan is
// best; the plan, whose clocks were chosen because they look good.
constexpr std::size_t kTurns = 4, kTurnOfHighest = 0, kTurnOfPlan = 3;
// Of a computation at the highest clock: with a switch latency above this share there is no usable sample.
constexpr double kLongLatencyShare = 0.25;
// Windows at the highest clock that may give no usable sample; as many at other clocks.
constexpr int kMostUnusable = 20;

Status validate(const ProfilingOptions& options) {
  const auto bad = [](std::string what) { return Error{ErrorCode::usage, "profiling: " + std::move(what)}; };
  if (options.iterations_per_window < 1) {
    return bad(fmt::format("{} iterations per window; must be >= 1", options.iterations_per_window));
  }
  if (options.warm_up_windows < 0) return bad(fmt::format("{} warm-up windows; must be >= 0", options.warm_up_windows));
  if (options.max_iterations < 1)
    return bad(fmt::format("at most {} iterations; must be >= 1", options.max_iterations));
  if (!(std::isfinite(options.tolerance_pct) && options.tolerance_pct > 0)) {
    return bad(fmt::format("a tolerance of {} %; must be finite and > 0", options.tolerance_pct));
  }
  if (!(options.lowest_clock_share >= 0 && options.lowest_clock_share <= 1)) {
    return bad(fmt::format("lowest clock share {}; must be 0 to 1", options.lowest_clock_share));
  }
  if (!(std::isfinite(options.mean_slowdown_pct) && options.mean_slowdown_pct > 0)) {
    return bad(fmt::format("a mean slowdown of {} %; must be finite and > 0", options.mean_slowdown_pct));
  }
  if (!(std::isfinite(options.worst_slowdown_pct) && options.worst_slowdown_pct > 0)) {
    return bad(fmt::format("a worst slowdown of {} %; must be finite and > 0", options.worst_slowdown_pct));
  }
  if (options.slowdowns.empty()) return bad("no slowdown to plan for; at least one is needed");
  for (const double slowdown : options.slowdowns) {
    if (!(std::isfinite(slowdown) && slowdown >= 1)) {
      return bad(fmt::format("slowdown {}; must be finite and >= 1", slowdown));
    }
  }
  return Ok{};
}

}  // namespace

struct OnlineProfiler::State {
  Layout layout;
  ProfilingOptions options;
  Samples samples;
  std::vector<ProfilingWindow> windows;
  std::set<std::tuple<int, int, int>> reported;  // window, rank, replica
  int reports_of_last = 0;
  std::vector<double> window_s;  ///< per window: its longest mean iteration time of a rank; 0: not reported

  MeasuredPipelines links;
  std::optional<MeasuredLinks> links_before;  ///< under the schedule before this one

  State(Layout l, ProfilingOptions o)
      : layout(std::move(l)), options(std::move(o)), samples(layout), links(layout.job.schedule) {}

  [[nodiscard]] std::mt19937_64 engine() const {
    return std::mt19937_64(options.seed * 0x9e3779b97f4a7c15 + windows.size());
  }
  [[nodiscard]] int warm_up_windows() const {
    return options.mode == ProfilingMode::plain ? std::max(kPlainWarmUpWindows, options.warm_up_windows)
                                                : options.warm_up_windows;
  }
  [[nodiscard]] int iterations() const {
    int sum = 0;
    for (const ProfilingWindow& window : windows) sum += window.iterations;
    return sum;
  }
  [[nodiscard]] ProfilingWindow window_of(const ClockChoice& choice, bool warm_up) const {
    ProfilingWindow window{static_cast<int>(windows.size()), options.iterations_per_window, warm_up, false, {}};
    std::vector<std::size_t> used(layout.types.size());
    for (const std::vector<int>& types : layout.type_of) {
      std::vector<Megahertz>& clocks = window.clocks.emplace_back();
      for (const int t : types) clocks.push_back(layout.types[t].clocks[choice[t][used[t]++]]);
    }
    return window;
  }
  /// The plan itself, for that multiple of T_max: it is measured where its accuracy matters. Nothing if `check` stopped
  /// it.
  [[nodiscard]] std::optional<ProfilingWindow> window_of_plan(const model::ComputationDag& dag, double slowdown,
                                                              bool confirming, StopCheck& check) const {
    const Seconds deadline = time_at_highest(dag) * slowdown;
    const model::Frontier frontier = few_plans(dag, {deadline}, check);
    if (check.stopped()) return std::nullopt;
    const model::Plan& plan = planner::look_up(frontier, deadline).plan;
    ProfilingWindow window{static_cast<int>(windows.size()), options.iterations_per_window, false, confirming, {}};
    for (const std::vector<int>& computations : dag.rank_order) {
      std::vector<Megahertz>& clocks = window.clocks.emplace_back();
      for (const int c : computations) clocks.push_back(dag.type_of(c).options[plan[c]].clock);
    }
    window.slowdown_pct = 100 * (slowdown - 1);
    return window;
  }
  [[nodiscard]] bool is_at_highest(const ProfilingWindow& window) const {
    for (int rank = 0; rank < layout.num_ranks(); ++rank) {
      for (std::size_t a = 0; a < window.clocks[rank].size(); ++a) {
        if (window.clocks[rank][a] != layout.types[layout.type_of[rank][a]].clocks.front()) return false;
      }
    }
    return true;
  }
  /// Iteration time at the highest clocks, as measured; 0: not known.
  [[nodiscard]] double highest_s() const {
    double least = 0;
    for (const ProfilingWindow& window : windows) {
      const double time_s = window_s[window.number];
      if (time_s > 0 && is_at_highest(window) && (least == 0 || time_s < least)) least = time_s;
    }
    return least;
  }
  [[nodiscard]] std::optional<double> measured_slowdown_pct(const ProfilingWindow& window) const {
    const double reference_s = highest_s(), time_s = window_s[window.number];
    if (reference_s <= 0 || time_s <= 0) return std::nullopt;
    return 100 * (time_s / reference_s - 1);
  }
  /// Adds iterations at the highest clock before the window, so that the mean slowdown stays within its bound.
  [[nodiscard]] ProfilingWindow with_rest(ProfilingWindow window) const {
    double slowdown_pct = window.slowdown_pct * window.iterations;
    double count = window.iterations;
    for (const ProfilingWindow& before : windows) {
      const double own_pct = std::max(before.slowdown_pct, measured_slowdown_pct(before).value_or(0));
      slowdown_pct += own_pct * before.iterations;
      count += before.iterations + static_cast<double>(before.rest);
    }
    // A rank that reports years of iteration time asks for more rest than an int holds.
    const double rest = std::ceil(slowdown_pct / options.mean_slowdown_pct) - count;
    window.rest = static_cast<int>(std::clamp<double>(rest, 0, std::numeric_limits<int>::max()));
    return window;
  }
  /// The tolerance, in percent, given the variation of single values: noisier values allow less certainty.
  [[nodiscard]] double tolerance_pct(const TimeEnergyModel& model) const {
    std::vector<double> noise;
    for (int t = 0; t < layout.num_types(); ++t) {
      if (layout.types[t].has_clock()) noise.push_back(std::max(model.time_noise(t), model.energy_noise(t)));
    }
    return options.tolerance_pct * std::max(1.0, quantile(noise, 0.5) / kUsualNoise);
  }
  /// True if some type was measured at several clocks.
  [[nodiscard]] bool varied() const {
    for (int t = 0; t < layout.num_types(); ++t) {
      if (std::ranges::count_if(samples.cells(t), [](const Cell& cell) { return cell.log_time.count > 0; }) > 1) {
        return true;
      }
    }
    return std::ranges::all_of(layout.types, [](const ProfiledType& type) { return type.clocks.size() == 1; });
  }
  [[nodiscard]] int confirming_windows() const {
    const auto last =
        std::find_if(windows.rbegin(), windows.rend(), [](const auto& window) { return !window.confirming; });
    return static_cast<int>(last - windows.rbegin());
  }
  [[nodiscard]] ClockChoice uniform(const std::vector<int>& clocks) const {
    ClockChoice choice;
    for (int t = 0; t < layout.num_types(); ++t) choice.emplace_back(layout.types[t].occurrences, clocks[t]);
    return choice;
  }
  // Ok, or the type without a sample.
  [[nodiscard]] Status sampled() const {
    for (int t = 0; t < layout.num_types(); ++t) {
      const ProfiledType& type = layout.types[t];
      if (!type.has_clock()) continue;
      const auto& cells = samples.cells(t);
      const bool times = std::ranges::any_of(cells, [](const Cell& c) { return c.log_time.count > 0; });
      const bool energies =
          std::ranges::any_of(cells, [](const Cell& c) { return c.log_energy.count > 0; }) ||
          std::ranges::any_of(samples.iterations(), [&](const auto& row) { return row.rank == type.rank; });
      if (times && energies) continue;
      return Error{ErrorCode::not_found,
                   fmt::format("profiling: no usable {} of {} of stage {} yet; at least one is needed",
                               times ? "energy" : "time", model::name_of(type.instruction), type.stage)};
    }
    return Ok{};
  }
  [[nodiscard]] TimeEnergyModel model() const { return {layout, samples, windows}; }
  /// A computation is a sample of its clock only if the clock arrives early in it.
  [[nodiscard]] SharedClock shared_clock(const TimeEnergyModel& model) const {
    const auto is_long = [&](int t) {
      return kLongLatencyShare * std::exp(model.log_time(t).mean[0]) < layout.job.switch_latency.value();
    };
    for (int t = 0; t < layout.num_types(); ++t) {
      if (layout.types[t].has_clock() && is_long(t)) return SharedClock::rank;
    }
    return model.by_iteration() ? SharedClock::type : SharedClock::computation;
  }
  /// Empty if `check` stopped it.
  [[nodiscard]] JudgedPlan judged(const PlanningProblem& problem, const TimeEnergyModel& model,
                                  StopCheck& check) const {
    std::mt19937_64 random = engine();
    return judge_plan(problem, model, options.slowdowns, random, check);
  }
  [[nodiscard]] std::optional<ProfilingStep> next_adaptive(StopCheck& check) const;
  [[nodiscard]] ProfilingStep next_plain() const;
  [[nodiscard]] Status check_report(int rank, int replica, int window) const;
};

std::optional<ProfilingStep> OnlineProfiler::State::next_adaptive(StopCheck& check) const {
  std::mt19937_64 random = engine();
  const int first = warm_up_windows();
  if (static_cast<int>(windows.size()) < first) {
    return ProfilingStep{window_of(uniform(std::vector<int>(layout.types.size())), true), {}};
  }
  if (const Status enough = sampled(); !enough) {
    // The highest clock costs nothing, and everything else is compared with it.
    if (iterations() < std::min(options.max_iterations, kMostUnusable * options.iterations_per_window)) {
      return ProfilingStep{window_of(uniform(std::vector<int>(layout.types.size())), false), {}};
    }
    const std::string why =
        fmt::format("{} iterations gave no usable sample: {}", iterations(), enough.error().message);
    return ProfilingStep{ProfilingDone{why}, {}};
  }
  const TimeEnergyModel now = model();
  const Result<PlanningProblem> problem = PlanningProblem::build(layout, samples, now, options.lowest_clock_share);
  if (!problem)
    return ProfilingStep{ProfilingDone{"the measurements cannot be planned with: " + problem.error().message}, {}};
  const double most_slowdown =
      std::min(kShareOfTheWorst * options.worst_slowdown_pct, kTimesTheMean * options.mean_slowdown_pct) / 100;
  const SharedClock shared = shared_clock(now);
  const auto predicted = [&](const PlanUncertainty& doubt) {
    double late_pct = 0;
    for (const PlanUncertainty::At& at : doubt.at) late_pct = std::max(late_pct, at.late_bound_pct);
    return std::max(most_slowdown / kTimesTheMean, most_slowdown - kTimesLate * late_pct / 100);
  };
  const auto bounded = [&](ClockChoice clocks, const PlanUncertainty& doubt) {
    clocks = share_clocks(layout, std::move(clocks), shared, random);
    BoundedChoice choice =
        bound_slowdown(*problem, upper_times(layout, samples, now), std::move(clocks), predicted(doubt), shared);
    ProfilingWindow window = window_of(choice.clocks, false);
    window.slowdown_pct = 100 * choice.slowdown;
    return with_rest(std::move(window));
  };
  if (!varied()) {
    if (iterations() < std::min(options.max_iterations, 2 * kMostUnusable * options.iterations_per_window)) {
      return ProfilingStep{bounded(first_clocks(layout, options.lowest_clock_share, random), {}), {}};
    }
    return ProfilingStep{ProfilingDone{fmt::format("after {} iterations", iterations())}, {}};
  }
  const JudgedPlan plan = judged(*problem, now, check);
  const PlanUncertainty& doubt = plan.doubt;
  if (check.stopped()) return std::nullopt;
  const double tolerance = tolerance_pct(now);
  const bool sure = *doubt.worst_bound_pct <= tolerance;
  std::vector<double> confirmable;
  // A plan that changes clocks between computations cannot be confirmed if clocks arrive too late for that.
  std::ranges::copy_if(options.slowdowns, std::back_inserter(confirmable),
                       [&](double slowdown) { return slowdown - 1 <= most_slowdown && shared != SharedClock::rank; });
  const auto plan_step = [&](double slowdown, bool confirming) -> std::optional<ProfilingStep> {
    auto window = window_of_plan(problem->mean(), std::min(slowdown, 1 + predicted(doubt)), confirming, check);
    if (!window) return std::nullopt;
    return ProfilingStep{with_rest(*std::move(window)), doubt};
  };
  const auto confirmed = static_cast<std::size_t>(confirming_windows());
  const auto done = [&](const std::string& why) { return ProfilingStep{ProfilingDone{why + doubt.text}, doubt}; };
  if (sure && confirmed >= kConfirmingRounds * confirmable.size()) {
    return done(fmt::format("after {} iterations ", iterations()));
  }
  if (iterations() >= options.max_iterations)
    return done(fmt::format("the limit of {} iterations is reached; ", iterations()));
  const bool probably_good =
      std::ranges::all_of(doubt.at, [&](const PlanUncertainty::At& at) { return at.expected_loss_pct <= tolerance; });
  if (!sure && probably_good && iterations() > kBetter * kBetter * options.max_iterations) {
    return done(fmt::format("after {} iterations, when those left would hardly improve the plan, ", iterations()));
  }
  if (sure) return plan_step(confirmable[confirmed % confirmable.size()], true);
  const std::size_t turn = windows.size() % kTurns;
  if (turn == kTurnOfHighest) {
    return ProfilingStep{with_rest(window_of(uniform(std::vector<int>(layout.types.size())), false)), doubt};
  }
  const auto loses_most = std::ranges::max_element(
      doubt.at, {}, [](const PlanUncertainty::At& at) { return std::max(at.loss_bound_pct, at.late_bound_pct); });
  if (turn == kTurnOfPlan && std::ranges::find(confirmable, loses_most->slowdown) != confirmable.end()) {
    return plan_step(loses_most->slowdown, false);
  }
  const std::vector<model::Plan>& rivals = plan.rivals[static_cast<std::size_t>(loses_most - doubt.at.begin())];
  return ProfilingStep{bounded(clocks_of_plans(layout, samples, *problem, rivals, random), doubt), doubt};
}

ProfilingStep OnlineProfiler::State::next_plain() const {
  if (static_cast<int>(windows.size()) < warm_up_windows()) {
    return {window_of(uniform(std::vector<int>(layout.types.size())), true), {}};
  }
  const auto clocks = plain_clocks(layout, samples);
  if (clocks) return {window_of(uniform(*clocks), false), {}};
  const std::string why =
      fmt::format("after {} iterations every computation's energy keeps rising, or has no lower clock", iterations());
  return {ProfilingDone{why}, {}};
}

OnlineProfiler::OnlineProfiler(std::unique_ptr<State> state) : state_(std::move(state)) {}
OnlineProfiler::OnlineProfiler(OnlineProfiler&&) noexcept = default;
OnlineProfiler& OnlineProfiler::operator=(OnlineProfiler&&) noexcept = default;
OnlineProfiler::~OnlineProfiler() = default;

Result<OnlineProfiler> OnlineProfiler::create(ProfilingJob job, ProfilingOptions options) {
  if (Status status = validate(options); !status) return status.error();
  Result<Layout> layout = Layout::build(std::move(job));
  if (!layout) return layout.error();
  return OnlineProfiler(std::make_unique<State>(std::move(*layout), std::move(options)));
}

ProfilingStep OnlineProfiler::next() const { return *next(StopCheck::never()); }

std::optional<ProfilingStep> OnlineProfiler::next(StopCheck& check) const {
  return state_->options.mode == ProfilingMode::plain ? state_->next_plain() : state_->next_adaptive(check);
}

Status OnlineProfiler::hand_out(ProfilingWindow window) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::invalid_input, fmt::format("profiling window {}: {}", window.number, what)};
  };
  if (window.number != windows_handed_out()) {
    return bad(fmt::format("its number must be {}, that of the next one", windows_handed_out()));
  }
  if (window.iterations < 1) return bad(fmt::format("{} iterations; must be >= 1", window.iterations));
  if (window.rest < 0) return bad(fmt::format("{} iterations of rest; must be >= 0", window.rest));
  const Layout& layout = state_->layout;
  if (window.clocks.size() != layout.type_of.size()) {
    return bad(fmt::format("clocks of {} ranks; the job has {}", window.clocks.size(), layout.num_ranks()));
  }
  for (int rank = 0; rank < layout.num_ranks(); ++rank) {
    const std::vector<Megahertz>& clocks = window.clocks[rank];
    if (clocks.size() != layout.type_of[rank].size()) {
      return bad(
          fmt::format("rank {} has {} clocks; it has {} actions", rank, clocks.size(), layout.type_of[rank].size()));
    }
    for (std::size_t a = 0; a < clocks.size(); ++a) {
      const ProfiledType& type = layout.types[layout.type_of[rank][a]];
      if (type.index_of(clocks[a]) < 0) {
        return bad(fmt::format("rank {}, action {}: {} MHz is not a clock of stage {}", rank, a, clocks[a].value(),
                               type.stage));
      }
    }
  }
  state_->windows.push_back(std::move(window));
  state_->window_s.push_back(0);
  state_->reports_of_last = 0;
  return Ok{};
}

bool OnlineProfiler::window_complete() const {
  if (state_->windows.empty()) return true;
  int replicas = 0;
  for (int rank = 0; rank < state_->layout.num_ranks(); ++rank) replicas += state_->layout.replicas(rank);
  return state_->reports_of_last == replicas;
}

Status OnlineProfiler::State::check_report(int rank, int replica, int window) const {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::invalid_input, "profiling result: " + what};
  };
  if (rank < 0 || rank >= layout.num_ranks()) {
    return bad(fmt::format("rank {}; must be 0 to {}", rank, layout.num_ranks() - 1));
  }
  if (replica < 0 || replica >= layout.replicas(rank)) {
    return bad(fmt::format("replica {} of rank {}; must be 0 to {}", replica, rank, layout.replicas(rank) - 1));
  }
  if (window < 0 || window >= static_cast<int>(windows.size())) {
    return bad(fmt::format("window {}; {} were handed out, numbered from 0", window, windows.size()));
  }
  if (reported.contains({window, rank, replica})) {
    return bad(fmt::format("rank {} (replica {}) has reported window {} before", rank, replica, window));
  }
  return Ok{};
}

Status OnlineProfiler::check(const RankResult& result) const {
  if (Status known = state_->check_report(result.rank, result.replica, result.window); !known) return known;
  const Layout& layout = state_->layout;
  return Samples::check(layout, result);
}

Result<std::vector<Rejection>> OnlineProfiler::report(const RankResult& result) {
  if (Status checked = check(result); !checked) return checked.error();
  auto rejections = state_->samples.take(state_->layout, result, state_->windows[result.window]);
  if (!rejections) return rejections.error();
  state_->reported.insert({result.window, result.rank, result.replica});
  if (result.window + 1 == windows_handed_out()) ++state_->reports_of_last;
  double sum_s = 0;
  for (const Seconds time : result.iteration_time) sum_s += time.value();
  double& longest_s = state_->window_s[result.window];
  if (std::isfinite(sum_s)) longest_s = std::max(longest_s, sum_s / static_cast<double>(result.iteration_time.size()));
  if (!state_->layout.job.measure_links) return rejections;
  state_->links.add(result);
  if (const auto links = state_->links.links()) {
    state_->layout.job.transfer_latency = links->latency;
    state_->layout.job.blocking_transfers = links->blocking_transfers;
  }
  return rejections;
}

Status OnlineProfiler::miss(int rank, int replica, int window) {
  if (Status known = state_->check_report(rank, replica, window); !known) return known;
  state_->reported.insert({window, rank, replica});
  if (window + 1 == windows_handed_out()) ++state_->reports_of_last;
  return Ok{};
}

Status OnlineProfiler::change_schedule(model::Schedule schedule) {
  State& state = *state_;
  ProfilingJob job = state.layout.job;
  job.schedule = std::move(schedule);
  Result<Layout> layout = Layout::build(std::move(job));
  if (!layout) return layout.error();
  const auto same = [](const ProfiledType& a, const ProfiledType& b) {
    return a.stage == b.stage && a.instruction == b.instruction && a.rank == b.rank;
  };
  if (!std::ranges::equal(layout->types, state.layout.types, same)) {
    return Error{ErrorCode::invalid_input, "profiling: the steps have other computations than before"};
  }
  if (auto known = links()) state.links_before = std::move(known);
  state.layout = *std::move(layout);
  state.links = MeasuredPipelines(state.layout.job.schedule);
  state.samples.forget_iterations();
  std::ranges::fill(state.window_s, 0);
  return Ok{};
}

std::optional<MeasuredLinks> OnlineProfiler::links() const {
  auto measured = state_->links.links();
  return measured ? measured : state_->links_before;
}
int OnlineProfiler::windows_handed_out() const { return static_cast<int>(state_->windows.size()); }
int OnlineProfiler::iterations_handed_out() const { return state_->iterations(); }

Result<ProfileEstimate> OnlineProfiler::estimate() const {
  if (Status status = state_->sampled(); !status) return status.error();
  ProfileEstimate estimate = profile_estimate(state_->layout, state_->samples, state_->model(), state_->options);
  estimate.links = links();
  return estimate;
}

Result<PlanUncertainty> OnlineProfiler::uncertainty() const {
  if (Status status = state_->sampled(); !status) return status.error();
  const TimeEnergyModel model = state_->model();
  const Result<PlanningProblem> problem =
      PlanningProblem::build(state_->layout, state_->samples, model, state_->options.lowest_clock_share);
  if (!problem) return problem.error();
  return state_->judged(*problem, model, StopCheck::never()).doubt;
}

}  // namespace perseus::profiling
