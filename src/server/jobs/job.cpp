#include "server/jobs/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/jobs/event_text.h"
#include "server/jobs/job_shapes.h"
#include "server/jobs/pipeline_input.h"

namespace perseus::jobs {
namespace {

/// Index of `value` in `values`, added at the end if it is new. Few distinct values are expected.
template <class T>
int intern(std::vector<T>& values, const T& value) {
  const auto found = std::ranges::find(values, value);
  if (found != values.end()) return static_cast<int>(found - values.begin());
  values.push_back(value);
  return static_cast<int>(values.size()) - 1;
}

constexpr std::size_t kMostEarlierPlans = 4;

/// Applies an event to everything but state, sequence and times. An error changes nothing.
struct Fold {
  Job& job;
  double at_s;

  [[nodiscard]] Error broken(const std::string& what) const {
    return {ErrorCode::internal, fmt::format("job {}: event {}: {}", job.id, job.sequence + 1, what)};
  }

  Status operator()(const JobRegistered& e) {
    job.spec = e;
    if (e.shape) {
      job.schedule = e.shape->action_table.empty() ? e.shape->schedule : "action table";
      job.microbatches = e.shape->microbatches;
    }
    job.created_s = at_s;
    job.ranks.assign(e.degrees.world_size(), RankSlot());
    job.rank_at.assign(e.degrees.world_size(), -1);
    job.clock_sets = {{}};
    job.instruction_sets = {{}};
    job.input_of.assign(e.degrees.dp, "");
    return Ok{};
  }
  Status operator()(const RankRegistered& e) {
    const Degrees& d = job.spec.degrees;
    const bool fits = e.rank >= 0 && e.rank < d.world_size() && e.dp_rank >= 0 && e.dp_rank < d.dp && e.pp_rank >= 0 &&
                      e.pp_rank < d.pp && e.tp_rank >= 0 && e.tp_rank < d.tp;
    if (!fits) return broken(fmt::format("rank {} does not fit", e.rank));
    int& there = job.rank_at[job.coordinate(e.dp_rank, e.pp_rank, e.tp_rank)];
    if (job.ranks[e.rank]) return restarted(e, there);
    if (there >= 0) return broken(fmt::format("ranks {} and {} have the same place", there, e.rank));
    note_process(e.rank);
    job.names_processes |= e.epoch > 0;
    there = e.rank;
    job.ranks[e.rank] = Rank{e.dp_rank,
                             e.pp_rank,
                             e.tp_rank,
                             intern(job.clock_sets, e.clocks_mhz),
                             intern(job.instruction_sets, e.instructions),
                             e.accelerator,
                             e.host,
                             e.transfer_latency_s,
                             e.switch_latency_s,
                             std::nullopt,
                             e.epoch,
                             0,
                             e.control,
                             e.control_reason};
    note_abilities(e);
    ++job.ranks_registered;
    note_control(e.rank);
    job.switch_latency_s = std::max(job.switch_latency_s, e.switch_latency_s.value_or(0));
    note_latency(e.rank);
    job.joined_s = at_s;
    if (!e.accelerator.empty()) job.ranks_of_accelerator[e.accelerator].push_back(e.rank);
    return Ok{};
  }
  [[nodiscard]] bool is_registered(int rank) const {
    return rank >= 0 && rank < static_cast<int>(job.ranks.size()) && job.ranks[rank];
  }
  void note_process(int rank) {
    job.registered_s = at_s;
    job.silent.reset();
    job.silent_ranks.erase(rank);
  }
  void note_abilities(const RankRegistered& e) {
    Rank& rank = *job.ranks[e.rank];
    rank.gpu = e.gpu;
    rank.keeps_budgets = e.keeps_budgets;
    rank.paces = e.paces;
  }
  void note_control(int rank) {
    job.uncontrolled.erase(rank);
    if (!job.ranks[rank]->control.empty()) job.uncontrolled.insert(rank);
  }
  /// A client that names its process and sets clocks reports the switch latency once it has measured it.
  void note_latency(int index) {
    const Rank& rank = *job.ranks[index];
    const bool awaited = rank.names_process() && rank.control.empty() && !job.clock_sets[rank.clock_set].empty() &&
                         !rank.switch_latency_s;
    if (awaited) {
      job.without_latency.insert(index);
    } else {
      job.without_latency.erase(index);
    }
  }
  /// Another process of a known rank: it counts iterations from 0 and may run on another GPU.
  Status restarted(const RankRegistered& e, int there) {
    Rank& rank = *job.ranks[e.rank];
    if (e.epoch <= rank.epoch || there != e.rank) return broken(fmt::format("rank {} does not fit", e.rank));
    note_process(e.rank);
    job.names_processes |= e.process.value_or(e.epoch) > 0;
    const bool moved = rank.accelerator != e.accelerator;
    if (moved) {
      if (const auto ranks = job.ranks_of_accelerator.find(rank.accelerator); ranks != job.ranks_of_accelerator.end()) {
        std::erase(ranks->second, e.rank);
        if (ranks->second.empty()) job.ranks_of_accelerator.erase(ranks);
      }
      if (!e.accelerator.empty()) job.ranks_of_accelerator[e.accelerator].push_back(e.rank);
      rank.blocking_power_w.reset();
    }
    if (moved || !e.clocks_mhz.empty()) rank.clock_set = intern(job.clock_sets, e.clocks_mhz);
    if (!e.instructions.empty()) rank.instruction_set = intern(job.instruction_sets, e.instructions);
    if (moved || e.switch_latency_s) rank.switch_latency_s = e.switch_latency_s;
    rank.transfer_latency_s = e.transfer_latency_s;
    rank.accelerator = e.accelerator;
    rank.host = e.host;
    rank.epoch = e.epoch;
    rank.process = e.process;
    if (e.control.empty() && job.uncontrolled == std::set{e.rank}) job.profile_again = job.unprofiled;
    rank.control = e.control;
    rank.control_reason = e.control_reason;
    note_abilities(e);
    rank.held = 0;
    note_control(e.rank);
    note_latency(e.rank);
    if (++rank.restarts <= job.restarts) return Ok{};
    // The first rank after the job's restart. The plan in force applies from the beginning.
    job.restarts = rank.restarts;
    job.counted_to = -1;
    job.all_measure = false;
    if (job.kept) job.kept = ReportsKept{};
    job.earlier_plans.clear();
    if (job.plan) job.plan->from_iteration = 0;
    if (!job.windows.empty()) job.windows.back().from_iteration = 0;
    return Ok{};
  }
  Status operator()(const RankMeasured& e) {
    if (!is_registered(e.rank)) return broken(fmt::format("no rank {}", e.rank));
    Rank& rank = *job.ranks[e.rank];
    if (e.switch_latency_s) rank.switch_latency_s = e.switch_latency_s;
    job.switch_latency_s = std::max(job.switch_latency_s, e.switch_latency_s.value_or(0));
    if (e.blocking_power_w) rank.blocking_power_w = e.blocking_power_w;
    if (!e.instructions.empty()) rank.instruction_set = intern(job.instruction_sets, e.instructions);
    if (!e.clocks_mhz.empty()) {
      rank.clock_set = intern(job.clock_sets, e.clocks_mhz);
      job.profile_again = job.unprofiled;
    }
    if (e.control) {
      rank.control = *e.control == "clocks" ? "" : *e.control;
      rank.control_reason = e.control_reason.value_or("");
      note_control(e.rank);
      job.profile_again = job.unprofiled && job.uncontrolled_rank() < 0;
    }
    note_latency(e.rank);
    return Ok{};
  }
  Status operator()(const ProfileKnown& e) {
    for (const int pipeline : e.pipelines) {
      if (pipeline < 0 || pipeline >= job.num_pipelines()) return broken(fmt::format("no pipeline {}", pipeline));
    }
    if (e.pipelines.empty()) std::ranges::fill(job.input_of, e.input);
    for (const int pipeline : e.pipelines) job.input_of[pipeline] = e.input;
    job.profile_source = e.source;
    std::erase_if(job.planned_with, [&](const auto& planned) {
      return std::ranges::find(job.input_of, planned.first) == job.input_of.end();
    });
    // Drops frontiers of profiles that no pipeline uses any more.
    job.planned_with[e.input] = {e.switch_latency_s, e.fixed_latency, e.doubts};
    job.measure_again_s = 0;
    job.schedule = e.schedule;
    job.microbatches = e.microbatches;
    forget_shapes([&](const JobShape& shape) { return shape.microbatches == job.microbatches; });
    if (job.shape == job.microbatches) job.shape = 0;
    for (JobShape& shape : job.shapes) {
      const auto is_old = [&](const auto& one) {
        return std::ranges::find(job.input_of, one.first) == job.input_of.end();
      };
      std::erase_if(shape.inputs, is_old);
      std::erase_if(shape.why_not, is_old);
    }
    std::erase_if(job.characterizing, [&](const std::string& input) { return !is_in_use(job, input); });
    if (!e.text.empty()) job.profiled.text = e.text;
    const bool all_known = std::ranges::none_of(job.input_of, [](const std::string& input) { return input.empty(); });
    if (all_known) profiling_is_over();
    if (all_known && job.tries_profile()) job.trial.reset();
    return Ok{};
  }
  template <class Which>
  void forget_shapes(const Which& which) {
    std::erase_if(job.shapes, which);
    std::erase_if(job.characterizing, [&](const std::string& input) { return !is_in_use(job, input); });
  }
  /// A job knows few shapes; the one that came first is forgotten, unless it prevails.
  Status operator()(const ShapeSeen& e) {
    if (!e.varies.empty()) {
      job.varies = e.varies;
      job.reason = text_of_varying(e.varies);
      forget_shapes([](const JobShape&) { return true; });
      job.shape = 0;
      return Ok{};
    }
    if (!std::exchange(job.varies, "").empty()) {
      job.reason.clear();
      job.profile_again = job.unprofiled;
    }
    const bool is_own = e.microbatches == job.microbatches;
    const auto known = std::ranges::find(job.shapes, e.microbatches, &JobShape::microbatches);
    if (known != job.shapes.end() && known->action_table != e.action_table && !e.action_table.empty()) {
      known->action_table = e.action_table;
      known->inputs.clear();
      known->why_not.clear();
    } else if (!is_own && known == job.shapes.end()) {
      job.shapes.push_back({e.microbatches, e.action_table});
    }
    if (e.prevails) job.shape = is_own ? 0 : e.microbatches;
    if (job.shapes.size() > kMostShapes) {
      const auto first =
          std::ranges::find_if(job.shapes, [&](const JobShape& s) { return s.microbatches != job.shape; });
      forget_shapes([microbatches = first->microbatches](const JobShape& s) { return s.microbatches == microbatches; });
    }
    return Ok{};
  }
  Status operator()(const ShapeCompleted& e) {
    const auto shape = std::ranges::find(job.shapes, e.microbatches, &JobShape::microbatches);
    if (shape == job.shapes.end()) return broken(fmt::format("no shape of {} microbatches", e.microbatches));
    if (e.input.empty()) {
      if (const auto was = shape->inputs.extract(e.of)) job.characterizing.erase(was.mapped());
      shape->why_not[e.of] = e.why;
      return Ok{};
    }
    shape->inputs[e.of] = e.input;
    if (!job.characterized.contains(e.input)) job.characterizing.insert(e.input);
    return Ok{};
  }
  Status operator()(const ProfileOnTrial& e) {
    const bool wanted = std::ranges::any_of(job.input_of, [](const std::string& input) { return input.empty(); });
    if (wanted) job.trial = Job::Trial{e, std::nullopt};
    return Ok{};
  }
  Status operator()(const TrialEnded& e) {
    if (!job.tries_profile()) return broken("no profile is on trial");
    job.trial->ended = e;
    return Ok{};
  }
  Status operator()(const ProfilingStarted& e) {
    const auto exists = [&](int pipeline) { return pipeline >= 0 && pipeline < job.num_pipelines(); };
    if (e.pipelines.empty() || !std::ranges::all_of(e.pipelines, exists)) return broken("pipelines that do not exist");
    if (job.measure_again_s > 0) forget_profile(e.pipelines);
    job.profiling = e;
    job.profiling_since = job.sequence + 1;
    job.unprofiled = job.profile_again = false;
    job.modeled.reset();
    job.reason.clear();
    return Ok{};
  }
  void forget_profile(const std::vector<int>& pipelines) {
    for (const int pipeline : pipelines) {
      job.planned_with.erase(job.input_of[pipeline]);
      job.input_of[pipeline].clear();
    }
    for (JobShape& shape : job.shapes) {
      shape.inputs.clear();
      shape.why_not.clear();
    }
    std::erase_if(job.characterizing, [&](const std::string& input) { return !is_in_use(job, input); });
    job.measure_again_s = 0;
    ++job.measured_again;
    job.profiled = {};
  }
  Status operator()(const WindowHandedOut& e) {
    if (e.number != static_cast<int>(job.windows.size()) || e.version != job.version + 1 ||
        static_cast<int>(e.clocks_mhz.size()) != job.spec.degrees.pp) {
      return broken(fmt::format("window {} of version {} does not fit", e.number, e.version));
    }
    // What an iteration takes at the highest clock is not known for other steps.
    if (!job.windows.empty() && job.windows.back().microbatches != e.microbatches) job.profiled.highest_s = 0;
    job.windows.push_back(e);
    job.version = e.version;
    job.reported.clear();
    job.window_s = at_s;
    job.windows_overdue = e.overdue.empty() ? 0 : job.windows_overdue + 1;
    job.reason = e.overdue;
    if (e.from_iteration > 0) {
      if (job.profiled.first_iteration == 0) job.profiled.first_iteration = e.from_iteration;
      job.profiled.last_iteration = e.from_iteration + e.iterations - 1;
    }
    ++job.profiled.windows;
    job.profiled.iterations += e.iterations;
    job.profiled.uncertainty_pct = e.uncertainty_pct;
    job.profiled.text = e.text;
    return Ok{};
  }
  Status operator()(const ResultReported& e) {
    const bool known = e.rank >= 0 && e.rank < static_cast<int>(job.ranks.size()) && job.ranks[e.rank];
    if (!known || job.ranks[e.rank]->dp_rank != job.measured_pipeline()) {
      return broken(fmt::format("rank {} does not measure", e.rank));
    }
    if (e.window + 1 != static_cast<int>(job.windows.size()) || !job.reported.insert(e.rank).second) {
      return broken(fmt::format("a result of window {} from rank {}", e.window, e.rank));
    }
    job.results.push_back(e);
    if (job.all_reported()) {
      job.longest_window_s = std::max(job.longest_window_s, at_s - job.window_s);
      count_window_cost();
    }
    return Ok{};
  }
  /// Adds the last window, which all ranks have reported, to the cost of profiling.
  void count_window_cost() {
    const WindowHandedOut& window = job.windows.back();
    double time_s = 0, worst_s = 0, energy_j = 0;
    for (const ResultReported& result : job.results) {
      if (result.window != window.number || result.iteration_time_s.empty()) continue;
      const auto n = static_cast<double>(result.iteration_time_s.size());
      double sum_s = 0, sum_j = 0;
      for (const double t : result.iteration_time_s) sum_s += t, worst_s = std::max(worst_s, t);
      for (const double j : result.iteration_energy_j) sum_j += j;
      time_s = std::max(time_s, sum_s / n);
      energy_j += sum_j / n;
    }
    Job::Profiled& profiled = job.profiled;
    if (time_s <= 0) return;
    if (window.highest && (profiled.highest_s == 0 || time_s < profiled.highest_s)) {
      profiled.highest_s = time_s;
      profiled.highest_j = energy_j;
    }
    if (profiled.highest_s == 0) return;
    profiled.extra_s += window.iterations * (time_s - profiled.highest_s);
    profiled.extra_j += window.iterations * (energy_j - profiled.highest_j);
    profiled.worst_slowdown_pct = std::max(profiled.worst_slowdown_pct, 100 * (worst_s / profiled.highest_s - 1));
  }
  Status operator()(const ProfilingFailed& e) {
    job.reason = "profiling failed: " + e.why;
    job.unprofiled = true;
    job.profile_again = false;
    profiling_is_over();
    return Ok{};
  }
  Status operator()(const SavingModeled& e) {
    if (!job.profiling || !job.profiling->keeps_clocks) return broken("a model of clocks that are measured");
    job.reason = e.text;
    job.unprofiled = true;
    job.profile_again = job.uncontrolled.empty();
    profiling_is_over();
    job.modeled = e;
    return Ok{};
  }
  void profiling_is_over() {
    job.modeled.reset();
    job.windows.clear();
    job.results.clear();
    job.reported.clear();
  }
  Status operator()(const CharacterizationStarted& e) {
    for (const std::string& input : e.inputs) {
      job.failures.erase(input);
      job.unrefined.erase(input);
      job.characterizing.insert(input);
    }
    job.reason.clear();
    return Ok{};
  }
  Status operator()(const Characterized& e) {
    job.characterizing.erase(e.input);
    job.characterized[e.input] = {e.points, e.t_min_s, e.t_star_s};
    return Ok{};
  }
  Status operator()(const RefinementEnded& e) {
    job.characterizing.erase(e.input);
    job.unrefined[e.input] = e.why;
    job.reason = "the plan is from a quick frontier: " + e.why;
    return Ok{};
  }
  Status operator()(const CharacterizationFailed& e) {
    job.characterizing.erase(e.input);
    job.characterized.erase(e.input);
    job.failures[e.input] = e.why;
    job.reason = "characterization failed: " + e.why;
    return Ok{};
  }
  Status operator()(const StragglerNoticed& e) {
    if (e.pipeline < 0 || e.pipeline >= job.num_pipelines()) return broken(fmt::format("no pipeline {}", e.pipeline));
    if (job.notice(e.id) != nullptr) return broken(fmt::format("a second notice {}", e.id));
    job.notices.push_back({e.id, e.target, e.pipeline, e.degree, e.effective_s, e.detected, false});
    ++job.notices_ever;
    return Ok{};
  }
  /// Earlier notices of the same target end; "back to normal" then has no further effect.
  Status operator()(const StragglerTookEffect& e) {
    const auto found = std::ranges::find(job.notices, e.id, &Notice::id);
    if (found == job.notices.end() || found->in_force) return broken(fmt::format("no pending notice {}", e.id));
    found->in_force = true;
    const Notice now = *found;
    std::erase_if(job.notices, [&](const Notice& other) {
      const bool same_source =
          other.target == now.target && other.pipeline == now.pipeline && other.detected == now.detected;
      return other.in_force && same_source && (other.id != now.id || now.degree == 1);
    });
    return Ok{};
  }
  Status operator()(const StragglerWithdrawn& e) {
    if (job.notice(e.id) == nullptr) return broken(fmt::format("no notice {}", e.id));
    std::erase_if(job.notices, [&](const Notice& notice) { return notice.id == e.id; });
    return Ok{};
  }
  Status operator()(const PolicySet& e) {
    job.policies[std::string(kind_of(e.policy))] = e.policy;
    return Ok{};
  }
  Status operator()(const PolicyCleared& e) {
    if (job.policies.erase(e.policy) == 0) return broken(fmt::format("no policy {}", e.policy));
    return Ok{};
  }
  Status operator()(const TierSet& e) {
    job.operator_tier = e.tier;
    return Ok{};
  }
  Status operator()(const PlanDeployed& e) {
    const auto in_range = [&](int c) { return c >= 0 && c < static_cast<int>(e.choices.size()); };
    if (static_cast<int>(e.choice_of.size()) != job.num_pipelines() || !std::ranges::all_of(e.choice_of, in_range) ||
        e.version != job.version + 1) {
      return broken(fmt::format("plan {} does not fit", e.version));
    }
    if (job.plan) job.earlier_plans.push_back(*std::move(job.plan));
    if (job.earlier_plans.size() > kMostEarlierPlans) job.earlier_plans.erase(job.earlier_plans.begin());
    job.plan = e;
    if (e.shape == 0) job.plan->shape = job.microbatches;
    job.measured_plan.clear();
    job.predicted = {};
    job.version = e.version;
    job.deployed_s = at_s;
    job.held.deployed(e.version, e.budget);
    return Ok{};
  }
  Status operator()(const PowerGranted& e) {
    job.grant = e;
    job.granted_s = at_s;
    return Ok{};
  }
  Status operator()(const VersionHeld& e) {
    note_held(job, e.version, e.ranks, at_s);
    return Ok{};
  }
  static void add(IterationsCounted& sum, const IterationsCounted& part, int sign = 1) {
    sum.iterations += sign * part.iterations;
    sum.saved_j += sign * part.saved_j;
    sum.all_max_energy_j += sign * part.all_max_energy_j;
  }
  Status operator()(const IterationsCounted& e) {
    add(job.total, e);
    if (!e.measured) {
      add(job.estimated, e);
      add(job.predicted, e);
    }
    job.total.measured = job.estimated.iterations == 0;
    job.counted_to = e.last_iteration;
    return Ok{};
  }
  Status operator()(const PlanDropped& e) {
    const bool known = e.rank >= 0 && e.rank < static_cast<int>(job.ranks.size()) && job.ranks[e.rank];
    if (!known || !job.plan || job.plan->version != e.version) return broken(fmt::format("no plan {}", e.version));
    // The whole profile is doubted: its predictions fail at any deadline.
    const auto plan = plan_for(*job.plan, e.shape);
    if (!plan) return Ok{};
    const PlanDeployed::Choice& choice = plan->of(job.ranks[e.rank]->dp_rank);
    if (choice.point >= 0) job.dropped.try_emplace(std::string(input_of_frontier(choice.input)), text_of(e));
    if (choice.point >= 0 && plan->shape == job.plan->shape) {
      // At once the first time; a profile that does not stay right is measured less and less often.
      constexpr double first_pause_s = 600, longest_pause_s = 86400;
      const double pause_s =
          job.measured_again == 0 ? 0 : std::min(std::ldexp(first_pause_s, job.measured_again - 1), longest_pause_s);
      job.measure_again_s = at_s + pause_s;
    }
    add(job.total, job.predicted, -1);
    add(job.estimated, job.predicted, -1);
    job.predicted = {};
    job.total.measured = job.total.iterations > 0 && job.estimated.iterations == 0;
    return Ok{};
  }
  Status operator()(const EnergyMeasured& e) {
    job.all_measure = true;
    const int shape = e.shape == 0 ? job.microbatches : e.shape;
    if (e.version == 0) job.measured_highest[shape] = e;
    if (job.plan && e.version == job.plan->version) job.measured_plan[shape] = e;
    return Ok{};
  }
  Status operator()(const ReportsKept& e) {
    for (const ReportsKept::Run& run : e.runs) {
      for (const int rank : run.ranks) {
        if (rank < 0 || rank >= static_cast<int>(job.ranks.size())) return broken(fmt::format("no rank {}", rank));
      }
    }
    job.kept = e;
    return Ok{};
  }
  Status operator()(const JobSilent& e) {
    for (const int rank : e.ranks) {
      if (!is_registered(rank)) return broken(fmt::format("no rank {}", rank));
    }
    if (e.ranks.empty()) {
      job.silent = e;
      job.silent_ranks.clear();
    }
    for (const int rank : e.ranks) job.silent_ranks[rank] = e.since_s;
    return Ok{};
  }
  Status operator()(const JobHeard& e) {
    for (const int rank : e.ranks) {
      if (!is_registered(rank)) return broken(fmt::format("no rank {}", rank));
    }
    if (e.ranks.empty()) {
      job.silent.reset();
      job.heard_s = at_s;
    }
    for (const int rank : e.ranks) {
      job.silent_ranks.erase(rank);
      job.ranks[rank]->heard_s = at_s;
    }
    return Ok{};
  }
  Status operator()(const JobSeen&) { return Ok{}; }
  Status operator()(const UnknownEvent&) { return Ok{}; }
  Status operator()(const JobFinished&) { return Ok{}; }
  Status operator()(const JobExpired&) {
    job.reason = "no request for too long";
    job.state_before_expiry = job.state;
    return Ok{};
  }
  Status operator()(const JobRevived&) {
    job.silent.reset();
    job.silent_ranks.clear();
    job.reason.clear();
    return Ok{};
  }
};

}  // namespace

Seconds Job::switch_latency_of(std::string_view frontier_key) const {
  const auto planned = planned_with.find(std::string(input_of_frontier(frontier_key)));
  return Seconds(planned == planned_with.end() ? 0 : planned->second.switch_latency_s.value_or(0));
}

const Notice* Job::notice(std::string_view notice_id) const {
  const auto found = std::ranges::find(notices, notice_id, &Notice::id);
  return found == notices.end() ? nullptr : &*found;
}

namespace {

Status apply_known(Job& job, const Event& event) {
  const auto next = next_state(job.state, event.body.index());
  if (!next) {
    return Error{ErrorCode::internal, fmt::format("job {}: event {}: {} cannot happen to a job that is {}", job.id,
                                                  job.sequence + 1, kind_of(event), name_of(job.state))};
  }
  if (Status folded = std::visit(Fold{job, event.at_s}, event.body); !folded) return folded;
  job.state = std::holds_alternative<JobRevived>(event.body) ? job.state_before_expiry : *next;
  job.updated_s = event.at_s;
  if (is_request(event.body.index())) job.active_s = event.at_s;
  ++job.sequence;
  return Ok{};
}

}  // namespace

std::string_view shown_state(const Job& job) { return job.live() && job.silent ? kSilentState : name_of(job.state); }

bool waits_for_plans(const Job& job) { return !job.spec.facts.contains(std::string(kProtocolFact)); }

bool keeps_calling(const Job& job) { return job.ranks_registered > 0 && (waits_for_plans(job) || job.has_reports()); }

Status apply(Job& job, const Event& event) {
  if (!std::holds_alternative<UnknownEvent>(event.body)) {
    Status folded = apply_known(job, event);
    // Events after an unknown one may conflict with what is known.
    if (folded || job.unknown_events == 0) return folded;
  }
  job.updated_s = std::max(job.updated_s, event.at_s);
  ++job.unknown_events;
  ++job.sequence;
  return Ok{};
}

}  // namespace perseus::jobs
