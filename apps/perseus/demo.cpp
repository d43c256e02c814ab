// perseus demo: the whole loop, live, on simulated GPUs.
#include "demo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "demo_output.h"
#include "interrupt.h"
#include "model/blocking_power.h"
#include "model/derived_instructions.h"
#include "model/reference_plans.h"
#include "replay/child_process.h"
#include "replay/simulated_device.h"
#include "replay/simulated_ranks.h"
#include "replay/training_replay.h"
#include "report/format.h"
#include "sample_profile_text.h"
#include "server_call.h"
#include "verify/simulator.h"
#include "wire/file.h"
#include "wire/format_profile_csv.h"
#include "wire/profile_csv.h"

namespace perseus {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using SteadyClock = std::chrono::steady_clock;

constexpr int planned_state = 3;                // PERSEUS_PLANNED
constexpr double sample_blocking_power_w = 90;  // the power of the sample's model, see data/README.md
const std::string sample_name = "sample_profile.csv";
// In the profile's own time, before --time-scale: what GPUs of data centres need, more on the way down.
constexpr Seconds least_switch_latency(0.002), most_switch_latency(0.006);

struct DemoOptions {
  std::string profile, schedule = "1f1b";
  int microbatches = 8, replicas = 2, iterations = 10, server_port = 0;
  std::optional<int> stages, chunks;
  std::optional<double> blocking_power_w, split_backward;
  double time_scale = 0.5, straggler_slowdown = 1.15, limit_s = 180;
  bool known_profile = false, keep = false;
  std::string out = "perseus-demo", scratch, helper;
};

/// A folder that is gone afterwards.
class Scratch {
 public:
  static Result<Scratch> create(const std::string& wanted) {
    std::string path = wanted;
    if (path.empty()) {
      std::error_code error;
      path = (fs::temp_directory_path(error) / "perseus-demo-XXXXXX").string();
      if (mkdtemp(path.data()) == nullptr) return Error{ErrorCode::cannot_write, path + ": cannot be made"};
    } else {
      std::error_code error;
      fs::create_directories(path, error);
      if (error) return Error{ErrorCode::cannot_write, fmt::format("{}: {}", path, error.message())};
    }
    return Scratch(path, wanted.empty());
  }
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})), remove_(other.remove_) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (remove_ && !path_.empty()) fs::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(std::string_view name) const { return (fs::path(path_) / name).string(); }

 private:
  Scratch(std::string path, bool remove) : path_(std::move(path)), remove_(remove) {}
  std::string path_;
  bool remove_;
};

