#include "demo_course.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <set>
#include <sstream>
#include <thread>
#include <tuple>
#include <utility>

#include "interrupt.h"
#include "io/formats/file.h"
#include "io/formats/format_profile_csv.h"
#include "io/formats/transfer_latency_text.h"
#include "io/report/format.h"
#include "planning/checker/plan_run.h"
#include "planning/model/reference_plans.h"
#include "server_call.h"
#include "simulation/replay/child_process.h"
#include "simulation/replay/kernel_state.h"
#include "simulation/replay/simulated_device.h"
#include "simulation/replay/simulated_ranks.h"
#include "simulation/replay/training_replay.h"

namespace perseus::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using SteadyClock = std::chrono::steady_clock;

constexpr int kPlannedState = 3;  // PERSEUS_PLANNED
// In the profile's own time, before --time-scale: typical of data-center GPUs, more on the way down.
constexpr Seconds kLeastSwitchLatency(0.002), kMostSwitchLatency(0.006);
constexpr double kLeastLimit_s = 180;      // to the first plan, where none was given
constexpr double kLimitIterations = 150;   // likewise: that many at maximum clock
constexpr double kControlLimit_s = 15;     // for a client to find its helper
constexpr double kPlanGap_s = 60;          // without a plan while one is measured, and
constexpr double kPlanGapIterations = 50;  // at least so long: a client's trial takes up to 32 iterations
constexpr double kSilence_s = 5, kSilenceIterations = 3;  // without a report: print who is silent

double number_at(const json::value& value, std::initializer_list<std::string_view> path, double otherwise = 0) {
  const json::value* at = &value;
  for (const std::string_view name : path) {
    const auto* object = at->if_object();
    at = object != nullptr ? object->if_contains(name) : nullptr;
    if (at == nullptr) return otherwise;
  }
  return at->is_number() ? at->to_number<double>() : otherwise;
}

std::string text_at(const json::value& value, std::initializer_list<std::string_view> path) {
  const json::value* at = &value;
  for (const std::string_view name : path) {
    const auto* object = at->if_object();
    at = object != nullptr ? object->if_contains(name) : nullptr;
    if (at == nullptr) return {};
  }
  return at->is_string() ? std::string(at->get_string().c_str()) : std::string();
}

Result<std::string> own_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return Error{ErrorCode::not_found, fmt::format("/proc/self/exe: {}", error.message())};
  return self.parent_path().string();
}

}  // namespace

/// Progress on standard error: a line a phase, and on a terminal the progress within it.
class DemoStage {
 public:
  void begin(const std::string& what) {
    clear();
    remarks_.clear();
    fmt::print(stderr, "{:6.1f} s  {}\n", seconds(), what);
  }
  void remark(const std::string& what) {
    clear();
    fmt::print(stderr, "{:6.1f} s    {}\n", seconds(), what);
  }
  /// Ranks of a pipeline notice the same event at the same time: prints the first remark of each topic in a phase.
  void remark_once(const std::string& topic, const std::string& what) {
    if (remarks_.insert(topic).second) remark(what);
  }
  void so_far(const std::string& what) {
    if (!terminal_) return;
    fmt::print(stderr, "\r\x1b[K          {}", what);
    std::fflush(stderr);
    shown_ = true;
  }
  void clear() {
    if (shown_) fmt::print(stderr, "\r\x1b[K");
    shown_ = false;
  }
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(SteadyClock::now() - began_).count(); }

 private:
  SteadyClock::time_point began_ = SteadyClock::now();
  std::set<std::string> remarks_;
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
};

class DemoCourse::Course {
 public:
  Course(const DemoOptions& options, const DemoJob& job, const DemoScratch& scratch)
      : o_(options), job_(job), scratch_(scratch) {}

  Result<DemoMeasurement> run() {
    if (Status found = find_programs(); !found) return found.error();
    for (const auto step : {&Course::start_server, &Course::make_gpus, &Course::start_workers, &Course::run_baseline,
                            &Course::join_server, &Course::wait_for_plan, &Course::run_plan, &Course::run_straggler,
                            &Course::end_training}) {
      if (const Status done = (this->*step)(); !done) return done.error();
    }
    m_.took_s = stage_.seconds();
    return std::move(m_);
  }

