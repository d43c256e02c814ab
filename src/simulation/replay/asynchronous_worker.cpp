#include "simulation/replay/asynchronous_worker.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace perseus::replay {
namespace {

constexpr int kPollMs = 20;  // how soon the thread of the links notices the worker's end
enum DecisionAbout : std::int32_t { kCommand = 0, kJob = 1 };

/// A message's name in the stream.
std::uint64_t name_of(MessageKind kind, std::int64_t iteration, std::int32_t about) {
  return static_cast<std::uint64_t>(kind) << 60U | (static_cast<std::uint64_t>(about) & 0xfffffffU) << 32U |
         (static_cast<std::uint64_t>(iteration) & 0xffffffffU);
}
/// Of a dependency within the rank: no message of another worker.
std::uint64_t name_of_own(std::int64_t iteration, std::int32_t dependency) {
  return name_of(static_cast<MessageKind>(15), iteration, dependency);
}

class AsynchronousWorker {
 public:
  AsynchronousWorker(const WorkerOptions& options, const HostAhead& ahead, const RankScript& script, PeerLinks& links,
                     CudaDevice& device, WorkerClient& client)
      : options_(options), ahead_(ahead), script_(script), links_(links), device_(device), client_(client) {
    for (const ScriptStep& step : script.steps) {
      for (const Awaited& a : step.awaits) {
        if (a.rank == script.rank) own_dependencies_[a.computation].push_back(a.dependency);
      }
    }
  }
  AsynchronousWorker(const AsynchronousWorker&) = delete;
  AsynchronousWorker& operator=(const AsynchronousWorker&) = delete;

  Status run() {
    std::thread listener([this] { listen(); });
    Status result = train();
    if (result) {
      for (const int peer : peers()) {
        // A peer that has gone already needs no farewell.
        (void)links_.send(peer, {MessageKind::farewell, 0, 0, 0, {}});
      }
    } else {
      remember_failure(result.error());
      device_.abort();  // the stream's pending callbacks use this object
    }
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    listener.join();
    const std::lock_guard lock(mutex_);
    return failure_ ? Status(*failure_) : result;
  }

 private:
  /// A message that leaves when the stream gets there.
  struct Departure {
    AsynchronousWorker* worker;
    int peer;
    Message message;
  };
  /// An iteration that the host has enqueued (or is enqueuing) and the device has not completed.
  struct Underway {
    RankReport report;
    std::vector<simulated_cuda::Stamp> stamps;  ///< per step
    simulated_cuda::Stamp start{}, end{};
    std::deque<Departure> departures;
    simulated_cuda::CudaEvent done = nullptr;
  };