/// What is going on, on standard error: a line a phase, and within it how far it is where that is a terminal.
class Stage {
 public:
  void begin(const std::string& what) {
    clear();
    fmt::print(stderr, "{:6.1f} s  {}\n", seconds(), what);
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
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
};

// The profile that is replayed.

/// The pipeline of that many stages that is most like it: stage s of n is the one at the same place.
Profile with_stages(const Profile& profile, int stages) {
  Profile result;
  const int given = profile.num_stages();
  for (int s = 0; s < stages; ++s) {
    const int like = stages > 1 ? static_cast<int>(std::lround(double(s) * (given - 1) / (stages - 1))) : 0;
    result.accelerators.push_back(profile.accelerators[like]);
    for (const ProfileEntry& entry : profile.entries) {
      if (entry.stage == like) result.entries.push_back({s, entry.instruction, entry.measurements});
    }
  }
  return result;
}

/// Everything takes `scale` times as long, at the same power.
void stretch(Profile& profile, double scale) {
  for (ProfileEntry& entry : profile.entries) {
    for (Measurement& m : entry.measurements) {
      m.time = scale * m.time;
      m.energy = scale * m.energy;
      m.time_stddev = scale * m.time_stddev;
      m.energy_stddev = scale * m.energy_stddev;
    }
  }
}

struct Job {
  Profile profile;  ///< true for the simulated GPUs
  int chunks = 1;
  Watts blocking_power;
  ComputationDag dag;
};

Result<Job> job_from(const DemoOptions& o) {
  auto profile =
      o.profile.empty() ? parse_profile_csv(sample_profile_text(), sample_name) : read_profile_csv(o.profile);
  if (!profile) return profile.error();
  if (o.split_backward) {
    profile = split_backward(*std::move(profile), *o.split_backward);
    if (!profile) return profile.error();
  }
  Job job;
  job.profile = o.stages ? with_stages(*profile, *o.stages) : *profile;
  stretch(job.profile, o.time_scale);
  const int fixed = chunks_fixed_by(o.schedule);
  job.chunks = o.chunks ? *o.chunks : fixed != 0 ? fixed : o.schedule == "interleaved-1f1b" ? 2 : 1;
  if (job.profile.num_stages() % job.chunks != 0) {
    return Error{ErrorCode::usage, fmt::format("{} stages cannot be shared out to ranks of {} chunks each",
                                               job.profile.num_stages(), job.chunks)};
  }
  const auto schedule = make_schedule(o.schedule, {job.profile.num_stages() / job.chunks, o.microbatches, job.chunks});
  if (!schedule) return schedule.error();
  job.blocking_power = o.blocking_power_w ? Watts(*o.blocking_power_w) : guessed_blocking_power(job.profile);
  auto dag = build_dag(job.profile, *schedule, {job.blocking_power, Seconds(0), false});
  if (!dag) return dag.error();
  job.dag = *std::move(dag);
  return job;
}

/// The plan that is all-maximum, or `plan`, where a power limit holds.
Plan capped(const ComputationDag& dag, Plan plan, double limit_w) {
  for (std::size_t i = 0; i < plan.size(); ++i) {
    plan[i] = static_cast<std::uint16_t>(option_under_limit(dag.type_of(static_cast<int>(i)), plan[i], Watts(limit_w)));
  }
  return plan;
}

/// The power limit that makes everything at maximum clock about that many times slower.
double limit_for(const ComputationDag& dag, double slowdown) {
  const Plan all_max = all_maximum_clock(dag);
  const double free_s = simulate(dag, all_max).makespan.value();
  std::vector<double> powers;
  for (const ComputationType& type : dag.types) {
    for (const Measurement& m : type.options) powers.push_back((m.energy / m.time).value());
  }
  double best_w = 0, best = INFINITY;
  for (const double power : powers) {
    const double limit_w = std::ceil(power + 0.5);
    const double slower = simulate(dag, capped(dag, all_max, limit_w)).makespan.value() / free_s;
    if (std::abs(slower - slowdown) < best) {
      best = std::abs(slower - slowdown);
      best_w = limit_w;
    }
  }
  return best_w;
}

/// Options of that DAG by their clocks: what a rank's plan says, or nothing if it fits no option.
bool apply_clocks(const ComputationDag& dag, int rank, const json::array& clocks, Plan& plan) {
  const std::vector<int>& order = dag.rank_order[rank];
  if (clocks.size() != order.size()) return false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto* pair = clocks[i].if_array();
    if (pair == nullptr || pair->size() != 2 || !(*pair)[1].is_number()) return false;
    const int mhz = static_cast<int>((*pair)[1].to_number<double>());
    const std::vector<Measurement>& options = dag.type_of(order[i]).options;
    const auto option = std::ranges::find(options, Megahertz(mhz), &Measurement::clock);
    if (option == options.end()) return false;
    plan[order[i]] = static_cast<std::uint16_t>(option - options.begin());
  }
  return true;
}

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

class Demo {
 public:
  Demo(const DemoOptions& options, Job job, Scratch& scratch)
      : o_(options), job_(std::move(job)), scratch_(scratch), folder_(*own_folder()) {}

  Result<DemoMeasurement> run() {
    for (const auto step :
         {&Demo::start_server, &Demo::make_gpus, &Demo::start_workers, &Demo::run_baseline, &Demo::join_server,
          &Demo::wait_for_plan, &Demo::run_plan, &Demo::run_straggler, &Demo::end_training}) {
      if (const Status done = (this->*step)(); !done) return done.error();
    }
    m_.took_s = stage_.seconds();
    return std::move(m_);
  }

