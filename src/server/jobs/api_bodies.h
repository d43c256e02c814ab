// Request bodies of /v1, described member by member (server/jobs/describe.h); docs/openapi.json documents them.
//
// Threads: templates.
#pragma once

#include "server/jobs/describe.h"
#include "server/jobs/requests.h"

namespace perseus::jobs {

struct RegisterJobBody {
  RegisterJob job;
  std::map<std::string, std::string> profile_of;  ///< pipeline number as a JSON string -> named profile
};
void describe(auto& f, MaybeConst<RegisterJobBody> auto& s) {
  f("name", s.job.name);
  f.always("degrees", s.job.degrees);
  f("world_size", s.job.world_size);
  f("profile", s.job.profile);
  f("profile_of", s.profile_of);
  f("pipeline", s.job.shape);
  f("profile_online", s.job.profile_online);
  f("plain_profiling", s.job.plain_profiling);
  f("profiling_slowdown_pct", s.job.profiling_slowdown_pct);
  f("profiling_worst_slowdown_pct", s.job.profiling_worst_slowdown_pct);
  f("switch_latency_s", s.job.switch_latency);
  f("facts", s.job.facts);
  f("labels", s.job.labels);
  describe(f, s.job.tier);
  f("detect_stragglers", s.job.detect_stragglers);
}
void describe(auto& f, MaybeConst<RegisterRank> auto& s) {
  f.always("rank", s.rank);
  f.always("dp_rank", s.dp_rank);
  f.always("pp_rank", s.pp_rank);
  f.always("tp_rank", s.tp_rank);
  f("clocks_mhz", s.clocks_mhz);
  f("accelerator", s.accelerator);
  f("host", s.host);
  f("transfer_latency_s", s.transfer_latency);
  f("switch_latency_s", s.switch_latency);
  f("blocking_power_w", s.blocking_power);
  f("instructions", s.instructions);
  f("control", s.control);
  f("control_reason", s.control_reason);
  f("gpu", s.gpu);
  f("epoch", s.epoch);
  f("replaces", s.replaces);
  f("keeps_budgets", s.keeps_budgets);
  f("paces", s.paces);
}
void describe(auto& f, MaybeConst<ReportIterations> auto& s) {
  f.always("rank", s.rank);
  f("window", s.window);
  f("last_iteration", s.last_iteration);
  f("plan_version", s.plan_version);
  f("missed", s.missed);
  f.always("iteration_time_s", s.iteration_time);
  f("iteration_energy_j", s.iteration_energy);
  f("time_s", s.time_s);
  f("energy_j", s.energy_j);
  f("throttled", s.throttled);
  f("begin_s", s.begin_s);
  f("end_s", s.end_s);
  f("microbatches", s.microbatches);
  f("epoch", s.epoch);
  f("clocks", s.clocks);
}
/// Body of a request that one rank sends to its job's path: a RegisterRank or a ReportIterations.
struct BodyFor {
  std::string job;
  std::string body;  ///< JSON
};
void describe(auto& f, MaybeConst<BodyFor> auto& s) {
  f.always("job", s.job);
  f.always("body", s.body);
}
void describe(auto& f, MaybeConst<WaitForPlan> auto& s) {
  f.always("job", s.job);
  f.always("rank", s.rank);
  f("have", s.have_version);
  f("iteration", s.iteration);
  f("epoch", s.epoch);
}
struct ExchangeBody {
  double wait_s = 0;
  std::vector<BodyFor> ranks;
  std::vector<BodyFor> reports;
  std::vector<WaitForPlan> waits;
};
void describe(auto& f, MaybeConst<ExchangeBody> auto& s) {
  f("wait_s", s.wait_s);
  f("ranks", s.ranks);
  f("reports", s.reports);
  f("waits", s.waits);
}
void describe(auto& f, MaybeConst<DropPlan> auto& s) {
  f.always("version", s.version);
  f("reason", s.reason);
  f("measured_time_s", s.measured);
  f("promised_time_s", s.promised);
  f("microbatches", s.microbatches);
  f("epoch", s.epoch);
}
void describe(auto& f, MaybeConst<SeeShape> auto& s) {
  f.always("microbatches", s.microbatches);
  f("prevails", s.prevails);
  f("varies", s.varies);
  f("action_table", s.action_table);
  f("epoch", s.epoch);
}
/// A profile as clients send it; its name is in the path.
void describe(auto& f, MaybeConst<NamedProfile> auto& s) {
  f.always("profile_csv", s.profile_csv);
  f.always("pipeline", s.shape);
  f("accelerator", s.accelerator);
}
struct ProfileBody {
  NamedProfile profile;
  std::vector<int> pipelines;  ///< pipelines of the job; empty: all
};
void describe(auto& f, MaybeConst<ProfileBody> auto& s) {
  describe(f, s.profile);
  f("pipelines", s.pipelines);
}
void describe(auto& f, MaybeConst<SetStraggler> auto& s) {
  describe(f, s.target);
  f("delay_s", s.delay);
  f.always("degree", s.degree);
}
struct TokenBody {
  std::string role, job, name, team;
  std::optional<double> expires_in_s;
};
void describe(auto& f, MaybeConst<TokenBody> auto& s) {
  f.always("role", s.role);
  f("job", s.job);
  f("name", s.name);
  f("team", s.team);
  f("expires_in_s", s.expires_in_s);
}

}  // namespace perseus::jobs