  [[nodiscard]] std::vector<int> peers() const {
    std::vector<int> all = agreement_children(options_.place);
    if (const int parent = agreement_parent(options_.place); parent >= 0) all.push_back(parent);
    for (const int rank : script_.peers) all.push_back(options_.place.replica * options_.place.ranks + rank);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  // ---- The host's thread: the work of a training framework

  Status train() {
    for (int i = 0; i < ahead_.computations + 1; ++i) {
      auto event = device_.make_event();
      if (!event) return event.error();
      computation_ended_.push_back(*event);
    }
    for (int i = 0; i < ahead_.iterations; ++i) {
      auto event = device_.make_event();
      if (!event) return event.error();
      iteration_ended_.push_back(*event);
    }
    for (std::int64_t iteration = 0;; ++iteration) {
      const auto decision = decided(iteration, kCommand);
      if (!decision) return decision.error();
      if (*decision == "stop") break;
      if (*decision == "client") {
        if (Status joined = join_job(iteration); !joined) return joined;
      }
      if (options_.place.worker() == 0) {
        if (Status sent = decide(iteration + 1, kCommand, next_command()); !sent) return sent;
      }
      if (Status enqueued = enqueue_iteration(iteration); !enqueued) return enqueued;
    }
    return drain();
  }

  /// Waits until all enqueued work is done and reported.
  Status drain() {
    if (Status done = device_.synchronize(); !done) return done;
    return report_all_done();
  }

  /// As run_worker(): the first worker registers the job, the others join it. The GPUs wait until then.
  Status join_job(std::int64_t iteration) {
    if (Status drained = drain(); !drained) return drained;
    if (options_.place.worker() == 0) {
      const std::string job = client_.start("");
      if (Status sent = decide(iteration, kJob, job); !sent) return sent;
      if (Status sent = links_.send(kLauncher, {MessageKind::note, iteration, 0, 0, job}); !sent) return sent;
    } else {
      const auto job = decided(iteration, kJob);
      if (!job) return job.error();
      client_.start(*job);
    }
    met_ = false;
    return Ok{};
  }

  Status enqueue_iteration(std::int64_t iteration) {
    while (static_cast<int>(underway_.size()) >= ahead_.iterations) {
      if (Status done = device_.wait(underway_.front()->done); !done) return done;
      if (Status reported = report_oldest(); !reported) return reported;
    }
    auto& u = *underway_.emplace_back(std::make_unique<Underway>());
    u.report.worker = options_.place.worker();
    u.report.iteration = iteration;
    u.stamps.resize(script_.steps.size());
    if (!std::exchange(met_, true)) {
      if (Status met = enqueue_meeting(u); !met) return met;
    }
    if (Status stamped = device_.stamp(u.start); !stamped) return stamped;
    client_.step_begin();
    for (std::size_t i = 0; i < script_.steps.size(); ++i) {
      if (Status launched = enqueue_step(u, script_.steps[i], u.stamps[i]); !launched) return launched;
    }
    if (Status met = enqueue_meeting(u); !met) return met;
    client_.step_end();
    u.report.client = client_.figures();  // of this iteration as the host knows it
    if (Status stamped = device_.stamp(u.end); !stamped) return stamped;
    u.done = iteration_ended_[iteration % ahead_.iterations];
    return device_.record(u.done);
  }

  Status enqueue_step(Underway& u, const ScriptStep& step, simulated_cuda::Stamp& stamp) {
    const std::int64_t iteration = u.report.iteration;
    if (Status waited = keep_close(); !waited) return waited;
    client_.set_speed(step);
    for (const Awaited& a : step.awaits) {
      const std::uint64_t message = a.rank == script_.rank ? name_of_own(iteration, a.dependency)
                                                           : name_of(MessageKind::data, iteration, a.dependency);
      if (Status awaited = device_.await(message, a.latency.value()); !awaited) return awaited;
    }
    client_.begin(step, 0);
    if (Status launched = device_.launch(step.type); !launched) return launched;
    client_.end(step, 0);
    if (ahead_.computations > 0) {
      simulated_cuda::CudaEvent& ended = computation_ended_[launched_ % computation_ended_.size()];
      if (Status recorded = device_.record(ended); !recorded) return recorded;
    }
    ++launched_;
    if (Status stamped = device_.stamp(stamp); !stamped) return stamped;
    if (const auto own = own_dependencies_.find(step.computation); own != own_dependencies_.end()) {
      for (const int dependency : own->second) {
        const Message self{MessageKind::data, iteration, dependency, 0, {}};
        if (Status sent = enqueue_departure(u, -1, self); !sent) return sent;
      }
    }
    for (const Promised& p : step.sends) {
      const Message message{MessageKind::data, iteration, p.dependency, 0,
                            payload_of(iteration, p.dependency, options_.payload_bytes)};
      if (Status sent = enqueue_departure(u, options_.place.replica * options_.place.ranks + p.rank, message); !sent) {
        return sent;
      }
    }
    return Ok{};
  }

  /// Waits until the host may launch the next computation.
  Status keep_close() {
    const auto ring = static_cast<std::int64_t>(computation_ended_.size());
    if (ahead_.computations == 0 || launched_ < ring) return Ok{};
    // The oldest of the ring: the next launch records it again.
    if (Status ended = device_.wait(computation_ended_[launched_ % ring]); !ended) return ended;
    return report_all_done();
  }

  Status enqueue_departure(Underway& u, int peer, Message message) {
    u.departures.push_back({this, peer, std::move(message)});
    return device_.tell(&AsynchronousWorker::depart, &u.departures.back());
  }

  /// agree() as operations of the stream; afterwards the stream is at the time of the last worker.
  Status enqueue_meeting(Underway& u) {
    const std::int64_t meeting = meeting_++;
    const int self = options_.place.worker();
    const std::vector<int> children = agreement_children(options_.place);
    for (const int child : children) {
      if (Status s = device_.await(name_of(MessageKind::arrived, meeting, child), 0); !s) return s;
    }
    if (const int parent = agreement_parent(options_.place); parent >= 0) {
      Message arrived{MessageKind::arrived, meeting, self, 0, payload_of(meeting, self, options_.payload_bytes)};
      if (Status s = enqueue_departure(u, parent, std::move(arrived)); !s) return s;
      if (Status s = device_.await(name_of(MessageKind::go_on, meeting, parent), 0); !s) return s;
    }
    for (const int child : children) {
      if (Status s = enqueue_departure(u, child, {MessageKind::go_on, meeting, self, 0, {}}); !s) return s;
    }
    return Ok{};
  }

  Status report_all_done() {
    while (!underway_.empty() && underway_.front()->done != nullptr) {
      const auto done = device_.is_done(underway_.front()->done);
      if (!done) return done.error();
      if (!*done) break;
      if (Status reported = report_oldest(); !reported) return reported;
    }
    return Ok{};
  }

  Status report_oldest() {
    Underway& u = *underway_.front();
    RankReport& report = u.report;
    report.start_s = report.own_end_s = u.start.time_s;
    report.end_s = u.end.time_s;
    report.energy_j = u.end.energy_j - u.start.energy_j;
    report.late_s = u.end.made_up_s - u.start.made_up_s;
    report.lost_s = u.end.lost_s + u.end.starved_s - u.start.lost_s - u.start.starved_s;
    for (std::size_t i = 0; i < u.stamps.size(); ++i) {
      const simulated_cuda::Stamp& s = u.stamps[i];
      report.stamps.push_back(
          {script_.steps[i].computation, s.kernel_clock_mhz, s.start_s, s.end_s, s.kernel_energy_j});
      report.own_end_s = s.end_s;
    }
    report.client_log = client_.take_log();
    Status sent = links_.send(kLauncher, {MessageKind::report, report.iteration, report.worker, 0, bytes_of(report)});
    underway_.pop_front();
    return sent;
  }

  // ---- Decisions of worker 0

  /// In worker 0: the launcher's oldest pending command.
  std::string next_command() {
    const std::lock_guard lock(mutex_);
    if (launcher_gone_) return "stop";
    if (commands_.empty()) return "run";
    std::string command = std::move(commands_.front());
    commands_.pop_front();
    return command;
  }

  Status decide(std::int64_t iteration, DecisionAbout about, const std::string& decision) {
    {
      const std::lock_guard lock(mutex_);
      decisions_[{iteration, about}] = decision;
    }
    return pass_on({MessageKind::decision, iteration, about, 0, decision});
  }

  Status pass_on(const Message& decision) {
    for (const int child : agreement_children(options_.place)) {
      if (Status sent = links_.send(child, decision); !sent) return sent;
    }
    return Ok{};
  }

  /// Waits for the decision. Only "run" comes before the first iteration.
  Result<std::string> decided(std::int64_t iteration, DecisionAbout about) {
    if (iteration == 0 && about == kCommand) return std::string("run");
    std::unique_lock lock(mutex_);
    const auto key = std::pair(iteration, static_cast<std::int32_t>(about));
    while (!failure_ && !decisions_.contains(key)) {
      // Reports iterations that end during the wait: the launcher may decide by them.
      lock.unlock();
      if (Status reported = report_all_done(); !reported) return reported.error();
      lock.lock();
      decided_.wait_for(lock, std::chrono::milliseconds(kPollMs), [&] { return failure_ || decisions_.contains(key); });
    }
    if (failure_) return *failure_;
    std::string decision = std::move(decisions_[key]);
    decisions_.erase(key);
    return decision;
  }

  // ---- The device's thread

  static void depart(void* departure, double time_s) {
    auto& d = *static_cast<Departure*>(departure);
    if (d.peer < 0) {
      (void)d.worker->device_.deliver(name_of_own(d.message.iteration, d.message.about), time_s);
      return;
    }
    d.message.time_s = time_s;
    if (const Status sent = d.worker->links_.send(d.peer, d.message); !sent) d.worker->remember_failure(sent.error());
  }

  // ---- The thread of the links

  void remember_failure(const Error& error) {
    client_.training_failed();
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = error;
    decided_.notify_all();
  }

  void listen() {
    const sched_param priority{.sched_priority = 1};  // the interconnect is not slower because the host is busy
    pthread_setschedparam(pthread_self(), SCHED_RR, &priority);
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        if (ended_ && !failure_) return;
      }
      Status heard = links_.look(kPollMs);
      if (heard) heard = take_all();
      if (heard) heard = check_peers();
      if (!heard) remember_failure(heard.error());
      const std::unique_lock lock(mutex_);
      if (!failure_) continue;
      break;
    }
    // Makes calls that wait for the device return with an error.
    device_.abort();
  }