  /// After success or failure: no process of ours is left but the server, no clock is locked.
  Status tidy() {
    stage_.clear();
    replay_.reset();
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
    return Error{ErrorCode::internal, fmt::format("clocks are still locked on the GPUs of workers{}", locked)};
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
  int ranks() const { return job_.dag.num_ranks(); }
  int workers() const { return ranks() * o_.replicas; }

  Status start_server() {
    auto server =
        ChildProcess::start({{folder_ + "/perseus", "serve", "--listen", fmt::format("127.0.0.1:{}", o_.server_port),
                              "--data", scratch_.file("server"), "--log-level", "warning",
                              // A minute's demo: good enough, not as good as it gets.
                              "--profiling-tolerance-pct", "1", "--profiling-iterations", "20"},
                             {},
                             scratch_.file("server.log"),
                             true});
    if (!server) return server.error();
    server_ = std::make_unique<ChildProcess>(*std::move(server));
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

  Status make_gpus() {
    SimulatedRankOptions options;
    options.blocking_power = job_.blocking_power;
    options.idle_power = 0.6 * job_.blocking_power;
    options.least_switch_latency = o_.time_scale * least_switch_latency;
    options.most_switch_latency = o_.time_scale * most_switch_latency;
    for (int w = 0; w < workers(); ++w) {
      SimulatedGpuSpec spec = gpu_of_rank(job_.dag, w % ranks(), options);
      spec.uuid = uuid_of(w);
      gpu_files_.push_back(scratch_.file(fmt::format("gpu_{}", w)));
      auto gpu = SimulatedGpu::create(gpu_files_.back(), spec);
      if (!gpu) return gpu.error();
      gpus_.push_back(*std::move(gpu));
      limits_.push_back(spec.power_limit);
    }
    return Ok{};
  }

  static std::string uuid_of(int worker) { return fmt::format("GPU-51310000-0000-4000-8000-{:012x}", worker); }

  Status start_workers() {
    const std::string csv = scratch_.file("profile.csv");
    if (Status written = write_file(csv, format_profile_csv(job_.profile)); !written) return written;
    ReplayOptions replay;
    replay.program = folder_ + "/perseus-replay";
    if (!fs::exists(replay.program)) {
      return Error{ErrorCode::not_found, replay.program + ": the worker program is not there"};
    }
    replay.replicas = o_.replicas;
    replay.gpus = gpu_files_;
    replay.error_file = scratch_.file("workers.log");
    replay.interrupted = [] { return InterruptGuard::interrupted(); };
    const std::string name = o_.profile.empty() ? "the sample" : fs::path(o_.profile).stem().string();
    replay.arguments = {
        "--profile",        csv,
        "--schedule",       o_.schedule,
        "--microbatches",   std::to_string(o_.microbatches),
        "--chunks",         std::to_string(job_.chunks),
        "--blocking-power", fmt::format("{}", job_.blocking_power.value()),
        "--server",         peer_.url,
        "--job-name",       fmt::format("demo of {} (simulated GPUs)", name),
        "--facts",          fmt::format("model={}\nframework=perseus-replay\naccelerator=simulated", name)};
    if (o_.known_profile) {
      replay.arguments.insert(replay.arguments.end(), {"--profile-name", profile_name});
      if (Status pushed = push_profile(); !pushed) return pushed;
    } else {
      replay.arguments.emplace_back("--measure-blocking-power");
    }
    const std::string beside = folder_ + "/perseus-clockd";
    const std::string helper = o_.helper.empty() && fs::exists(beside) ? beside : o_.helper;
    if (!helper.empty()) replay.arguments.insert(replay.arguments.end(), {"--helper", helper});
    auto launched = TrainingReplay::launch(job_.dag, replay);
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
                          {"blocking_power_w", job_.blocking_power.value()}};
    const json::object body{{"profile_csv", format_profile_csv(job_.profile)}, {"pipeline", std::move(pipeline)}};
    const auto answer = ask("PUT", std::string("/v1/profiles/") + profile_name, json::serialize(body));
    if (!answer) return answer.error();
    return Ok{};
  }

  /// Iterations without a word, then measured ones.
  Result<std::vector<JobIteration>> measure(int unmeasured, int measured) {
    std::vector<JobIteration> iterations;
    for (int i = 0; i < unmeasured + measured; ++i) {
      auto iteration = next();
      if (!iteration) return iteration.error();
      if (i >= unmeasured) iterations.push_back(*std::move(iteration));
    }
    return iterations;
  }

  Result<JobIteration> next() {
    auto iteration = replay_->next_iteration();
    if (!iteration) return Error{iteration.error().code, iteration.error().message + last_words("workers.log")};
    double energy_j = 0;
    for (const RankReport& report : iteration->workers) energy_j += report.energy_j;
    const RankReport& first = iteration->workers.front();
    stage_.so_far(fmt::format("iteration {}: {}, {}", iteration->iteration,
                              text_of(Seconds(first.end_s - first.start_s)), text_of(Joules(energy_j))));
    return iteration;
  }

  Status run_baseline() {
    stage_.begin("everything at maximum clock, without Perseus");
    auto iterations = measure(2, o_.iterations);
    if (!iterations) return iterations.error();
    m_.baseline = figures_of(*iterations, o_.replicas);
    if (o_.replicas < 2) return Ok{};
    m_.straggler.emplace();
    StragglerMeasurement& s = *m_.straggler;
    s.replica = o_.replicas - 1;
    s.power_limit_w = limit_for(job_.dag, o_.straggler_slowdown);
    stage_.begin(fmt::format("the same with a straggler: the GPUs of replica {} capped at {:.0f} W", s.replica,
                             s.power_limit_w));
    cap(s.power_limit_w);
    iterations = measure(2, std::max(2, o_.iterations / 2));
    if (!iterations) return iterations.error();
    s.all_max = figures_of(*iterations, o_.replicas);
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
    stage_.begin(o_.known_profile ? "the server characterises the pipeline from a known profile"
                                  : "profiling in vivo, then the server characterises the pipeline");
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
      }
      stage_.so_far(
          fmt::format("iteration {}: {} {}", iteration->iteration, now, text_at(*job, {"profiling", "text"})));
      if (follows_plan(*iteration, 0)) break;
      if (stage_.seconds() - joined_s_ > o_.limit_s) {
        return Error{ErrorCode::unavailable, fmt::format("no plan within {:g} s: the job is {}, {}{}", o_.limit_s, now,
                                                         text_at(*job, {"reason"}), last_words("workers.log"))};
      }
    }
    m_.characterising_s = stage_.seconds() - joined_s_ - m_.profiling_s;
    return Ok{};
  }

  /// All workers run one plan, and all of this iteration ran it; `except`: not that version.
  bool follows_plan(const JobIteration& iteration, std::int64_t except, int without_replica = -1) {
    std::int64_t version = 0;
    for (const RankReport& report : iteration.workers) {
      if (report.worker / ranks() == without_replica) continue;
      const ClientFigures& c = report.client;
      if (c.state != planned_state || c.plan_version == except) return false;
      if (version != 0 && c.plan_version != version) return false;
      if (c.iteration <= c.plan_from_iteration) return false;
      version = c.plan_version;
    }
    version_ = version;
    return true;
  }

  Status run_plan() {
    stage_.begin("the plan is in force");
    auto iterations = measure(1, o_.iterations + 1);  // the first one begins the counts
    if (!iterations) return iterations.error();
    m_.client_pct = client_cpu_pct(iterations->front(), iterations->back());
    for (std::size_t w = 0; w < static_cast<std::size_t>(workers()); ++w) {
      m_.counter_energy_j +=
          (iterations->back().workers[w].client.energy_total_j - iterations->front().workers[w].client.energy_total_j) /
          o_.iterations;
    }
    for (std::size_t k = 1; k < iterations->size(); ++k) {
      for (const RankReport& r : (*iterations)[k].workers) m_.truth_energy_j += r.energy_j / o_.iterations;
    }
    iterations->erase(iterations->begin());
    m_.plan = figures_of(*iterations, o_.replicas);
    if (const auto predicted = predicted_iteration(); predicted) m_.predicted = *predicted;
    return compare_with_plan(*iterations);
  }

  std::optional<PredictedIteration> predicted_iteration() {
    const auto job = ask("GET", job_path_);
    if (!job) return {};
    PredictedIteration p;
    p.time_s = number_at(*job, {"savings", "per_iteration", "time_s"});
    p.energy_j = number_at(*job, {"savings", "per_iteration", "energy_j"});
    p.all_max_time_s = number_at(*job, {"savings", "per_iteration", "all_max_time_s"});
    p.all_max_energy_j = number_at(*job, {"savings", "per_iteration", "all_max_energy_j"});
    return p.energy_j > 0 ? std::optional(p) : std::nullopt;
  }

  /// What each rank of replica 0 was to run, in the true profile's options.
  Status compare_with_plan(const std::vector<JobIteration>& iterations) {
    Plan plan = all_maximum_clock(job_.dag);
    for (int rank = 0; rank < ranks(); ++rank) {
      const auto answer = ask("GET", fmt::format("{}/ranks/{}/plan?have=0&wait_s=5", job_path_, rank));
      if (!answer) return answer.error();
      const auto* object = answer->if_object();
      const auto* clocks = object != nullptr ? object->if_contains("clocks") : nullptr;
      if (clocks == nullptr || !clocks->is_array()) return Ok{};
      if (!apply_clocks(job_.dag, rank, clocks->get_array(), plan)) return Ok{};
    }
    m_.planned = plan;
    m_.truth_time_s = simulate(job_.dag, plan).makespan.value();
    double all = 0, right = 0;
    for (const JobIteration& iteration : iterations) {
      for (const RankReport& report : iteration.workers) {
        if (report.worker >= ranks()) continue;
        for (const ComputationStamp& stamp : report.stamps) {
          const Megahertz planned = job_.dag.type_of(stamp.computation).options[plan[stamp.computation]].clock;
          if (planned.value() == 0) continue;
          ++all;
          right += planned.value() == stamp.clock_mhz ? 1 : 0;
        }
      }
    }
    m_.at_planned_clock_pct = all > 0 ? 100 * right / all : 0;
    return Ok{};
  }

  Status run_straggler() {
    if (!m_.straggler) return Ok{};
    StragglerMeasurement& s = *m_.straggler;
    const int measured = std::max(2, o_.iterations / 2);
    stage_.begin(fmt::format("the GPUs of replica {} are capped at {:.0f} W; nobody has told the server", s.replica,
                             s.power_limit_w));
    cap(s.power_limit_w);
    auto iterations = measure(2, measured);
    if (!iterations) return iterations.error();
    s.no_reaction = figures_of(*iterations, o_.replicas);
    s.degree = std::max(1.0, s.no_reaction.time_s / m_.plan.time_s);

    stage_.begin(fmt::format("the server is told: {:.3f} times slower", s.degree));
    if (Status told = tell_straggler(s.degree); !told) return told;
    if (Status changed = wait_for_other_plan(s.replica); !changed) return changed;
    iterations = measure(1, measured);
    if (!iterations) return iterations.error();
    s.reaction = figures_of(*iterations, o_.replicas);
    s.predicted = predicted_iteration();

    stage_.begin("the straggler goes");
    uncap();
    if (Status told = tell_straggler(1); !told) return told;
    if (Status changed = wait_for_other_plan(s.replica); !changed) return changed;
    iterations = measure(1, measured);
    if (!iterations) return iterations.error();
    s.after = figures_of(*iterations, o_.replicas);
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

  Status wait_for_other_plan(int straggler) {
    const std::int64_t before = version_;
    const double began_s = stage_.seconds();
    while (true) {
      const auto iteration = next();
      if (!iteration) return iteration.error();
      if (follows_plan(*iteration, before, straggler)) return Ok{};
      if (stage_.seconds() - began_s > 60) {
        return Error{ErrorCode::unavailable, "no other plan came within 60 s after the server was told"};
      }
    }
  }

  Status end_training() {
    stage_.begin("training ends");
    if (Status told = replay_->command("stop"); !told) return told;
    const auto last = replay_->next_iteration();
    if (!last) return last.error();
    for (const RankReport& report : last->workers) m_.clients.push_back(report.client);
    m_.client_whole_pct = client_cpu_pct(first_with_client_, *last);
    if (Status ended = replay_->finish(20); !ended) return ended;
    return Ok{};  // the client of worker 0 has told the server
  }

  Result<json::value> ask(const std::string& method, const std::string& target, const std::string& body = {}) {
    const auto answer = call_server(peer_, {method, target, body});
    if (!answer) return Error{answer.error().code, fmt::format("{} {}: {}", method, target, answer.error().message)};
    boost::system::error_code problem;
    json::value value = json::parse(*answer, problem);
    if (problem) return Error{ErrorCode::unavailable, fmt::format("{} {}: the answer is no JSON", method, target)};
    return value;
  }

  /// The end of a log, to be told with an error.
  std::string last_words(const std::string& log) const {
    const auto text = read_file(scratch_.file(log));
    if (!text || text->empty()) return {};
    const std::size_t from = text->size() > 600 ? text->find('\n', text->size() - 600) : 0;
    return "\n" + text->substr(from == std::string::npos ? 0 : from);
  }

  static constexpr const char* profile_name = "demo";
  const DemoOptions& o_;
  Job job_;
  Scratch& scratch_;
  std::string folder_;
  Stage stage_;
  DemoMeasurement m_;
  HttpPeer peer_;
  std::string dashboard_, job_path_;
  std::unique_ptr<ChildProcess> server_;
  std::vector<std::string> gpu_files_;
  std::vector<std::unique_ptr<SimulatedGpu>> gpus_;
  std::vector<Watts> limits_;
  std::unique_ptr<TrainingReplay> replay_;
  JobIteration first_with_client_;
  std::int64_t version_ = 0;
  double joined_s_ = 0;
};

