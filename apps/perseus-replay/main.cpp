// perseus-replay: one worker process of a training replay, for `perseus demo`.
//
// It takes the place of a training framework: it runs its rank's computations on a (simulated) GPU, exchanges
// messages with its peers, and calls the Perseus client's C ABI.
#include <fmt/format.h>
#include <perseus/perseus.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error_table.h"
#include "base/split.h"
#include "base/standard_streams.h"
#include "io/formats/number.h"
#include "io/formats/profile_csv.h"
#include "io/formats/transfer_latency_text.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "simulation/replay/asynchronous_worker.h"
#include "simulation/replay/simulated_device.h"
#include "simulation/replay/simulated_ranks.h"
#include "simulation/replay/training_replay.h"
#include "simulation/replay/worker.h"

namespace {

using namespace perseus;

volatile std::sig_atomic_t end_requested = 0;
extern "C" void remember_end(int /*signal*/) { end_requested = 1; }

struct Arguments {
  std::string profile, schedule, gpu, links;
  int microbatches = 1, chunks = 1;
  double blocking_power_w = 0;
  std::string transfer_latency = "0";
  replay::WorkerPlace place;
  std::string server, job_name, profile_name, helper, facts;
  bool measure_blocking_power = false;
  std::string cuda;  ///< library
  std::string host_ahead = "synchronous";
};

/// The Perseus client as a framework uses it.
class ReplayClient final : public replay::WorkerClient {
 public:
  ReplayClient(const Arguments& arguments, const model::ComputationDag& dag) : arguments_(arguments) {
    for (const model::ComputationType& type : dag.types)
      instruction_.push_back(perseus_instruction_named(type.instruction.c_str()));
  }
  ~ReplayClient() override { stop(); }
  void stop() { perseus_stop(std::exchange(client_, nullptr)); }
  /// Computations are enqueued on this stream, and timed by its events.
  void use_stream(void* stream) { stream_ = stream; }