  Status take_all() {
    for (const MessageKind kind : {MessageKind::farewell, MessageKind::decision, MessageKind::command,
                                   MessageKind::data, MessageKind::arrived, MessageKind::go_on}) {
      while (auto came = links_.take(kind)) {
        if (Status taken = take(came->peer, came->message); !taken) return taken;
      }
    }
    return Ok{};
  }

  Status take(int peer, const Message& message) {
    switch (message.kind) {
      case MessageKind::farewell: {
        farewells_.push_back(peer);
        return Ok{};
      }
      case MessageKind::command: {
        const std::lock_guard lock(mutex_);
        commands_.push_back(message.payload);
        return Ok{};
      }
      case MessageKind::decision: {
        {
          const std::lock_guard lock(mutex_);
          decisions_[{message.iteration, message.about}] = message.payload;
          decided_.notify_all();
        }
        return pass_on(message);
      }
      default:
        break;
    }
    const bool has_payload = message.kind != MessageKind::go_on;
    if (has_payload && message.payload != payload_of(message.iteration, message.about, options_.payload_bytes)) {
      return Error{ErrorCode::internal, fmt::format("worker {}: message {} of iteration {} has a wrong payload", peer,
                                                    message.about, message.iteration)};
    }
    return device_.deliver(name_of(message.kind, message.iteration, message.about), message.time_s);
  }

