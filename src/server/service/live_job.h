// A job in memory: the fold of its log, and the data that only this process has.
//
// Input:   LiveJobs folds events into it; the parts of the service keep their own data of the job in it.
// Output:  the job as it is, as ranks see it, and as clients may see it.
// Errors:  none.
// Cost:    O(1) per call.
// Threads: io thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/jobs/deployment.h"
#include "server/jobs/followed_iterations.h"
#include "server/jobs/iteration_energy_meter.h"
#include "server/jobs/job.h"
#include "server/jobs/job_profiling.h"
#include "server/jobs/job_progress.h"
#include "server/jobs/measured_iterations.h"
#include "server/jobs/straggler_detector.h"
#include "server/service/done.h"
#include "server/store/store.h"

namespace perseus::service {

/// After a failure of the store, what failed is repeated.
inline constexpr double kRetryAfter_s = 1;
/// Limit of the time whose reports of iterations a crash of the server may lose.
inline constexpr double kCountInterval_s = 300;

/// The error for a job whose log this version cannot fold. The known part is shown, and the job is not changed.
Error later_version(const std::string& job);

/// First version of plans that were sent before they were durable: tenths of a second, above the range of durable
/// versions, which count from 1. A number repeats after three years.
constexpr std::int64_t kProvisional = std::int64_t{1} << 30;
constexpr bool is_provisional(std::int64_t version) { return version >= kProvisional; }
constexpr std::int64_t provisional_version(double now_s) {
  return kProvisional + static_cast<std::int64_t>(10 * now_s) % kProvisional;
}

struct Decision {
  std::vector<jobs::EventBody> events;
  std::vector<store::Blob> blobs;
  std::vector<std::string> holds = {};  ///< keys of other blobs that stay while the job exists
};

struct JobCommand {
  std::function<Result<Decision>(const jobs::Job&, double now_s)> decide;
  std::function<void(const Status&)> done;
};

struct SequencedEvent {
  std::int64_t sequence = 0;
  jobs::Event event;
};

struct Waiter {
  int rank = 0;
  std::int64_t have_version = 0;
  std::optional<double> deadline_s;
  Done<jobs::PlanAnswer> done;
  bool asks_once = false;  ///< as in WaitForPlan
  std::int64_t epoch = 0;  ///< as in WaitForPlan
};

/// A job with the data that only this process has.
///
/// Ranks receive what is durable, with one exception: while the store does not accept what time has made due (an
/// announced onset, a signal's change), a shadow applies it. The shadow is the durable job plus what has become due
/// since. Its plans have separate versions, see is_provisional(), so that whatever becomes durable afterwards, here,
/// at another server or after a restart, has a different version and reaches the rank.
struct LiveJob {
  jobs::Job job;
  std::unique_ptr<jobs::Job> shadow;
  std::int64_t committed = 0;       ///< events of `job` that are durable
  std::int64_t committed_plan = 0;  ///< version of the last durable plan or profiling window
  double last_seen_s = 0;           ///< time of the last request
  std::optional<double> retry_s;    ///< when to repeat an operation that failed in the store
  jobs::Frontiers frontiers;        ///< those loaded of the frontiers that its plan needs
  std::set<std::string> wanted;     ///< frontiers requested; of an input, the full one
  std::optional<jobs::JobProgress> progress;
  std::optional<jobs::StragglerDetector> detector;  ///< created at the first report
  std::shared_ptr<jobs::JobProfiling> profiling;    ///< of a profiled job; kept for the list of rejected values
  struct RankWindows {
    int handed = -1;  ///< the last window that this server handed to the rank
    int run = -1;     ///< the last window that the rank reported here
  };
  std::unordered_map<int, RankWindows> windows_of;  ///< by rank
  std::vector<double> last_call_s;                  ///< by rank: time of its last call here; beyond the end: none
  std::map<jobs::WaitId, Waiter> waiters;
  /// For the plan in force, by pipeline's choice, stage rank, clock set and instruction set.
  std::map<std::array<int, 4>, std::shared_ptr<const jobs::StageSchedule>> schedules;
  std::int64_t schedules_version = 0;
  std::optional<jobs::PipelineShape> max_clock_shape;  ///< the computations where there is no frontier
  enum class Reading : unsigned char { no, under_way, failed };
  Reading max_clock_shape_read = Reading::no;
  std::optional<double> wake_s;  ///< as in the index
  int subscribers = 0;
  jobs::IterationEnergyMeter energies;
  jobs::FollowedIterations followed;
  jobs::MeasuredIterations measured_iterations;
  bool reports_without_plan = false;             ///< a rank reported iterations without naming the plan
  std::optional<double> uncounted_since_s;       ///< arrival of the first iteration that is not in the log
  bool replanning = false;                       ///< a profile is being completed with the measured switch latency
  std::map<std::string, Seconds> not_replanned;  ///< by input: the switch latency with which completion failed
  bool plan_handed_out = false;                  ///< this server has sent it to some rank
  bool plan_held_back = false;                   ///< a rank requested it: see LatencyReplans::first_plan_waits()
  bool settled = false;  ///< nothing has changed since the plan was last compared with the desired one

