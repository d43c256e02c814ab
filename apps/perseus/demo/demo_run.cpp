#include "demo/demo_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "demo/demo_gpus.h"
#include "demo/demo_programs.h"
#include "demo/demo_server.h"
#include "demo/demo_stage.h"
#include "demo/demo_training.h"
#include "planning/checker/plan_run.h"
#include "planning/model/reference_plans.h"
#include "remote/answer_members.h"
#include "server/jobs/api_bodies.h"

namespace perseus::cli {
namespace {

constexpr double kLeastLimit_s = 900;      // to the first plan
constexpr double kLimitIterations = 150;   // likewise: that many at maximum clock
constexpr double kSavingWithin_pct = 0.3;  // the server's measured saving, of the GPUs' own counters
constexpr double kFewestMeasured = 3;      // iterations
constexpr double kMostLate_pct = 2;        // processes of a machine that the simulation can trust

class DemoRun final : public Story<DemoMeasurement> {
 public:
  DemoRun(const DemoOptions& options, const DemoJob& job, const DemoScratch& scratch)
      : o_(options),
        job_(job),
        server_(stage_, scratch),
        gpus_(options, job, scratch),
        training_(options, job, scratch, stage_, server_, gpus_) {}

  Result<DemoMeasurement> run() override {
    for (const auto step :
         {&DemoRun::start_processes, &DemoRun::run_baseline, &DemoRun::join_server, &DemoRun::wait_for_plan,
          &DemoRun::run_plan, &DemoRun::run_straggler, &DemoRun::end_training}) {
      if (const Status done = (this->*step)(); !done) return done.error();
    }
    m_.took_s = stage_.seconds();
    return std::move(m_);
  }

  Status tidy() override {
    stage_.clear();
    training_.tidy();
    return gpus_.wait_until_unlocked();
  }

  void keep_server() override { server_.keep(); }
  void stop_server() override { server_.stop(); }

 private:
  /// Checks that all required programs exist before any starts.
  Status start_processes() {
    const auto programs = find_demo_programs(o_);
    if (!programs) return programs.error();
    if (Status made = gpus_.make_leases(); !made) return made;
    if (Status started = server_.start(programs->server, o_); !started) return started;
    if (Status made = gpus_.make(); !made) return made;
    return training_.start(*programs);
  }

  Status join_server() { return training_.join_server(); }

  Status run_baseline() {
    stage_.begin("everything at maximum clock, without Perseus");
    auto iterations = training_.measure(2, o_.iterations);
    if (!iterations) return iterations.error();
    m_.baseline = perseus::replay::figures_of(*iterations, o_.replicas);
    if (o_.replicas < 2) return Ok{};
    m_.straggler.emplace();
    StragglerMeasurement& s = *m_.straggler;
    s.replica = o_.replicas - 1;
    s.power_limit_w = power_limit_for(job_.dag, kStragglerSlowdown);
    stage_.begin(fmt::format("the same with a straggler: the GPUs of replica {} capped at {:.0f} W", s.replica,
                             s.power_limit_w));
    gpus_.cap(s.replica, Watts(s.power_limit_w));
    if (Status skipped = training_.skip_ended(); !skipped) return skipped;
    iterations = training_.measure(2, std::max(2, o_.iterations / 2));
    if (!iterations) return iterations.error();
    s.all_max = perseus::replay::figures_of(*iterations, o_.replicas);
    gpus_.uncap(s.replica);
    return Ok{};
  }

  Status wait_for_plan() {
    stage_.begin(o_.known_profile ? "the server characterizes the pipeline from a known profile"
                                  : "profiling in vivo, then the server characterizes the pipeline");
    bool profiled = o_.known_profile;
    std::string state;
    while (true) {
      auto iteration = training_.next();
      if (!iteration) return iteration.error();
      if (first_with_client_.workers.empty()) first_with_client_ = *iteration;
      before_plan_.push_back(*std::move(iteration));
      const auto job = server_.ask("GET", training_.job_path());
      if (!job) return job.error();
      const std::string now = text_at(*job, {"state"});
      if (!profiled && now == "profiling") ++m_.profiling_iterations;
      if (now != state) {
        if (state == "profiling") {
          m_.profiling_s = stage_.seconds() - training_.joined_s();
          profiled = true;
        }
        if (now == "failed") return Error{ErrorCode::internal, "the server: " + text_at(*job, {"reason"})};
        state = now;
        m_.job_states.push_back(state);
      }
      stage_.so_far(
          fmt::format("iteration {}: {} {}", before_plan_.back().iteration, now, text_at(*job, {"profiling", "text"})));
      if (training_.follows_plan(before_plan_.back(), 0)) break;
      if (stage_.seconds() - training_.joined_s() > limit_s()) {
        return Error{ErrorCode::unavailable, fmt::format("no plan within {:g} s: the job is {}, {}{}", limit_s(), now,
                                                         text_at(*job, {"reason"}), training_.end_of_log())};
      }
    }
    m_.characterizing_s = stage_.seconds() - training_.joined_s() - m_.profiling_s;
    return Ok{};
  }

