#include "server/live/job_access.h"

#include <fmt/format.h>

namespace perseus::live {

void JobAccess::execute(const std::string& id, JobCommand command) {
  with(id, [this, id, command = std::move(command)](const Result<LiveJob*>& live) mutable {
    if (!live) return command.done(live.error());
    jobs_.execute(id, std::move(command));
  });
}

LiveJob* JobAccess::known(const std::string& id, int rank, std::int64_t version) {
  LiveJob* const live = jobs_.in_memory(id);
  if (live == nullptr || !live->knows(rank, version)) return nullptr;
  live->last_seen_s = clock_.now_s();
  return live;
}

void JobAccess::find_rank(const std::string& id, int rank, std::int64_t version, JobCache::Found then) {
  with(id, [id, rank, version, then = std::move(then)](const Result<LiveJob*>& live) {
    if (!live || (*live)->knows(rank, version) || (*live)->has_rank(rank)) return then(live);
    then(Error{ErrorCode::not_found, fmt::format("job {}: rank {} is not registered", id, rank)});
  });
}

bool JobAccess::revive_if_expired(LiveJob& live) {
  if (live.job.state != jobs::JobState::expired) return false;
  jobs_.execute(live.job.id, {[](const jobs::Job& job, double) {
                                Decision decision;
                                if (job.state == jobs::JobState::expired)
                                  decision.events.emplace_back(jobs::JobRevived{});
                                return Result<Decision>(std::move(decision));
                              },
                              {}});
  return true;
}

void JobAccess::look(const std::string& id, JobCache::Found then) {
  jobs_.with(id, [this, id, then = std::move(then)](const Result<LiveJob*>& live) {
    LiveJob* const known = jobs_.in_memory(id);
    if (live || known == nullptr || live.error().code == ErrorCode::not_found) return then(live);
    then(Result<LiveJob*>(known));
  });
}

JobCommand command_for_live_job(std::function<Result<std::vector<jobs::EventBody>>(const jobs::Job&)> decide,
                                work::Done<Ok> done) {
  return {[decide = std::move(decide)](const jobs::Job& job, double) -> Result<Decision> {
            if (!job.live()) return job_is_over(job);
            Result<std::vector<jobs::EventBody>> events = decide(job);
            if (!events) return events.error();
            return Decision{*std::move(events), {}};
          },
          std::move(done)};
}

Error job_is_revived(const std::string& job) {
  return {ErrorCode::unavailable, fmt::format("job {} had expired and is revived: try again", job)};
}

Error job_is_over(const jobs::Job& job) {
  return {ErrorCode::conflict, fmt::format("job {} is {}", job.id, name_of(job.state))};
}

}  // namespace perseus::live