  /// Ranks' reports name the plan followed: only such reports count.
  [[nodiscard]] bool reports_name_plans() const { return followed.known() || job.kept; }
  /// Changes by other servers are not read until the append is over.
  [[nodiscard]] bool is_appending() const { return appending_; }
  void record_call(int rank, double now_s) {
    if (last_call_s.size() <= static_cast<std::size_t>(rank)) last_call_s.resize(job.ranks.size());
    last_call_s[rank] = now_s;
  }
  [[nodiscard]] bool has_rank(int rank) const {
    return rank >= 0 && rank < static_cast<int>(job.ranks.size()) && job.ranks[rank];
  }
  /// This server knows the rank and the plan of that version.
  [[nodiscard]] bool knows(int rank, std::int64_t version) const {
    return has_rank(rank) && (version <= committed_plan || is_provisional(version));
  }
  /// `finished`: the last iteration that has ended; `iteration`: the one that ranks are in, or that one. False: the
  /// number is implausible for the elapsed time, and no other rank confirms it.
  bool note_progress(int rank, std::int64_t iteration, std::int64_t finished, double now_s);
  /// The first iteration that no rank can have begun when it receives a plan made now: from the last iteration that a
  /// rank reported, the time since then, and a margin for delivery. 0 (at once) without reports.
  [[nodiscard]] std::int64_t next_common_iteration(double now_s, int margin_iterations) const;
  /// As far as this server knows, no iteration has followed a plan.
  [[nodiscard]] bool no_plan_followed() const {
    return !plan_handed_out && job.total.iterations == 0 && job.counted_to < 0;
  }
  /// The job that the rank sees if it is not `job`: the shadow, or, during a commit, the job without the uncommitted
  /// changes.
  [[nodiscard]] jobs::Job* shown_job(int rank) const {
    if (shadow) return shadow.get();
    const bool usable = known_ && known_->version == committed_plan && known_->ranks[rank];
    return usable ? known_.get() : nullptr;
  }
  /// The job as clients may see it: without changes that are not durable, and with what time makes due while the
  /// store does not accept it. Null: `job` itself.
  [[nodiscard]] jobs::Job* answered_job() const { return shadow ? shadow.get() : known_.get(); }
  /// Version of the plan that ranks see now.
  [[nodiscard]] std::int64_t shown_version() const { return shadow ? shadow->version : committed_plan; }
  /// The store has failed or is slow: what time makes due goes into the shadow.
  [[nodiscard]] bool store_is_late() const { return store_is_late_; }
  /// True if the blob still waits to be written: `job` is ahead of the store and may name such blobs.
  [[nodiscard]] bool is_pending(std::string_view blob) const;

 private:
  friend class ReplicaChanges;
  friend class JobShadows;
  friend class LiveJobs;
  /// `job` is what the store had at `committed`, so that it can be brought up to date with the newer events alone.
  [[nodiscard]] bool takes_tail_now() const {
    return committed > 0 && job.sequence == committed && job.unknown_events == 0 && !appending_ && outbox_.empty();
  }
  [[nodiscard]] bool takes_tail() const { return takes_tail_now() && !reads_whole_; }
  struct Entry {
    JobCommand command;
    std::vector<SequencedEvent> events;
    std::vector<store::Blob> blobs;
    std::vector<std::string> holds = {};
  };
  /// The job's ranks have restarted: iterations count from 0.
  void forget_iterations();
  /// The append of everything in the outbox, which is in flight from now on.
  store::Append take_outbox();
  /// The commands whose clients wait for an append; their events stay.
  std::vector<JobCommand> take_commands();
  /// Brings known_ up to date after an append.
  void keep_known(const std::vector<SequencedEvent>& events);

  std::vector<Entry> outbox_;
  std::vector<Entry> in_flight_;
  bool appending_ = false;
  bool stale_ = false;                ///< memory may differ from the store
  bool reads_whole_ = false;          ///< the log is read whole the next time
  bool store_is_late_ = false;        ///< see store_is_late()
  std::unique_ptr<jobs::Job> known_;  ///< `job` without the changes that clients wait for; null: there are none
};

/// Gets the job, or the error.
using FoundJob = std::function<void(Result<LiveJob*>)>;

/// Temporarily replaces the live job by another one, if there is one: LiveJob::shown_job().
class AsShown {
 public:
  AsShown(LiveJob& live, jobs::Job* shown) : live_(live), shown_(shown) { exchange(); }
  AsShown(const AsShown&) = delete;
  AsShown& operator=(const AsShown&) = delete;
  ~AsShown() { exchange(); }

 private:
  void exchange() {
    if (shown_ != nullptr) std::swap(live_.job, *shown_);
  }
  LiveJob& live_;
  jobs::Job* shown_;
};

}  // namespace perseus::service