  /// A peer that ends in order sends a farewell before.
  Status check_peers() {
    for (const int peer : peers()) {
      if (links_.closed(peer) && std::ranges::find(farewells_, peer) == farewells_.end()) {
        return Error{ErrorCode::unavailable, fmt::format("worker {} has ended", peer)};
      }
    }
    if (links_.closed(kLauncher)) {
      const std::lock_guard lock(mutex_);
      launcher_gone_ = true;
    }
    return Ok{};
  }

  const WorkerOptions& options_;
  const HostAhead ahead_;
  const RankScript& script_;
  PeerLinks& links_;
  CudaDevice& device_;
  WorkerClient& client_;
  std::map<int, std::vector<int>> own_dependencies_;  ///< computation -> dependencies within the rank, with a latency

  // The host's thread.
  std::deque<std::unique_ptr<Underway>> underway_;
  std::vector<simulated_cuda::CudaEvent> computation_ended_;  ///< of the last ones launched, in a ring
  std::vector<simulated_cuda::CudaEvent> iteration_ended_;    ///< likewise
  std::int64_t launched_ = 0, meeting_ = 0;
  bool met_ = false;  ///< all workers' streams are at the same position

  // The thread of the links.
  std::vector<int> farewells_;

  std::mutex mutex_;
  std::condition_variable decided_;
  std::map<std::pair<std::int64_t, std::int32_t>, std::string> decisions_;
  std::deque<std::string> commands_;
  std::optional<Error> failure_;
  bool launcher_gone_ = false, ended_ = false;
};

}  // namespace

Status run_asynchronous_worker(const WorkerOptions& options, const HostAhead& ahead, const RankScript& script,
                               PeerLinks& links, CudaDevice& device, WorkerClient& client) {
  return AsynchronousWorker(options, ahead, script, links, device, client).run();
}

}  // namespace perseus::replay