  double limit_s() const { return std::max(kLeastLimit_s, kLimitIterations * job_.all_max_time.value()); }

  Status run_plan() {
    stage_.begin("the plan is in force");
    auto measured = training_.measure_plan(1, o_.iterations + 1);  // the first one begins the counts
    if (!measured) return measured.error();
    std::vector<replay::JobIteration>& iterations = measured->iterations;
    m_.client_pct = replay::client_cpu_pct(iterations.front(), iterations.back());
    iterations.erase(iterations.begin());
    m_.plan = figures_of(*measured);
    const auto predicted = predicted_iteration();
    if (!predicted) return predicted.error();
    if (*predicted) m_.predicted = **predicted;
    if (Status same = compare_with_counters(); !same) return same;
    return compare_with_plan(iterations);
  }

  /// The saving that the server has measured, with that of the GPUs' own counters.
  Status compare_with_counters() {
    const auto job = server_.ask("GET", training_.job_path());
    if (!job) return job.error();
    const double plan_j = number_at(*job, {"savings", "measured", "energy_j"});
    const double all_max_j = number_at(*job, {"savings", "measured_all_max", "energy_j"});
    if (plan_j <= 0 || all_max_j <= 0 || number_at(*job, {"savings", "measured", "iterations"}) < kFewestMeasured) {
      const std::string why = text_at(*job, {"reason"});
      stage_.remark("not compared with the GPUs' own counters: the server has not measured the saving" +
                    (why.empty() ? "" : "; " + why));
      return Ok{};
    }
    m_.server_saving_pct = replay::saving_pct(plan_j, all_max_j);
    const double truth_pct = replay::saving_pct(m_.plan.energy_j, m_.baseline.energy_j);
    const Busy busy = how_busy();
    const double allowed_pct = kSavingWithin_pct + 100 * busy.lost_j / m_.baseline.energy_j;
    if (std::abs(*m_.server_saving_pct - truth_pct) <= allowed_pct) return Ok{};
    const std::string both =
        fmt::format("the server has measured a saving of {:.2f} %, the GPUs' own counters {:.2f} %",
                    *m_.server_saving_pct, truth_pct);
    if (busy.late_pct > kMostLate_pct) {
      stage_.remark(
          fmt::format("{}: not compared, since this machine is too busy for the simulation: its processes woke "
                      "up late for {:.1f} % of the time",
                      both, busy.late_pct));
      return Ok{};
    }
    return Error{ErrorCode::internal, fmt::format("{}; allowed: a difference of {:.2g} points", both, allowed_pct)};
  }

  /// In the phase that suffered most. Late processes read counters late, and all GPUs wait for one.
  struct Busy {
    double late_pct = 0;  ///< of an iteration's time
    double lost_j = 0;    ///< of an iteration
  };
  Busy how_busy() {
    Busy most;
    const auto look_at = [&](const replay::PhaseFigures& phase) {
      const double lost_s = 1e-3 * phase.lost_ms * training_.workers();
      most.late_pct = std::max(most.late_pct, 0.1 * phase.late_ms / phase.time_s);
      most.lost_j = std::max(most.lost_j, lost_s * training_.workers() * job_.blocking_power.value());
    };
    look_at(m_.baseline);
    look_at(m_.plan);
    if (before_plan_.size() > 2) {  // the first ones contain the start of the clients
      before_plan_.erase(before_plan_.begin(), before_plan_.begin() + 2);
      look_at(perseus::replay::figures_of(before_plan_, o_.replicas));
    }
    return most;
  }

  replay::PhaseFigures figures_of(const PlanIterations& measured) const {
    replay::PhaseFigures figures = perseus::replay::figures_of(measured.iterations, o_.replicas);
    figures.left_out = measured.left_out;
    return figures;
  }

  Result<std::optional<PredictedIteration>> predicted_iteration() {
    const auto job = server_.ask("GET", training_.job_path());
    if (!job) return job.error();
    PredictedIteration p;
    p.time_s = number_at(*job, {"savings", "per_iteration", "time_s"});
    p.energy_j = number_at(*job, {"savings", "per_iteration", "energy_j"});
    p.all_max_time_s = number_at(*job, {"savings", "per_iteration", "all_max_time_s"});
    p.all_max_energy_j = number_at(*job, {"savings", "per_iteration", "all_max_energy_j"});
    return p.energy_j > 0 ? std::optional(p) : std::optional<PredictedIteration>();
  }

