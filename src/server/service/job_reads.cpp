#include "server/service/job_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "server/jobs/pipeline_input.h"
#include "server/service/job_view.h"

namespace perseus::service {

namespace {

using Frontier = JobReads::Frontier;

Result<Frontier> frontier_of(const LiveJob& live, int pipeline, const Characterizations& characterizations) {
  const jobs::Job& job = live.job;
  if (pipeline < 0 || pipeline >= job.num_pipelines()) {
    return Error{ErrorCode::not_found,
                 fmt::format("job {}: no pipeline {}; it has 0 to {}", job.id, pipeline, job.num_pipelines() - 1)};
  }
  const std::string& input = jobs::ruling_frontier(job, pipeline);
  if (auto loaded = live.frontiers.find(input)) return loaded;
  if (auto known = characterizations.known(input)) return known;
  return Error{ErrorCode::not_found, fmt::format("job {}: pipeline {} has no frontier yet", job.id, pipeline)};
}

Result<jobs::TimelineView> timeline_of(const jobs::Job& job, int pipeline, const Frontier& frontier) {
  const bool planned = job.plan && job.plan->of(pipeline).point >= 0 && job.plan->of(pipeline).input == frontier->key;
  if (planned) return jobs::TimelineView{frontier, job.plan->of(pipeline).point, job.plan->version};
  return Error{ErrorCode::not_found, fmt::format("job {}: pipeline {} has no plan yet", job.id, pipeline)};
}

jobs::RankPage ranks_of(const LiveJob& live, int after, int limit) {
  const auto& ranks = live.job.ranks;
  std::set<int> waiting;
  for (const auto& [id, waiter] : live.calls.waiters) waiting.insert(waiter.rank);
  jobs::RankPage page;
  for (int rank = std::max(0, after + 1); rank < static_cast<int>(ranks.size()); ++rank) {
    if (!ranks[rank]) continue;
    if (static_cast<int>(page.ranks.size()) == limit) {
      page.next = page.ranks.back().rank;
      break;
    }
    const jobs::Rank& known = *ranks[rank];
    jobs::RankView& view = page.ranks.emplace_back(
        jobs::RankView{rank, known.dp_rank, known.pp_rank, known.tp_rank, known.host, known.accelerator, known.control,
                       known.control_reason, known.restarts, std::nullopt, waiting.contains(rank)});
    view.last_heard_s = live.calls.last_s(rank);
  }
  return page;
}

}  // namespace

void JobReads::job(const std::string& job, Done<jobs::JobView> done) {
  const auto make = [this](LiveJob& live) -> Result<jobs::JobView> { return view_of(live, clock_.now_s()); };
  const auto want = [this](LiveJob& live) -> Result<Ok> {
    frontiers_.want_to_show(live);
    return Ok{};
  };
  access_.show<Ok>(job, want, [this, job, make, done = std::move(done)](const Result<Ok>& found) {
    if (!found) return done(found.error());
    // After a restart, its frontiers are in the store.
    frontiers_.when_read(job, [this, job, make, done] { access_.show<jobs::JobView>(job, make, done); });
  });
}

void JobReads::frontier(const std::string& job, int pipeline, Done<Frontier> done) {
  const auto make = [this, pipeline](const LiveJob& live) { return frontier_of(live, pipeline, characterizations_); };
  access_.show<Frontier>(job, make, std::move(done));
}

void JobReads::timeline(const std::string& job, int pipeline, Done<jobs::TimelineView> done) {
  const auto make = [this, pipeline](const LiveJob& live) {
    const auto frontier = frontier_of(live, pipeline, characterizations_);
    return frontier ? timeline_of(live.job, pipeline, *frontier) : Result<jobs::TimelineView>(frontier.error());
  };
  access_.show<jobs::TimelineView>(job, make, std::move(done));
}

void JobReads::ranks(const std::string& job, int after, int limit, Done<jobs::RankPage> done) {
  const auto make = [after, limit](const LiveJob& live) -> Result<jobs::RankPage> {
    return ranks_of(live, after, limit);
  };
  access_.show<jobs::RankPage>(job, make, std::move(done));
}

}  // namespace perseus::service
