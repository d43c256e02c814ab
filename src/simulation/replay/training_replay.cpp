#include "simulation/replay/training_replay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <utility>

#include "simulation/replay/kernel_state.h"
#include "simulation/replay/rank_script.h"
#include "simulation/replay/worker.h"

namespace perseus::replay {
namespace {

using Clock = std::chrono::steady_clock;

double now_s() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

/// Descriptors of a worker: peer -> its end of the socket.
using Ends = std::vector<std::map<int, int>>;

void close_all(const Ends& ends) {
  for (const auto& worker : ends) {
    for (const auto& [peer, descriptor] : worker) close(descriptor);
  }
}

/// Pairs of workers that communicate: along the pipeline, and at the end of an iteration.
std::set<std::pair<int, int>> talking_pairs(const model::ComputationDag& dag, int replicas) {
  std::set<std::pair<int, int>> pairs;
  const auto add = [&](int a, int b) { pairs.emplace(std::min(a, b), std::max(a, b)); };
  for (int rank = 0; rank < dag.num_ranks(); ++rank) {
    const RankScript script = script_of(dag, rank);
    for (int replica = 0; replica < replicas; ++replica) {
      const WorkerPlace place{replicas, dag.num_ranks(), replica, rank};
      for (const int peer : script.peers) add(place.worker(), replica * place.ranks + peer);
      if (const int parent = agreement_parent(place); parent >= 0) add(place.worker(), parent);
    }
  }
  return pairs;
}

std::string links_text(const std::map<int, int>& ends) {
  std::vector<std::string> links;
  for (const auto& [peer, descriptor] : ends) links.push_back(fmt::format("{}:{}", peer, descriptor));
  return fmt::format("{}", fmt::join(links, ","));
}

}  // namespace

Result<std::unique_ptr<TrainingReplay>> TrainingReplay::launch(const model::ComputationDag& dag,
                                                               ReplayOptions options) {
  std::unique_ptr<TrainingReplay> replay(new TrainingReplay(std::move(options), dag.num_ranks()));
  if (const Status started = replay->start_workers(dag); !started) return started.error();
  return replay;
}

Status TrainingReplay::start_workers(const model::ComputationDag& dag) {
  const int workers = options_.replicas * ranks_;
  PERSEUS_CHECK(options_.gpus.size() == static_cast<std::size_t>(workers), "one GPU per worker");
  Ends ends(workers);
  std::map<int, int> own;
  const auto connect = [&](int& first, int& second) -> Status {
    const auto pair = socket_pair();
    if (!pair) return pair.error();
    first = pair->first;
    second = pair->second;
    return Ok{};
  };
  Status connected = Ok{};
  for (const auto& [a, b] : talking_pairs(dag, options_.replicas)) {
    int of_a = -1, of_b = -1;
    if (connected = connect(of_a, of_b); !connected) break;
    ends[a][b] = of_a;
    ends[b][a] = of_b;
  }
  for (int w = 0; connected && w < workers; ++w) {
    int of_launcher = -1, of_worker = -1;
    if (connected = connect(of_launcher, of_worker); !connected) break;
    own[w] = of_launcher;
    ends[w][kLauncher] = of_worker;
  }
  links_ = std::make_unique<PeerLinks>(std::move(own), options_.interrupted);
  for (int w = 0; connected && w < workers; ++w) {
    ChildOptions child;
    child.command = {options_.program};
    child.command.insert(child.command.end(), options_.arguments.begin(), options_.arguments.end());
    for (const auto& [name, value] :
         std::vector<std::pair<std::string, std::string>>{{"--replicas", std::to_string(options_.replicas)},
                                                          {"--ranks", std::to_string(ranks_)},
                                                          {"--replica", std::to_string(w / ranks_)},
                                                          {"--rank", std::to_string(w % ranks_)},
                                                          {"--gpu", options_.gpus[w]},
                                                          {"--links", links_text(ends[w])}}) {
      child.command.insert(child.command.end(), {name, value});
    }
    for (const auto& [peer, descriptor] : ends[w]) child.inherited.push_back(descriptor);
    child.error_file = options_.error_file;
    auto started = ChildProcess::start(child);
    if (started) {
      workers_.push_back(*std::move(started));
    } else {
      connected = started.error();
    }
  }
  close_all(ends);
  return connected;
}

TrainingReplay::~TrainingReplay() {
  for (const ChildProcess& worker : workers_) worker.signal(SIGTERM);
  const auto until = Clock::now() + std::chrono::seconds(5);
  for (ChildProcess& worker : workers_) { worker.wait(std::chrono::duration<double>(until - Clock::now()).count()); }
}

Status TrainingReplay::command(const std::string& text) {
  stopping_ = stopping_ || text == "stop";
  return links_->send(0, {MessageKind::command, commands_++, 0, 0, text});
}

Status TrainingReplay::check_workers(double patience_s) {
  // After the death of one worker the others follow soon: the cause is the one that did not end for lack of a peer.
  const auto until = Clock::now() + std::chrono::duration<double>(patience_s);
  const std::string innocent = fmt::format("ended with exit code {}", kExitPeerHasGone);
  std::string any;
  do {
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      const auto& end = workers_[w].ended();
      if (!end || (stopping_ && end->in_order)) continue;
      const auto rank = static_cast<int>(w) % ranks_, replica = static_cast<int>(w) / ranks_;
      const std::string what = fmt::format("worker {} (replica {}, rank {}) {}", w, replica, rank, end->how);
      if (end->how != innocent) return Error{ErrorCode::unavailable, what};
      any = what;
    }
    if (any.empty()) return Ok{};
    usleep(5000);
  } while (Clock::now() < until);
  return Error{ErrorCode::unavailable, any};
}

