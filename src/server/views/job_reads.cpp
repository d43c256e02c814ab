#include "server/views/job_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "server/jobs/pipeline_input.h"
#include "server/live/job_view.h"

namespace perseus::views {

namespace {

using Frontier = JobReads::Frontier;

Result<Frontier> frontier_of(const live::LiveJob& live, int pipeline,
                             const plans::Characterizations& characterizations) {
  const jobs::Job& job = live.job;
  if (pipeline < 0 || pipeline >= job.num_pipelines()) {
    return Error{ErrorCode::not_found,
                 fmt::format("job {}: no pipeline {}; it has 0 to {}", job.id, pipeline, job.num_pipelines() - 1)};
  }
  const std::string& input = policies::ruling_frontier(job, pipeline);
  if (auto loaded = live.frontiers.find(input)) return loaded;
  if (auto known = characterizations.known(input)) return known;
  return Error{ErrorCode::not_found, fmt::format("job {}: pipeline {} has no frontier yet", job.id, pipeline)};
}

Result<jobs::TimelineView> timeline_of(const jobs::Job& job, int pipeline, std::optional<int> point,
                                       const Frontier& frontier) {
  if (!point) {
    const bool planned = job.plan && job.plan->of(pipeline).point >= 0 && job.plan->of(pipeline).input == frontier->key;
    if (!planned)
      return Error{ErrorCode::not_found, fmt::format("job {}: pipeline {} has no plan yet", job.id, pipeline)};
    point = job.plan->of(pipeline).point;
  }
  if (const std::size_t points = frontier->frontier.points.size(); *point >= static_cast<int>(points))
    return Error{ErrorCode::not_found, fmt::format("point {}: the frontier has {}", *point, points)};
  return jobs::TimelineView{frontier, *point, job.switch_latency_of(frontier->key)};
}

jobs::RankView rank_view(live::LiveJob& live, int rank, plans::RankPlans& plans) {
  const jobs::Rank& known = *live.job.ranks[rank];
  jobs::RankView view;
  view.rank = rank;
  view.dp_rank = known.dp_rank;
  view.pp_rank = known.pp_rank;
  view.tp_rank = known.tp_rank;
  view.host = known.host;
  view.accelerator = known.accelerator;
  view.control = known.control;
  view.control_reason = known.control_reason;
  view.restarts = known.restarts;
  view.last_heard_s = live.calls.last_s(rank);
  view.wanted = plans.clocks_wanted(live, known);
  if (const live::RankClocks::Reported* reported = live.clocks.of(rank, known)) {
    view.clocks = reported->figures;
    view.clocks_at_s = reported->at_s;
  }
  return view;
}

jobs::RankPage ranks_of(live::LiveJob& live, const jobs::RankQuery& query, plans::RankPlans& plans) {
  const auto& ranks = live.job.ranks;
  std::set<int> waiting;
  for (const auto& [id, waiter] : live.calls.waiters) waiting.insert(waiter.rank);
  jobs::RankPage page;
  const int size = static_cast<int>(ranks.size());
  for (int rank = std::max(0, std::min(query.after, size) + 1); rank < size; ++rank) {
    if (!ranks[rank] || (!query.host.empty() && ranks[rank]->host != query.host)) continue;
    if (static_cast<int>(page.ranks.size()) == query.limit) {
      page.next = page.ranks.back().rank;
      break;
    }
    page.ranks.push_back(rank_view(live, rank, plans));
    page.ranks.back().waiting = waiting.contains(rank);
  }
  return page;
}

std::optional<jobs::ClockSpan> with(const std::optional<jobs::ClockSpan>& range, const jobs::ClockSpan& other) {
  if (!range) return other;
  return jobs::ClockSpan{std::min(range->least_mhz, other.least_mhz), std::max(range->most_mhz, other.most_mhz)};
}

void add_rank(live::LiveJob& live, int rank, plans::RankPlans& plans, jobs::HostView& host) {
  const jobs::Rank& known = *live.job.ranks[rank];
  ++host.ranks;
  if (!known.control.empty() && host.without_control++ == 0) host.control_reason = known.control_reason;
  if (const auto wanted = plans.clocks_wanted(live, known)) host.wanted = with(host.wanted, *wanted);
  const auto heard_s = live.calls.last_s(rank);
  if (!heard_s) ++host.silent;
  if (heard_s) host.first_heard_s = std::min(host.first_heard_s.value_or(*heard_s), *heard_s);
  if (heard_s) host.last_heard_s = std::max(host.last_heard_s.value_or(*heard_s), *heard_s);
  const live::RankClocks::Reported* const reported = live.clocks.of(rank, known);
  if (reported == nullptr) return;
  const jobs::ClockFigures& figures = reported->figures;
  ++host.reporting;
  if (figures.set_mhz > 0) host.set = with(host.set, {figures.set_mhz, figures.set_mhz});
  if (!host.clocks) host.clocks.emplace();
  host.clocks->failed += figures.failed;
  host.clocks->late += figures.late;
  host.clocks->throttled_iterations += figures.throttled_iterations;
}

jobs::HostPage hosts_of(live::LiveJob& live, const jobs::HostQuery& query, plans::RankPlans& plans) {
  const auto& ranks = live.job.ranks;
  std::map<std::string_view, std::vector<int>> by_host;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    if (!ranks[rank] || !ranks[rank]->host.starts_with(query.prefix)) continue;
    if (!query.after || ranks[rank]->host > *query.after) by_host[ranks[rank]->host].push_back(rank);
  }
  jobs::HostPage page{live.job.spec.name, {}, by_host.size() > query.limit};
  for (const auto& [name, on_host] : by_host) {
    if (page.hosts.size() == query.limit) break;
    jobs::HostView& host = page.hosts.emplace_back();
    host.host = name;
    for (const int rank : on_host) add_rank(live, rank, plans, host);
  }
  return page;
}

}  // namespace