  /// The planned clocks of each rank of replica 0, in the true profile's options.
  Status compare_with_plan(const std::vector<replay::JobIteration>& iterations) {
    model::Plan plan = model::all_maximum_clock(job_.dag);
    for (int rank = 0; rank < training_.ranks(); ++rank) {
      const auto answer =
          server_.ask("GET", fmt::format("{}/ranks/{}/plan?have=0&wait_s=5", training_.job_path(), rank));
      if (!answer) return answer.error();
      const auto* clocks = member_in(*answer, "clocks");
      if (clocks == nullptr || !clocks->is_array()) return Ok{};
      if (!apply_clocks(job_.dag, rank, clocks->get_array(), plan)) return Ok{};
      m_.planned_time_s = number_at(*answer, {"iteration_time_s"});
    }
    m_.planned = plan;
    m_.truth_time_s = checker::run_plan(job_.dag, plan, {gpus_.switch_latencies().second}).makespan.value();
    double all = 0, right = 0;
    for (const replay::JobIteration& iteration : iterations) {
      for (const replay::RankReport& report : iteration.workers) {
        if (report.worker >= training_.ranks()) continue;
        for (const replay::ComputationStamp& stamp : report.stamps) {
          const Megahertz planned = job_.dag.type_of(stamp.computation).options[plan[stamp.computation]].clock;
          if (planned.value() == 0) continue;
          ++all;
          right += planned.value() == stamp.clock_mhz ? 1 : 0;
        }
      }
    }
    if (all > 0) m_.at_planned_clock_pct = 100 * right / all;
    return Ok{};
  }

  Status run_straggler() {
    if (!m_.straggler) return Ok{};
    StragglerMeasurement& s = *m_.straggler;
    const int wanted = std::max(2, o_.iterations / 2);
    stage_.begin(fmt::format("the GPUs of replica {} are capped at {:.0f} W; the server has no notice of it", s.replica,
                             s.power_limit_w));
    gpus_.cap(s.replica, Watts(s.power_limit_w));
    if (Status skipped = training_.skip_ended(); !skipped) return skipped;
    auto measured = training_.measure_plan(2, wanted);
    if (!measured) return measured.error();
    s.no_reaction = figures_of(*measured);
    s.degree = std::max(1.0, s.no_reaction.time_s / m_.plan.time_s);

    stage_.begin(fmt::format("notice to the server: {:.3f} times slower", s.degree));
    if (Status sent = tell_straggler(s.degree); !sent) return sent;
    if (Status changed = wait_for_other_plan(s.replica, s.iterations_to_react); !changed) return changed;
    measured = training_.measure_plan(1, wanted);
    if (!measured) return measured.error();
    s.reaction = figures_of(*measured);
    const auto predicted = predicted_iteration();
    if (!predicted) return predicted.error();
    s.predicted = *predicted;

    stage_.begin("the straggler ends");
    gpus_.uncap(s.replica);
    if (Status sent = tell_straggler(1); !sent) return sent;
    if (Status changed = wait_for_other_plan(s.replica, s.iterations_to_recover); !changed) return changed;
    measured = training_.measure_plan(1, wanted);
    if (!measured) return measured.error();
    s.after = figures_of(*measured);
    return Ok{};
  }

  Status tell_straggler(double degree) {
    for (int rank = 0; rank < training_.ranks(); ++rank) {
      jobs::SetStraggler notice;
      notice.target.accelerator = DemoGpus::uuid_of(m_.straggler->replica * training_.ranks() + rank);
      notice.degree = degree;
      const auto answer = server_.ask("POST", "/v1/stragglers", json_text(notice));
      if (!answer) return answer.error();
    }
    return Ok{};
  }

  Status wait_for_other_plan(int straggler, int& iterations) {
    const std::int64_t before = training_.version();
    const double began_s = stage_.seconds();
    while (true) {
      const auto iteration = training_.next();
      if (!iteration) return iteration.error();
      ++iterations;
      if (training_.follows_plan(*iteration, before, straggler)) return Ok{};
      if (stage_.seconds() - began_s > limit_s()) {
        return Error{ErrorCode::unavailable,
                     fmt::format("no other plan arrived within {:g} s after the notice", limit_s())};
      }
    }
  }

  Status end_training() {
    stage_.begin("training ends");
    const auto last = training_.end();
    if (!last) return last.error();
    for (const replay::RankReport& report : last->workers) m_.clients.push_back(report.client);
    m_.client_whole_pct = replay::client_cpu_pct(first_with_client_, *last);
    const auto job = server_.ask("GET", training_.job_path());  // the client of worker 0 has informed the server
    if (!job) return job.error();
    m_.job_states.push_back(text_at(*job, {"state"}));
    return Ok{};
  }

  const DemoOptions& o_;
  const DemoJob& job_;
  DemoStage stage_;
  DemoMeasurement m_;
  DemoServer server_;
  DemoGpus gpus_;
  DemoTraining training_;
  replay::JobIteration first_with_client_;
  std::vector<replay::JobIteration> before_plan_;  ///< with a client
};

}  // namespace

std::unique_ptr<Story<DemoMeasurement>> demo_run(const DemoOptions& options, const DemoJob& job,
                                                 const DemoScratch& scratch) {
  return std::make_unique<DemoRun>(options, job, scratch);
}

}  // namespace perseus::cli