std::vector<ReportFact> facts_of(const DemoOptions& o, const Job& job) {
  return {{"GPUs", "simulated"},
          {"profile", o.profile.empty() ? sample_name + ", the project's own, not measured"
                                        : fs::path(o.profile).filename().string()},
          {"schedule", fmt::format("{}, {} ranks, {} stages, {} microbatches, {} replicas", o.schedule,
                                   job.dag.num_ranks(), job.profile.num_stages(), o.microbatches, o.replicas)},
          {"time scale", fmt::format("{:g}", o.time_scale)},
          {"blocking power", fmt::format("{:g} W", job.blocking_power.value())}};
}

Result<int> run_demo(DemoOptions options, bool as_json) {
  if (options.profile.empty() && !options.blocking_power_w) options.blocking_power_w = sample_blocking_power_w;
  auto job = job_from(options);
  if (!job) return job.error();
  if (!options.blocking_power_w) {
    note(fmt::format("no --blocking-power was given: {:.3g} W is assumed, a fifth of the highest power in the profile",
                     job->blocking_power.value()));
  }
  if (const Status writable = check_demo_output(options.out); !writable) return writable.error();

  std::optional<Error> failed;
  {
    const InterruptGuard guard;
    auto scratch = Scratch::create(options.scratch);
    if (!scratch) return scratch.error();
    const ComputationDag dag = job->dag;
    const std::vector<ReportFact> facts = facts_of(options, *job);
    const int ranks = dag.num_ranks();
    Demo demo(options, *std::move(job), *scratch);
    auto measured = demo.run();
    if (!measured) failed = measured.error();
    if (const Status tidy = demo.tidy(); !tidy && !failed) failed = tidy.error();
    if (!failed && !InterruptGuard::interrupted()) {
      measured->title = fmt::format("{} x {} simulated GPUs", options.replicas, ranks);
      measured->facts = facts;
      measured->replicas = options.replicas;
      measured->known_profile = options.known_profile;
      const Status written = write_demo_output(options.out, dag, *measured);
      if (!written) failed = written.error();
      if (written && !InterruptGuard::interrupted()) {
        print(as_json
                  ? demo_summary_json(*measured)
                  : demo_table(*measured) + fmt::format("written to {0}; to look at: {0}/report.html\n", options.out));
        if (options.keep) demo.keep_server();
        if (options.keep) {
          demo.stop_server();
          return 0;  // Ctrl-C is how that ends
        }
      }
    }
    demo.stop_server();
  }
  if (InterruptGuard::interrupted()) {
    fmt::print(stderr, "perseus: interrupted; the training has ended, no clock is locked, nothing was written\n");
  }
  die_if_interrupted();
  if (failed) return *failed;
  return 0;
}

}  // namespace

