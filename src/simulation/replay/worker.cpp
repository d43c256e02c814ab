#include "simulation/replay/worker.h"

#include <utility>

namespace perseus::replay {
namespace {

class Worker {
 public:
  Worker(const WorkerOptions& options, const RankScript& script, PeerLinks& links, ReplayDevice& device,
         WorkerClient& client)
      : options_(options), script_(script), links_(links), device_(device), client_(client) {}

  Status run() {
    if (Status met = meet(device_.now_s(), "run"); !met) return met;
    while (next_ != "stop") {
      if (next_ == "client") {
        if (Status joined = join_job(); !joined) return joined;
      }
      if (Status done = iterate(); !done) return done;
    }
    return Ok{};
  }

 private:
  /// Synchronizes all workers; afterwards start_s_ is the time of the last one, next_ the first one's decision.
  Status meet(double done_s, const std::string& said) {
    const auto agreement = agree(options_.place, meeting_++, done_s, options_.payload_bytes, links_,
                                 [&] { return said.empty() ? next_command() : said; });
    if (!agreement) return agreement.error();
    start_s_ = agreement->time_s;
    next_ = agreement->next;
    return Ok{};
  }

  /// In worker 0: the launcher's oldest pending command.
  std::string next_command() {
    if (links_.closed(kLauncher) || !links_.look(0)) return "stop";
    const auto command = links_.take(MessageKind::command);
    return command ? command->message.payload : "run";
  }

  /// The first worker registers the job, the others join it.
  Status join_job() {
    std::string job;
    if (options_.place.worker() == 0) job = client_.start("");
    if (Status met = meet(device_.now_s(), "job " + job); !met) return met;
    if (options_.place.worker() == 0) {
      if (Status sent = links_.send(kLauncher, {MessageKind::note, iteration_, 0, 0, job}); !sent) return sent;
    } else {
      client_.start(next_.substr(4));
    }
    return meet(device_.now_s(), "run");
  }

  Status iterate() {
    RankReport report;
    report.worker = options_.place.worker();
    report.iteration = iteration_;
    report.start_s = start_s_;
    const double energy_before_j = device_.energy_j(start_s_);
    const ReplayDevice::Lateness late_before = device_.lateness();
    client_.step_begin();
    auto stamps =
        run_iteration(script_, {iteration_, options_.place.replica * options_.place.ranks, options_.payload_bytes},
                      start_s_, links_, device_, client_);
    if (!stamps) return stamps.error();
    report.own_end_s = stamps->empty() ? start_s_ : stamps->back().end_s;
    if (Status met = meet(report.own_end_s, ""); !met) return met;
    client_.step_end();
    report.end_s = start_s_;
    report.energy_j = device_.energy_j(start_s_) - energy_before_j;
    report.late_s = device_.lateness().made_up_s - late_before.made_up_s;
    report.lost_s = device_.lateness().lost_s - late_before.lost_s;
    report.client = client_.figures();
    report.client_log = client_.take_log();
    report.stamps = *std::move(stamps);
    return links_.send(kLauncher, {MessageKind::report, iteration_++, report.worker, 0, bytes_of(report)});
  }

  const WorkerOptions& options_;
  const RankScript& script_;
  PeerLinks& links_;
  ReplayDevice& device_;
  WorkerClient& client_;
  std::int64_t iteration_ = 0, meeting_ = 0;
  double start_s_ = 0;
  std::string next_;
};

}  // namespace

Status run_worker(const WorkerOptions& options, const RankScript& script, PeerLinks& links, ReplayDevice& device,
                  WorkerClient& client) {
  return Worker(options, script, links, device, client).run();
}

}  // namespace perseus::replay