  std::string start(const std::string& job) override {
    // A demo caps GPUs and sends the notices itself.
    ::setenv("PERSEUS_STRAGGLER_REPORTS", "0", 0);
    perseus_options options;
    perseus_options_init(&options);
    const std::string device = "simulated:" + arguments_.gpu;
    options.server = arguments_.server.c_str();
    options.job = job.empty() ? nullptr : job.c_str();
    options.job_name = arguments_.job_name.c_str();
    options.facts = arguments_.facts.c_str();
    options.profile = arguments_.profile_name.empty() ? nullptr : arguments_.profile_name.c_str();
    options.schedule = arguments_.schedule.c_str();
    options.microbatches = arguments_.microbatches;
    options.chunks = arguments_.chunks;
    options.rank = arguments_.place.worker();
    options.dp_rank = arguments_.place.replica;
    options.pp_rank = arguments_.place.rank;
    options.dp_degree = arguments_.place.replicas;
    options.pp_degree = arguments_.place.ranks;
    options.device = device.c_str();
    options.helper = arguments_.helper.empty() ? nullptr : arguments_.helper.c_str();
    options.blocking_power_w = arguments_.measure_blocking_power ? 0 : arguments_.blocking_power_w;
    options.log = &ReplayClient::keep_log;
    options.log_context = this;
    client_ = perseus_start(&options);
    if (stream_ == nullptr) {
      perseus_time_with(client_, &ReplayClient::device_time, this);
    } else {
      perseus_time_with_cuda(client_, stream_);
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (client_ != nullptr && perseus_job(client_)[0] == '\0' && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return client_ != nullptr ? perseus_job(client_) : "";
  }

  void step_begin() override {
    device_time_s_ = replay::monotonic_now_s();
    perseus_step_begin(client_, PERSEUS_TRAIN);
  }
  void step_end() override {
    device_time_s_ = replay::monotonic_now_s();
    perseus_step_end(client_);
  }
  void set_speed(const replay::ScriptStep& step) override {
    perseus_set_speed(client_, instruction_[step.type], step.microbatch, step.chunk);
  }
  void begin(const replay::ScriptStep& step, double device_time_s) override {
    device_time_s_ = device_time_s;
    perseus_begin(client_, instruction_[step.type], step.microbatch, step.chunk);
  }
  void end(const replay::ScriptStep& step, double device_time_s) override {
    device_time_s_ = device_time_s;
    perseus_end(client_, instruction_[step.type], step.microbatch, step.chunk);
  }

  void training_failed() override { training_failed_ = true; }

  std::string take_log() override {
    const std::lock_guard lock(log_mutex_);
    return std::exchange(log_, {});
  }

  replay::ClientFigures figures() override {
    if (client_ == nullptr) return {};
    perseus_statistics s{};
    s.size = sizeof s;
    perseus_statistics_get(client_, &s);
    replay::ClientFigures f;
    f.running = 1;
    f.state = s.state;
    f.controls_clock = s.controls_clock;
    f.helper_restarts = s.helper_restarts;
    f.server_reached = s.server_reached;
    f.iteration = s.iteration;
    f.plan_version = s.plan_version;
    f.plan_from_iteration = s.plan_from_iteration;
    f.clocks_requested = s.clocks_requested;
    f.clocks_applied = s.clocks_applied;
    f.clocks_failed = s.clocks_failed;
    f.server_failures = s.server_failures;
    f.samples = s.samples;
    f.samples_rejected = s.samples_rejected;
    f.planned_iteration_time_s = s.planned_iteration_time_s;
    f.blocking_power_w = s.blocking_power_w;
    f.request_to_device_p50_s = s.request_to_device_p50_s;
    f.request_to_device_p99_s = s.request_to_device_p99_s;
    f.begin_end_ns = s.begin_end_ns;
    f.set_speed_ns = s.set_speed_ns;
    f.client_cpu_s = s.client_cpu_s;
    return f;
  }

 private:
  static void keep_log(void* self, int level, const char* message) {
    constexpr const char* names[] = {"", "warning: ", "error: "};
    auto& client = *static_cast<ReplayClient*>(self);
    if (client.training_failed_) return;
    write_error(fmt::format("perseus: {}{}\n", names[level], message));
    const std::lock_guard lock(client.log_mutex_);
    client.log_ += fmt::format("{}\n", message);
  }
  /// When the device began or ended the computation, as CUDA events would report. For a step: now.
  static std::uint64_t device_time(void* self) {
    return static_cast<std::uint64_t>(static_cast<ReplayClient*>(self)->device_time_s_ * 1e9);
  }

  const Arguments& arguments_;
  std::vector<int> instruction_;  ///< per type
  perseus_client* client_ = nullptr;
  void* stream_ = nullptr;  ///< null: every computation has ended when end() is called
  double device_time_s_ = 0;
  std::atomic<bool> training_failed_ = false;  ///< later complaints of the client are consequences
  std::mutex log_mutex_;
  std::string log_;
};

/// "PEER:DESCRIPTOR,..."
std::map<int, int> links_from(std::string_view text) {
  std::map<int, int> links;
  for (const std::string_view link : split(text, ',')) {
    const std::vector<std::string_view> ends = split(link, ':');
    const auto peer = formats::number_in<int>(ends.front());
    const auto descriptor = formats::number_in<int>(ends.back());
    if (peer && descriptor) links[*peer] = *descriptor;
  }
  return links;
}

Error wrong_host_ahead(const std::string& text) {
  return {ErrorCode::usage, fmt::format("--host-ahead: {}; allowed: synchronous, unbounded, 1 or more", text)};
}

Status run(const Arguments& arguments) {
  const auto profile = formats::read_profile_csv(arguments.profile);
  if (!profile) return profile.error();
  const auto schedule =
      model::make_schedule(arguments.schedule, {arguments.place.ranks, arguments.microbatches, arguments.chunks});
  if (!schedule) return schedule.error();
  const Watts blocking_power(arguments.blocking_power_w);
  const auto transfer_latency = formats::parse_transfer_latency(arguments.transfer_latency);
  if (!transfer_latency) return transfer_latency.error();
  const auto dag = model::build_dag(*profile, *schedule, {blocking_power, *transfer_latency, false});
  if (!dag) return dag.error();
  auto gpu = simulated_gpu::SimulatedGpu::attach(arguments.gpu);
  if (!gpu) return gpu.error();

  replay::PeerLinks links(links_from(arguments.links), [] { return end_requested != 0; });
  const replay::WorkerOptions options{arguments.place};
  const replay::RankScript script = replay::script_of(*dag, arguments.place.rank);
  ReplayClient client(arguments, *dag);
  if (arguments.host_ahead != "synchronous") {
    replay::HostAhead ahead;
    if (arguments.host_ahead != "unbounded") {
      const auto computations = formats::number_in<int>(arguments.host_ahead);
      if (!computations || *computations < 1) return wrong_host_ahead(arguments.host_ahead);
      ahead.computations = *computations;
    }
    std::map<int, std::string> kernel_of;
    const std::vector<std::string> names = (*gpu)->computations();
    for (const int type : replay::types_of(*dag, arguments.place.rank))
      kernel_of.emplace(type, names.at(kernel_of.size()));
    auto device = replay::CudaDevice::open_process(arguments.cuda, arguments.gpu, kernel_of);
    if (!device) return device.error();
    client.use_stream((*device)->stream());
    Status done = replay::run_asynchronous_worker(options, ahead, script, links, **device, client);
    client.stop();
    return done;
  }
  std::map<int, int> computation_of;
  for (const int type : replay::types_of(*dag, arguments.place.rank)) {
    computation_of.emplace(type, static_cast<int>(computation_of.size()));
  }
  replay::SimulatedDevice device(*std::move(gpu), computation_of,
                                 blocking_power * dag->accelerators[arguments.place.rank]);
  return replay::run_worker(options, script, links, device, client);
}

int run_program(int argc, char** argv) {
  CLI::App app("Worker process of 'perseus demo', which starts it; do not run it by hand.", "perseus-replay");
  Arguments a;
  app.add_option("--profile", a.profile)->required();
  app.add_option("--schedule", a.schedule)->required();
  app.add_option("--microbatches", a.microbatches)->required();
  app.add_option("--chunks", a.chunks);
  app.add_option("--transfer-latency", a.transfer_latency);
  app.add_option("--blocking-power", a.blocking_power_w);
  app.add_option("--replicas", a.place.replicas)->required();
  app.add_option("--ranks", a.place.ranks)->required();
  app.add_option("--replica", a.place.replica)->required();
  app.add_option("--rank", a.place.rank)->required();
  app.add_option("--gpu", a.gpu)->required();
  app.add_option("--links", a.links)->required();
  app.add_option("--server", a.server);
  app.add_option("--job-name", a.job_name);
  app.add_option("--profile-name", a.profile_name);
  app.add_option("--facts", a.facts);
  app.add_option("--helper", a.helper);
  app.add_option("--cuda", a.cuda);
  app.add_option("--host-ahead", a.host_ahead);
  app.add_flag("--measure-blocking-power", a.measure_blocking_power);
  app.set_version_flag("--version", "perseus-replay " PERSEUS_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    return app.exit(asked_for_help);
  } catch (const CLI::ParseError& error) {
    write_error(fmt::format("perseus-replay: {} (see 'perseus-replay --help')\n", error.what()));
    return entry_of(ErrorCode::usage).exit_code;
  }
  struct sigaction end = {};
  end.sa_handler = remember_end;
  sigemptyset(&end.sa_mask);
  sigaction(SIGTERM, &end, nullptr);
  // Timers of this process end on time, not up to 50 us later.
  prctl(PR_SET_TIMERSLACK, 1000);
  // A busy host does not slow a GPU; where that is allowed, it does not slow this thread either (but the client's own
  // threads and the helper).
  const sched_param priority{.sched_priority = 1};
  sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &priority);

  const Status done = run(a);
  if (done || end_requested != 0) return 0;
  write_error(
      fmt::format("perseus-replay: replica {}, rank {}: {}\n", a.place.replica, a.place.rank, done.error().message));
  return done.error().code == ErrorCode::unavailable ? replay::kExitPeerHasGone : entry_of(done.error().code).exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_standard_streams();
  return exit_code_after_output("perseus-replay", run_program(argc, argv));
}