void add_demo(CLI::App& app, Command& command) {
  auto* demo = app.add_subcommand("demo", "The whole loop, live, on simulated GPUs: profile, plan, straggler");
  auto options = std::make_shared<DemoOptions>();
  const std::string pipeline = "The training";
  demo->add_option(
          "--profile", options->profile,
          "What the simulated GPUs are like: times and energies per clock; the project's own sample unless given")
      ->type_name("PROFILE.csv")
      ->group(pipeline);
  demo->add_option(
          "--blocking-power", options->blocking_power_w,
          "Power of a GPU that waits; a fifth of the profile's highest power unless given, 90 W for the sample")
      ->check(number_within(0.001, 1e6, "W"))
      ->type_name("W")
      ->group(pipeline);
  demo->add_option("--stages", options->stages, "Stages of the pipeline; those of the profile unless given")
      ->check(number_within(1, 64, ""))
      ->type_name("S")
      ->group(pipeline);
  demo->add_option("-m,--microbatches", options->microbatches, "Microbatches per iteration")
      ->capture_default_str()
      ->check(number_within(1, 1024, ""))
      ->type_name("M")
      ->group(pipeline);
  demo->add_option("--dp", options->replicas, "Data-parallel replicas; with one there is no straggler")
      ->capture_default_str()
      ->check(number_within(1, 32, ""))
      ->type_name("D")
      ->group(pipeline);
  demo->add_option("--schedule", options->schedule, fmt::format("One of {}", fmt::join(schedule_names(), ", ")))
      ->capture_default_str()
      ->check(CLI::IsMember(schedule_names()).description(""))
      ->type_name("NAME")
      ->group(pipeline);
  demo->add_option("--chunks", options->chunks,
                   "Stages per rank; 1, or 2 for interleaved-1f1b, unless given; zbv and dualpipev have 2")
      ->check(number_within(1, 64, ""))
      ->type_name("V")
      ->group(pipeline);
  demo->add_option("--split-backward", options->split_backward,
                   "Derive input_gradient and weight_gradient from the profile's backward: the first takes this share")
      ->check(number_within(1e-6, 1 - 1e-6, ""))
      ->type_name("FRACTION")
      ->group(pipeline);
  demo->add_option("--time-scale", options->time_scale, "How much longer everything takes than the profile says")
      ->capture_default_str()
      ->check(number_within(0.01, 100, ""))
      ->type_name("X")
      ->group(pipeline);

  const std::string course = "The course";
  demo->add_option("--iterations", options->iterations, "Iterations that are measured in a phase")
      ->capture_default_str()
      ->check(number_within(2, 10000, ""))
      ->type_name("N")
      ->group(course);
  demo->add_option("--straggler", options->straggler_slowdown,
                   "How much slower the straggler is to be; the power limit nearest to it is taken")
      ->capture_default_str()
      ->check(number_within(1.01, 10, ""))
      ->type_name("RATIO")
      ->group(course);
  demo->add_flag("--known-profile,!--in-vivo", options->known_profile,
                 "Give the server the profile, or measure it while the job trains (the default)")
      ->group(course);
  demo->add_option("--limit", options->limit_s, "Give up when there is no plan after so long")
      ->capture_default_str()
      ->check(number_within(1, 1e6, "s"))
      ->type_name("S")
      ->group(course);
  demo->add_option("--server-port", options->server_port, "Of the server and its dashboard; a free one unless given")
      ->check(number_within(0, 65535, ""))
      ->type_name("PORT")
      ->group(course);
  demo->add_flag("--keep", options->keep, "Leave the server and its dashboard up, until Ctrl-C")->group(course);
  demo->add_option("--helper", options->helper, "perseus-clockd; beside this program, then on the path, unless given")
      ->type_name("FILE")
      ->group(course);
  demo->add_option("--scratch", options->scratch, "Where GPUs, logs and the database are, and stay; else removed")
      ->type_name("DIR")
      ->group(course);
  demo->add_option(
          "--out", options->out,
          "Write summary.json, details.json, report.html and timeline.svg to this directory, whole or not at all")
      ->capture_default_str()
      ->type_name("DIR");
  add_json_flag(*demo, command);
  demo->footer(help_footer(
      "  perseus demo\n"
      "  perseus demo --keep --server-port 7787\n"
      "  perseus demo --profile gpt3.csv --blocking-power 83.64 --schedule gpipe --dp 3 --time-scale 0.2\n"));
  demo->callback(
      [options, &command] { command.run = [options, &command] { return run_demo(*options, command.json); }; });
}

}  // namespace perseus
