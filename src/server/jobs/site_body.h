// The JSON of PUT and GET /v1/site, member by member; docs/openapi.json documents it.
//
// Problem: clients read a site, change it and send it back; the server keeps a document of its own (site_document.h).
// Threads: plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/jobs/describe.h"

namespace perseus::jobs {

struct LimitBody {
  double from_s = 0;
  std::optional<double> limit_w;
};
struct DomainBody {
  std::string name, parent;
  std::vector<LimitBody> limits;
  std::string limits_unread;
  double constant_w = 0;
  std::optional<double> window_s, ramp_down_w_per_s, ramp_up_w_per_s, accelerator_w;
};
struct HostBody {
  std::string host, prefix, domain;
};
struct TeamBody {
  std::string name, domain;
  std::optional<double> least_rate, priority;
};
struct SiteBody {
  std::string name, objective = "slowdown";
  double pue = 1, supply_efficiency = 1, node_overhead_w = 0;
  int gpus_per_node = 8;
  double least_rate = 0, lease_s = 15;
  std::optional<double> dwell_s, accelerator_w, admission_s;
  bool pacing = false;
  std::vector<DomainBody> domains;
  std::vector<HostBody> hosts;
  std::vector<TeamBody> teams;
};

void describe(auto& f, MaybeConst<LimitBody> auto& s) {
  f("from_s", s.from_s);
  f("limit_w", s.limit_w);
}
void describe(auto& f, MaybeConst<DomainBody> auto& s) {
  f.always("name", s.name);
  f("parent", s.parent);
  f("limits", s.limits);
  f("limits_unread", s.limits_unread);
  f("constant_w", s.constant_w);
  f("window_s", s.window_s);
  f("ramp_down_w_per_s", s.ramp_down_w_per_s);
  f("ramp_up_w_per_s", s.ramp_up_w_per_s);
  f("accelerator_w", s.accelerator_w);
}
void describe(auto& f, MaybeConst<HostBody> auto& s) {
  f("host", s.host);
  f("prefix", s.prefix);
  f.always("domain", s.domain);
}
void describe(auto& f, MaybeConst<TeamBody> auto& s) {
  f.always("name", s.name);
  f("domain", s.domain);
  f("least_rate", s.least_rate);
  f("priority", s.priority);
}
void describe(auto& f, MaybeConst<SiteBody> auto& s) {
  f("name", s.name);
  f("objective", s.objective);
  f("pue", s.pue);
  f("supply_efficiency", s.supply_efficiency);
  f("gpus_per_node", s.gpus_per_node);
  f("lease_s", s.lease_s);
  f("dwell_s", s.dwell_s);
  f("accelerator_w", s.accelerator_w);
  f("admission_s", s.admission_s);
  f("node_overhead_w", s.node_overhead_w);
  f("least_rate", s.least_rate);
  f("pacing", s.pacing);
  f.always("domains", s.domains);
  f("hosts", s.hosts);
  f("teams", s.teams);
}

}  // namespace perseus::jobs