void JobReads::job(const std::string& job, work::Done<jobs::JobView> done) {
  const auto make = [this](live::LiveJob& live) -> Result<jobs::JobView> {
    return live::view_of(live, clock_.now_s());
  };
  const auto want = [this](live::LiveJob& live) -> Result<Ok> {
    frontiers_.want_to_show(live);
    return Ok{};
  };
  access_.show<Ok>(job, want, [this, job, make, done = std::move(done)](const Result<Ok>& found) {
    if (!found) return done(found.error());
    // After a restart, its frontiers are in the store.
    frontiers_.when_read(job, [this, job, make, done] { access_.show<jobs::JobView>(job, make, done); });
  });
}

void JobReads::frontier(const std::string& job, int pipeline, work::Done<Frontier> done) {
  const auto make = [this, pipeline](const live::LiveJob& live) {
    return frontier_of(live, pipeline, characterizations_);
  };
  access_.show<Frontier>(job, make, std::move(done));
}

void JobReads::timeline(const std::string& job, int pipeline, std::optional<int> point,
                        work::Done<jobs::TimelineView> done) {
  const auto make = [this, pipeline, point](const live::LiveJob& live) {
    const auto frontier = frontier_of(live, pipeline, characterizations_);
    return frontier ? timeline_of(live.job, pipeline, point, *frontier) : Result<jobs::TimelineView>(frontier.error());
  };
  access_.show<jobs::TimelineView>(job, make, std::move(done));
}

void JobReads::ranks(jobs::RankQuery query, work::Done<jobs::RankPage> done) {
  const std::string job = query.job;
  const auto make = [this, query = std::move(query)](live::LiveJob& live) -> Result<jobs::RankPage> {
    return ranks_of(live, query, plans_);
  };
  access_.show<jobs::RankPage>(job, make, std::move(done));
}

void JobReads::hosts(jobs::HostQuery query, work::Done<jobs::HostPage> done) {
  const std::string job = query.job;
  const auto make = [this, query = std::move(query)](live::LiveJob& live) -> Result<jobs::HostPage> {
    return hosts_of(live, query, plans_);
  };
  access_.show<jobs::HostPage>(job, make, std::move(done));
}

}  // namespace perseus::views