  /// Call after success or failure: ends all processes but the server and unlocks all clocks.
  Status tidy() {
    stage_.clear();
    continue_stopped();
    replay_.reset();
    continue_stopped();  // processes that were stopped by a signal
    std::string locked;
    const auto until = SteadyClock::now() + std::chrono::seconds(5);
    do {
      locked.clear();
      for (std::size_t w = 0; w < gpus_.size(); ++w) {
        if (gpus_[w]->locked()) locked += fmt::format(" {}", w);
      }
      if (locked.empty()) return Ok{};
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    } while (SteadyClock::now() < until);
    return Error{ErrorCode::unavailable,
                 fmt::format("clocks are still locked on the GPUs of workers{}: their helpers do not end", locked)};
  }

  void keep_server() {
    fmt::print(stderr, "the dashboard stays at {} until Ctrl-C\n", dashboard_);
    while (!InterruptGuard::interrupted() && !server_->ended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  void stop_server() {
    if (!server_) return;
    server_->signal(SIGTERM);
    server_->wait(5);
    server_.reset();
  }

 private:
  /// Checks that all required programs exist before any starts.
  Status find_programs() {
    const auto folder = own_folder();
    if (!folder) return folder.error();
    folder_ = *folder;
    worker_program_ = folder_ + "/perseus-replay";
    if (!fs::exists(worker_program_)) {
      return Error{ErrorCode::not_found, worker_program_ + ": the worker program is not there"};
    }
    const std::string cuda = folder_ + "/libcuda-simulated.so";
    if (o_.host_ahead != "synchronous" && !fs::exists(cuda)) {
      return Error{ErrorCode::not_found, cuda + ": the simulated CUDA driver is not there"};
    }
    const std::string beside = folder_ + "/perseus-clockd";
    helper_program_ = o_.helper.empty() && fs::exists(beside) ? beside : o_.helper;
    if (std::error_code ignored;
        !o_.helper.empty() && (!fs::is_regular_file(o_.helper, ignored) || access(o_.helper.c_str(), X_OK) != 0)) {
      return Error{ErrorCode::not_found, fmt::format("--helper {}: not a program that can be run", o_.helper)};
    }
    // Leases on clocks serve the process that has to give a clock back: they belong to these GPUs, and are deleted
    // with them.
    const std::string leases = scratch_.file("leases");
    std::error_code error;
    fs::create_directory(leases, error);
    if (error) return Error{ErrorCode::cannot_write, fmt::format("{}: {}", leases, error.message())};
    fs::permissions(leases, fs::perms::owner_all, error);
    setenv("PERSEUS_RUNTIME_DIR", leases.c_str(), 1);
    return Ok{};
  }

  int ranks() const { return job_.dag.num_ranks(); }
  int workers() const { return ranks() * o_.replicas; }

  Status start_server() {
    auto server = replay::ChildProcess::start(
        {{folder_ + "/perseus", "serve", "--listen", fmt::format("127.0.0.1:{}", o_.server_port), "--data",
          scratch_.file("server"), "--log-level", "warning",
          // For a demo of a minute: a good plan, not the best possible.
          "--profiling-tolerance-pct", "1", "--profiling-iterations", "20", "--slowdown", o_.slowdown},
         {},
         scratch_.file("server.log"),
         true});
    if (!server) return server.error();
    server_ = std::make_unique<replay::ChildProcess>(*std::move(server));
    const std::string line = server_->read_line(30), marker = "serving on ";
    const std::size_t at = line.find(marker);
    if (at == std::string::npos) {
      return Error{ErrorCode::unavailable, "the server did not start: " + last_words("server.log")};
    }
    peer_.url = line.substr(at + marker.size());
    peer_.timeout = std::chrono::seconds(20);
    dashboard_ = peer_.url + "/";
    stage_.begin(fmt::format("server up; dashboard: {}", dashboard_));
    return Ok{};
  }

  /// To the highest clock, and to the lowest.
  [[nodiscard]] std::pair<Seconds, Seconds> switch_latencies() const {
    if (!o_.switch_latency_ms) return {o_.time_scale * kLeastSwitchLatency, o_.time_scale * kMostSwitchLatency};
    const Seconds given(1e-3 * *o_.switch_latency_ms);
    return {given, given};
  }

  Status make_gpus() {
    replay::SimulatedRankOptions options;
    options.blocking_power = job_.blocking_power;
    options.idle_power = 0.6 * job_.blocking_power;
    std::tie(options.least_switch_latency, options.most_switch_latency) = switch_latencies();
    for (int w = 0; w < workers(); ++w) {
      simulated_gpu::SimulatedGpuSpec spec = replay::gpu_of_rank(job_.dag, w % ranks(), options);
      spec.uuid = uuid_of(w);
      gpu_files_.push_back(fs::absolute(scratch_.file(fmt::format("gpu_{}", w))).string());
      auto gpu = simulated_gpu::SimulatedGpu::create(gpu_files_.back(), spec);
      if (!gpu) return gpu.error();
      gpus_.push_back(*std::move(gpu));
      limits_.push_back(spec.power_limit);
    }
    return Ok{};
  }

  /// Of this demo alone: several may run at once.
  static std::string uuid_of(int worker) { return fmt::format("GPU-{:08x}-5131-4000-8000-{:012x}", getpid(), worker); }

  Status start_workers() {
    const std::string csv = scratch_.file("profile.csv");
    if (Status written = formats::write_file(csv, formats::format_profile_csv(job_.profile)); !written) return written;
    replay::ReplayOptions replay;
    replay.program = worker_program_;
    // A straggler may be twice as slow; a factor of ten leaves a margin for a busy machine.
    replay.report_limit_s = 60 + 10 * o_.straggler_slowdown * job_.all_max_time.value();
    replay.replicas = o_.replicas;
    replay.gpus = gpu_files_;
    replay.error_file = scratch_.file("workers.log");
    replay.silence_s = kSilence_s + kSilenceIterations * o_.straggler_slowdown * job_.all_max_time.value();
    replay.on_silence = [this](const std::string& who) { stage_.remark("training stands still: " + who); };
    replay.on_report = [this](const replay::RankReport& report) { show_client_log(report); };
    replay.interrupted = [] { return InterruptGuard::interrupted(); };
    const std::string name = o_.profile.empty() ? "the sample" : fs::path(o_.profile).stem().string();
    replay.arguments = {"--profile",
                        csv,
                        "--schedule",
                        o_.schedule,
                        "--microbatches",
                        std::to_string(o_.microbatches),
                        "--chunks",
                        std::to_string(job_.chunks),
                        "--blocking-power",
                        fmt::format("{}", job_.blocking_power.value()),
                        "--transfer-latency",
                        formats::transfer_latency_option(o_.transfer_latency),
                        "--host-ahead",
                        o_.host_ahead,
                        "--cuda",
                        folder_ + "/libcuda-simulated.so",
                        "--server",
                        peer_.url,
                        "--job-name",
                        fmt::format("demo of {} (simulated GPUs)", name),
                        "--facts",
                        fmt::format("model={}\nframework=perseus-replay\naccelerator=simulated", name)};
    if (o_.blocking_transfers) replay.arguments.emplace_back("--blocking-transfers");
    if (o_.known_profile) {
      replay.arguments.insert(replay.arguments.end(), {"--profile-name", kProfileName});
      if (Status pushed = push_profile(); !pushed) return pushed;
    } else {
      replay.arguments.emplace_back("--measure-blocking-power");
    }
    if (!helper_program_.empty()) { replay.arguments.insert(replay.arguments.end(), {"--helper", helper_program_}); }
    auto launched = replay::TrainingReplay::launch(job_.dag, replay);
    if (!launched) return launched.error();
    replay_ = *std::move(launched);
    stage_.begin(fmt::format("{} workers: {} replicas of {} ranks, {} with {} microbatches, on simulated GPUs",
                             workers(), o_.replicas, ranks(), o_.schedule, o_.microbatches));
    return Ok{};
  }

  Status push_profile() {
    json::object pipeline{{"schedule", o_.schedule},
                          {"microbatches", o_.microbatches},
                          {"chunks", job_.chunks},
                          {"blocking_power_w", job_.blocking_power.value()},
                          {"transfer_latency_s", json::parse(formats::format_transfer_latency(o_.transfer_latency))},
                          {"blocking_transfers", o_.blocking_transfers}};
    const json::object body{{"profile_csv", formats::format_profile_csv(job_.profile)},
                            {"pipeline", std::move(pipeline)}};
    const auto answer = ask("PUT", std::string("/v1/profiles/") + kProfileName, json::serialize(body));
    if (!answer) return answer.error();
    return Ok{};
  }

  /// Iterations, without the first `unmeasured` ones.
  Result<std::vector<replay::JobIteration>> measure(int unmeasured, int measured) {
    std::vector<replay::JobIteration> iterations;
    for (int i = 0; i < unmeasured + measured; ++i) {
      auto iteration = next();
      if (!iteration) return iteration.error();
      if (i >= unmeasured) iterations.push_back(*std::move(iteration));
    }
    return iterations;
  }

  struct PlanIterations {
    std::vector<replay::JobIteration> iterations;
    int left_out = 0;  ///< between the first and the last: did not run the plan
  };
  /// Iterations that ran one plan from beginning to end. Others are skipped: those of a trial, in which a client
  /// compares the plan with the highest clock. If another plan comes, the measurement begins anew.
  Result<PlanIterations> measure_plan(int unmeasured, int measured) {
    PlanIterations result;
    int followed = 0;
    double plan_s = stage_.seconds();
    while (followed < unmeasured + measured) {
      auto iteration = next();
      if (!iteration) return iteration.error();
      const std::int64_t version = plan_version(*iteration);
      if (version == 0) {
        if (!result.iterations.empty()) ++result.left_out;
        if (stage_.seconds() - plan_s > std::max(kPlanGap_s, kPlanGapIterations * job_.all_max_time.value()))
          return no_plan_in_force();
        continue;
      }
      plan_s = stage_.seconds();
      if (version != version_) {
        if (followed > 0) {
          stage_.remark(fmt::format("plan {} has replaced plan {}: the measurement begins anew", version, version_));
        }
        version_ = version;
        result = {};
        followed = 0;
      }
      if (++followed > unmeasured) result.iterations.push_back(*std::move(iteration));
    }
    if (result.left_out > 0) {
      stage_.remark(fmt::format("left out: {} iterations that did not run the plan", result.left_out));
    }
    return result;
  }

  /// The plan version that all of this iteration ran on all workers; 0: none. A client that holds its clock at the
  /// highest one reports that from some moment within an iteration on, so the iteration before counts too.
  std::int64_t plan_version(const replay::JobIteration& iteration) const {
    const std::int64_t version = iteration.workers.front().client.plan_version;
    const auto runs = [&](const replay::RankReport& report) {
      const replay::ClientFigures& c = report.client;
      return c.state == kPlannedState && c.controls_clock != 0 && c.plan_version == version;
    };
    const bool before = previous_.iteration + 1 == iteration.iteration && std::ranges::all_of(previous_.workers, runs);
    return before && std::ranges::all_of(iteration.workers, runs) ? version : 0;
  }

  Error no_plan_in_force() {
    std::string why;
    if (const auto job = ask("GET", job_path_)) {
      why = text_at(*job, {"reason"});
      const auto* dropped = job->is_object() ? job->get_object().if_contains("plans_dropped") : nullptr;
      if (dropped != nullptr && dropped->is_array()) {
        for (const json::value& text : dropped->get_array()) {
          if (text.is_string()) why = text.get_string().c_str();
        }
      }
    }
    return {ErrorCode::unavailable,
            fmt::format("no plan is in force on all ranks: {}{}",
                        why.empty() ? "the clients hold their highest clock" : why, last_words("workers.log"))};
  }

  Result<replay::JobIteration> next() {
    auto iteration = replay_->next_iteration();
    if (!iteration) {
      if (InterruptGuard::interrupted()) return iteration.error();
      return Error{iteration.error().code, iteration.error().message + last_words("workers.log")};
    }
    if (Status whole = check_processes(*iteration); !whole) return whole.error();
    previous_ = std::exchange(latest_, *iteration);
    double energy_j = 0;
    for (const replay::RankReport& report : iteration->workers) energy_j += report.energy_j;
    const replay::RankReport& first = iteration->workers.front();
    stage_.so_far(fmt::format("iteration {}: {}, {}", iteration->iteration,
                              report::text_of(Seconds(first.end_s - first.start_s)),
                              report::text_of(Joules(energy_j))));
    return iteration;
  }

  void show_client_log(const replay::RankReport& report) {
    std::istringstream lines(report.client_log);
    for (std::string line; std::getline(lines, line);) {
      stage_.remark_once(line.substr(0, line.find(':')), fmt::format("{}: {}", worker_name(report.worker), line));
    }
  }
  [[nodiscard]] std::string worker_name(int worker) const {
    return fmt::format("worker {} (replica {}, rank {})", worker, worker / ranks(), worker % ranks());
  }

  /// One of the two processes of a clock helper.
  struct HelperProcess {
    int worker;
    pid_t pid;
    bool is_supervisor;
  };
  /// This demo's stopped helper processes: by the names that perseus-clockd gives its processes, and the GPU in their
  /// arguments.
  std::vector<HelperProcess> stopped_helpers() const {
    std::vector<HelperProcess> stopped;
    for (const pid_t pid : replay::all_processes()) {
      const auto state = replay::kernel_state_of(pid);
      if (!state || !state->stopped || !state->name.starts_with("clockd-")) continue;
      const std::vector<std::string> arguments = replay::arguments_of(pid);
      for (std::size_t w = 0; w < gpu_files_.size(); ++w) {
        if (std::ranges::find(arguments, "simulated:" + gpu_files_[w]) == arguments.end()) continue;
        stopped.push_back({static_cast<int>(w), pid, state->name == "clockd-super"});
      }
    }
    return stopped;
  }

  bool server_is_stopped() const {
    const auto state = server_ && !server_->ended() ? replay::kernel_state_of(server_->pid()) : std::nullopt;
    return state && state->stopped;
  }
  std::string server_name() const { return fmt::format("the server (process {})", server_->pid()); }
  void say_if_server_is_stopped() {
    if (server_is_stopped()) stage_.remark_once("server stopped", server_name() + " is stopped by a signal");
  }

  /// A stopped helper cannot give its clock back, and a stopped server cannot end in order.
  void continue_stopped() const {
    for (const HelperProcess& helper : stopped_helpers()) kill(helper.pid, SIGCONT);
    if (server_is_stopped()) server_->signal(SIGCONT);
  }

  /// Without the server or without a helper, no plan would be in force during the measurement.
  Status check_processes(const replay::JobIteration& iteration) {
    if (const auto& end = server_->ended()) return server_has_ended(end->how);
    for (const replay::RankReport& report : iteration.workers) {
      const replay::ClientFigures& c = report.client;
      if (c.running == 0 || c.controls_clock != 0) continue;
      const bool did = c.clocks_requested > 0;
      if (!did && stage_.seconds() - joined_s_ < kControlLimit_s) continue;
      return Error{ErrorCode::unavailable,
                   fmt::format("{} cannot set its clock: its helper {}{}", worker_name(report.worker),
                               did ? "has gone" : "did not start", last_words("workers.log"))};
    }
    say_if_server_is_stopped();
    // A helper that the client's watchdog replaces is gone by the next iteration.
    std::set<pid_t> stopped;
    std::string still_stopped;
    for (const HelperProcess& helper : stopped_helpers()) {
      stopped.insert(helper.pid);
      if (!helpers_stopped_.contains(helper.pid)) continue;
      still_stopped += fmt::format(
          "{}{}{} (process {}) is stopped by a signal", still_stopped.empty() ? "" : "; ", worker_name(helper.worker),
          helper.is_supervisor ? ": the supervisor of its helper" : " cannot set its clock: its helper", helper.pid);
    }
    if (!still_stopped.empty()) return Error{ErrorCode::unavailable, still_stopped};
    helpers_stopped_ = std::move(stopped);
    return Ok{};
  }

  Error server_has_ended(const std::string& how) const {
    return {ErrorCode::unavailable, "the server " + how + last_words("server.log")};
  }

  Status run_baseline() {
    stage_.begin("everything at maximum clock, without Perseus");
    auto iterations = measure(2, o_.iterations);
    if (!iterations) return iterations.error();
    m_.baseline = perseus::replay::figures_of(*iterations, o_.replicas);
    if (o_.replicas < 2) return Ok{};
    m_.straggler.emplace();
    StragglerMeasurement& s = *m_.straggler;
    s.replica = o_.replicas - 1;
    s.power_limit_w = power_limit_for(job_.dag, o_.straggler_slowdown);
    stage_.begin(fmt::format("the same with a straggler: the GPUs of replica {} capped at {:.0f} W", s.replica,
                             s.power_limit_w));
    cap(s.power_limit_w);
    iterations = measure(2, std::max(2, o_.iterations / 2));
    if (!iterations) return iterations.error();
    s.all_max = perseus::replay::figures_of(*iterations, o_.replicas);
    uncap();
    return Ok{};
  }

  void cap(double limit_w) {
    for (int rank = 0; rank < ranks(); ++rank)
      gpus_[m_.straggler->replica * ranks() + rank]->set_power_limit(Watts(limit_w));
  }
  void uncap() {
    for (int rank = 0; rank < ranks(); ++rank) {
      const int w = m_.straggler->replica * ranks() + rank;
      gpus_[w]->set_power_limit(limits_[w]);
    }
  }

  Status join_server() {
    stage_.begin("the clients start, the job registers");
    joined_s_ = stage_.seconds();
    if (Status told = replay_->command("client"); !told) return told;
    while (!replay_->job_told()) {
      if (const auto iteration = next(); !iteration) return iteration.error();
    }
    if (replay_->job().empty()) {
      return Error{ErrorCode::unavailable, "the clients could not register the job" + last_words("workers.log")};
    }
    job_path_ = "/v1/jobs/" + replay_->job();
    joined_s_ = stage_.seconds();
    return Ok{};
  }

  Status wait_for_plan() {
    stage_.begin(o_.known_profile ? "the server characterizes the pipeline from a known profile"
                                  : "profiling in vivo, then the server characterizes the pipeline");
    bool profiled = o_.known_profile;
    std::string state;
    while (true) {
      const auto iteration = next();
      if (!iteration) return iteration.error();
      if (first_with_client_.workers.empty()) first_with_client_ = *iteration;
      const auto job = ask("GET", job_path_);
      if (!job) return job.error();
      const std::string now = text_at(*job, {"state"});
      if (!profiled && now == "profiling") ++m_.profiling_iterations;
      if (now != state) {
        if (state == "profiling") {
          m_.profiling_s = stage_.seconds() - joined_s_;
          profiled = true;
        }
        if (now == "failed") return Error{ErrorCode::internal, "the server: " + text_at(*job, {"reason"})};
        state = now;
        m_.job_states.push_back(state);
      }
      stage_.so_far(
          fmt::format("iteration {}: {} {}", iteration->iteration, now, text_at(*job, {"profiling", "text"})));
      if (follows_plan(*iteration, 0)) break;
      if (stage_.seconds() - joined_s_ > limit_s()) {
        return Error{ErrorCode::unavailable, fmt::format("no plan within {:g} s: the job is {}, {}{}", limit_s(), now,
                                                         text_at(*job, {"reason"}), last_words("workers.log"))};
      }
    }
    m_.characterizing_s = stage_.seconds() - joined_s_ - m_.profiling_s;
    return Ok{};
  }

  double limit_s() const {
    return o_.limit_s.value_or(std::max(kLeastLimit_s, kLimitIterations * job_.all_max_time.value()));
  }

  /// All workers run one plan, and all of this iteration ran it; `except`: not that version.
  bool follows_plan(const replay::JobIteration& iteration, std::int64_t except, int without_replica = -1) {
    std::int64_t version = 0;
    for (const replay::RankReport& report : iteration.workers) {
      if (report.worker / ranks() == without_replica) continue;
      const replay::ClientFigures& c = report.client;
      if (c.state != kPlannedState || c.controls_clock == 0 || c.plan_version == except) return false;
      if (version != 0 && c.plan_version != version) return false;
      if (c.iteration <= c.plan_from_iteration) return false;
      version = c.plan_version;
    }
    version_ = version;
    return true;
  }

  /// Of all workers together, mean per iteration, by the clients' counters.
  [[nodiscard]] double counted_energy_j(const std::vector<replay::JobIteration>& iterations) const {
    double sum_j = 0;
    for (std::size_t w = 0; w < static_cast<std::size_t>(workers()); ++w) {
      double own_j = 0;
      int known = 0;
      for (const replay::JobIteration& iteration : iterations) {
        const double energy_j = iteration.workers[w].client.iteration_energy_j;
        if (energy_j < 0) continue;
        own_j += energy_j;
        ++known;
      }
      if (known == 0) return 0;
      sum_j += own_j / known;
    }
    return sum_j;
  }

  Status run_plan() {
    stage_.begin("the plan is in force");
    auto measured = measure_plan(1, o_.iterations + 1);  // the first one begins the counts
    if (!measured) return measured.error();
    std::vector<replay::JobIteration>& iterations = measured->iterations;
    m_.client_pct = replay::client_cpu_pct(iterations.front(), iterations.back());
    for (std::size_t k = 1; k < iterations.size(); ++k) {
      for (const replay::RankReport& r : iterations[k].workers) m_.truth_energy_j += r.energy_j / o_.iterations;
    }
    iterations.erase(iterations.begin());
    m_.counter_energy_j = counted_energy_j(iterations);
    m_.plan = figures_of(*measured);
    const auto predicted = predicted_iteration();
    if (!predicted) return predicted.error();
    if (*predicted) m_.predicted = **predicted;
    return compare_with_plan(iterations);
  }

  replay::PhaseFigures figures_of(const PlanIterations& measured) const {
    replay::PhaseFigures figures = perseus::replay::figures_of(measured.iterations, o_.replicas);
    figures.left_out = measured.left_out;
    return figures;
  }

  Result<std::optional<PredictedIteration>> predicted_iteration() {
    const auto job = ask("GET", job_path_);
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
    for (int rank = 0; rank < ranks(); ++rank) {
      const auto answer = ask("GET", fmt::format("{}/ranks/{}/plan?have=0&wait_s=5", job_path_, rank));
      if (!answer) return answer.error();
      const auto* object = answer->if_object();
      const auto* clocks = object != nullptr ? object->if_contains("clocks") : nullptr;
      if (clocks == nullptr || !clocks->is_array()) return Ok{};
      if (!apply_clocks(job_.dag, rank, clocks->get_array(), plan)) return Ok{};
      m_.planned_time_s = number_at(*answer, {"iteration_time_s"});
    }
    m_.planned = plan;
    m_.truth_time_s = checker::simulate(job_.dag, plan, {switch_latencies().second}).makespan.value();
    double all = 0, right = 0;
    for (const replay::JobIteration& iteration : iterations) {
      for (const replay::RankReport& report : iteration.workers) {
        if (report.worker >= ranks()) continue;
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
    stage_.begin(fmt::format("the GPUs of replica {} are capped at {:.0f} W; the server does not know", s.replica,
                             s.power_limit_w));
    cap(s.power_limit_w);
    auto measured = measure_plan(2, wanted);
    if (!measured) return measured.error();
    s.no_reaction = figures_of(*measured);
    s.degree = std::max(1.0, s.no_reaction.time_s / m_.plan.time_s);

    stage_.begin(fmt::format("notice to the server: {:.3f} times slower", s.degree));
    if (Status told = tell_straggler(s.degree); !told) return told;
    if (Status changed = wait_for_other_plan(s.replica, s.iterations_to_react); !changed) return changed;
    measured = measure_plan(1, wanted);
    if (!measured) return measured.error();
    s.reaction = figures_of(*measured);
    const auto predicted = predicted_iteration();
    if (!predicted) return predicted.error();
    s.predicted = *predicted;

    stage_.begin("the straggler goes");
    uncap();
    if (Status told = tell_straggler(1); !told) return told;
    if (Status changed = wait_for_other_plan(s.replica, s.iterations_to_recover); !changed) return changed;
    measured = measure_plan(1, wanted);
    if (!measured) return measured.error();
    s.after = figures_of(*measured);
    return Ok{};
  }

  Status tell_straggler(double degree) {
    for (int rank = 0; rank < ranks(); ++rank) {
      const json::object notice{{"accelerator", uuid_of(m_.straggler->replica * ranks() + rank)}, {"degree", degree}};
      const auto answer = ask("POST", "/v1/stragglers", json::serialize(notice));
      if (!answer) return answer.error();
    }
    return Ok{};
  }

  Status wait_for_other_plan(int straggler, int& iterations) {
    const std::int64_t before = version_;
    const double began_s = stage_.seconds();
    while (true) {
      const auto iteration = next();
      if (!iteration) return iteration.error();
      ++iterations;
      if (follows_plan(*iteration, before, straggler)) return Ok{};
      if (stage_.seconds() - began_s > limit_s()) {
        return Error{ErrorCode::unavailable,
                     fmt::format("no other plan came within {:g} s after the server was told", limit_s())};
      }
    }
  }

  Status end_training() {
    stage_.begin("training ends");
    if (Status told = replay_->command("stop"); !told) return told;
    const auto last = replay_->next_iteration();
    if (!last) return last.error();
    for (const replay::RankReport& report : last->workers) m_.clients.push_back(report.client);
    m_.client_whole_pct = replay::client_cpu_pct(first_with_client_, *last);
    if (Status ended = replay_->finish(20); !ended) return ended;
    const auto job = ask("GET", job_path_);  // the client of worker 0 has informed the server
    if (!job) return job.error();
    m_.job_states.push_back(text_at(*job, {"state"}));
    return Ok{};
  }

  Result<json::value> ask(const std::string& method, const std::string& target, const std::string& body = {}) {
    const auto answer = call_patiently({method, target, body});
    if (!answer) {
      constexpr double reaping_s = 1;  // connections break before a process can be waited for
      if (server_->wait(reaping_s)) return server_has_ended(server_->ended()->how);
      return Error{answer.error().code,
                   fmt::format("{}{} {}: {}", server_is_stopped() ? server_name() + " is stopped by a signal: " : "",
                               method, target, answer.error().message)};
    }
    boost::system::error_code problem;
    json::value value = json::parse(*answer, problem);
    if (problem) return Error{ErrorCode::unavailable, fmt::format("{} {}: the answer is no JSON", method, target)};
    return value;
  }

  /// While the server has not answered, it still prints the clients' log lines.
  Result<std::string> call_patiently(const http::HttpCall& call) {
    auto answer = std::async(std::launch::async, [&] { return call_server(peer_, call); });
    const double asked_s = stage_.seconds();
    while (answer.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
      if (replay_) (void)replay_->listen(0);  // next_iteration() reports problems of the workers
      say_if_server_is_stopped();
      if (stage_.seconds() - asked_s < kSilence_s) continue;
      stage_.remark_once("server silent", fmt::format("{} has not answered for {:g} s", server_name(), kSilence_s));
    }
    return answer.get();
  }

  /// The end of a log, for an error message.
  std::string last_words(const std::string& log) const {
    const auto text = formats::read_file(scratch_.file(log));
    if (!text || text->empty()) return {};
    const std::size_t from = text->size() > 600 ? text->find('\n', text->size() - 600) : 0;
    return "\n" + text->substr(from == std::string::npos ? 0 : from);
  }

  static constexpr const char* kProfileName = "demo";
  const DemoOptions& o_;
  const DemoJob& job_;
  const DemoScratch& scratch_;
  std::string folder_, worker_program_, helper_program_;
  DemoStage stage_;
  DemoMeasurement m_;
  http::HttpPeer peer_;
  std::string dashboard_, job_path_;
  std::unique_ptr<replay::ChildProcess> server_;
  std::vector<std::string> gpu_files_;
  std::vector<std::unique_ptr<simulated_gpu::SimulatedGpu>> gpus_;
  std::vector<Watts> limits_;
  std::unique_ptr<replay::TrainingReplay> replay_;
  replay::JobIteration first_with_client_;
  replay::JobIteration latest_, previous_;  ///< of those that next() returned
  std::set<pid_t> helpers_stopped_;         ///< as of the report of the last iteration
  std::int64_t version_ = 0;
  double joined_s_ = 0;
};

DemoCourse::DemoCourse(const DemoOptions& options, const DemoJob& job, const DemoScratch& scratch)
    : course_(std::make_unique<Course>(options, job, scratch)) {}
DemoCourse::~DemoCourse() = default;
Result<DemoMeasurement> DemoCourse::run() { return course_->run(); }
Status DemoCourse::tidy() { return course_->tidy(); }
void DemoCourse::keep_server() { course_->keep_server(); }
void DemoCourse::stop_server() { course_->stop_server(); }

}  // namespace perseus::cli