Status TrainingReplay::listen(int limit_ms) {
  if (Status looked = links_->look(limit_ms); !looked) return looked;
  while (auto note = links_->take(MessageKind::note)) {
    job_ = note->message.payload;
    job_notified_ = true;
  }
  while (auto came = links_->take(MessageKind::report)) {
    auto report = report_from(came->message.payload);
    if (!report) return report.error();
    last_heard_s_ = now_s();
    if (options_.on_report) options_.on_report(*report);
    JobIteration& iteration = iterations_[report->iteration];
    iteration.iteration = report->iteration;
    iteration.workers.push_back(*std::move(report));
  }
  return Ok{};
}

std::string TrainingReplay::silent_workers() const {
  std::vector<bool> reported(workers_.size());
  if (const auto found = iterations_.find(next_); found != iterations_.end()) {
    for (const RankReport& report : found->second.workers) reported[report.worker] = true;
  }
  std::vector<std::string> stopped, silent;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    const auto state = kernel_state_of(workers_[w].pid());
    const bool is_stopped = state && state->stopped;
    if (!is_stopped && reported[w]) continue;
    (is_stopped ? stopped : silent).push_back(fmt::format("worker {} (process {})", w, workers_[w].pid()));
  }
  return stopped.empty() ? fmt::format("no report of iteration {} from {}", next_, fmt::join(silent, ", "))
                         : fmt::format("stopped by a signal: {}", fmt::join(stopped, ", "));
}

std::optional<JobIteration> TrainingReplay::take_whole() {
  const auto found = iterations_.find(next_);
  if (found == iterations_.end() || found->second.workers.size() != workers_.size()) return std::nullopt;
  std::optional<JobIteration> whole = std::move(found->second);
  iterations_.erase(found);
  ++next_;
  std::ranges::sort(whole->workers, {}, &RankReport::worker);
  return whole;
}

Result<std::optional<JobIteration>> TrainingReplay::poll(int limit_ms) {
  if (auto whole = take_whole()) return whole;
  if (const Status heard = listen(limit_ms); !heard) return heard.error();
  if (const Status alive = check_workers(2); !alive) return alive.error();
  return take_whole();
}

Result<JobIteration> TrainingReplay::next_iteration() {
  last_heard_s_ = now_s();
  const auto until = Clock::now() + std::chrono::duration<double>(options_.report_limit_s);
  while (true) {
    if (auto whole = take_whole()) return *std::move(whole);
    if (const Status heard = listen(50); !heard) return heard.error();
    if (const Status alive = check_workers(2); !alive) return alive.error();
    if (options_.on_silence && now_s() - last_heard_s_ >= options_.silence_s) {
      options_.on_silence(silent_workers());
      last_heard_s_ = now_s();
    }
    if (Clock::now() >= until) {
      return Error{ErrorCode::unavailable, fmt::format("iteration {} has not ended within {:.3g} s; {}", next_,
                                                       options_.report_limit_s, silent_workers())};
    }
  }
}

Status TrainingReplay::finish(double limit_s) {
  const auto until = Clock::now() + std::chrono::duration<double>(limit_s);
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    while (!workers_[w].ended()) {
      if (Status heard = listen(20); !heard) return heard;  // so that no worker blocks on an unread report
      if (Clock::now() >= until) {
        return Error{ErrorCode::unavailable, fmt::format("worker {} does not end within {} s", w, limit_s)};
      }
    }
    if (!workers_[w].ended()->in_order) {
      return Error{ErrorCode::unavailable, fmt::format("worker {} {}", w, workers_[w].ended()->how)};
    }
  }
  return Ok{};
}

std::vector<pid_t> TrainingReplay::pids() const {
  std::vector<pid_t> pids;
  for (const ChildProcess& worker : workers_) pids.push_back(worker.pid());
  return pids;
}

}  // namespace perseus::replay
