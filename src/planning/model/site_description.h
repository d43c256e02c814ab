// A site as its operator describes it: metered limits over time, overheads, and the jobs' profiles.
//
// Shape:   domain 0 is the site, every parent comes before its children; limits of a domain ascend in time, the first
//          one at 0 s. What a limit leaves for accelerators: planning/site/site_limits.h.
// Units:   s since the beginning, W as metered.
// Errors:  those of the reader (io/formats/site_toml.h); `where` begins messages about a job that need its profile.
// Threads: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "planning/model/site.h"

namespace perseus::model {

struct LimitStep {
  Seconds from;
  Watts limit = kNoLimit;
};

/// How fast what a domain draws may change, in W per second.
struct Ramp {
  std::optional<double> down_w_per_s, up_w_per_s;
};

struct DescribedDomain {
  std::string name;
  int parent = -1;
  std::vector<LimitStep> limits;
  Ramp ramp{};
  Watts constant{};                 ///< switches, storage and other loads that do not change
  std::optional<Seconds> window{};  ///< over which its meter averages; nullopt: over minutes
  std::string limits_unread{};  ///< for people: which limit cannot be read, so that an earlier one is here; empty: none
};

/// A lower limit that nobody knows of before it begins: only an emulated site has it.
struct DescribedEvent {
  int domain = 0;
  Seconds at, until;
  Watts limit;
  Seconds within{30};  ///< how long the site has got to follow
};

/// How an emulated site behaves.
struct DescribedEmulation {
  std::uint64_t seed = 1;
  Seconds delay_median{0.05}, delay_most{1};  ///< from a grant to a rank's clock
  double delay_spread = 1;                    ///< standard deviation of its logarithm
  double bias = 0;                            ///< standard deviation, over jobs, of power over that of the profile
  double draw_more = 0;                       ///< by which all jobs draw more than their profiles say
};

struct DescribedJob {
  std::string where;  ///< "site.toml:12: [[job]]"
  std::string name;
  int domain = 0;
  std::string profile, plans;  ///< paths; one of them is empty: plans of `perseus plan --out` say the rest
  std::string schedule = "1f1b";
  int microbatches = 0, chunks = 1;
  std::optional<Watts> blocking_power;
  int pipelines = 1, tensor_parallel = 1;  ///< copies of each GPU of the profile: pipelines x tensor_parallel
  int count = 1;                           ///< jobs like this one
  double priority = 1;
  std::optional<double> weight;  ///< nullopt: its GPUs times its priority
  double least_rate = 1;
  std::optional<Seconds> deadline;
  double iterations = 0;  ///< to do until the deadline
};

struct SiteDescription {
  std::string name;
  Seconds end{};   ///< of the plan; 0: one allocation for ever
  double pue = 1;  ///< metered watts over those of the machines
  double supply_efficiency = 1;
  Watts node_overhead{};  ///< what a node draws besides its GPUs
  int gpus_per_node = 8;
  Seconds ramp_step{60};
  std::vector<DescribedDomain> domains;
  std::vector<DescribedJob> jobs;
  std::vector<DescribedEvent> events;
  DescribedEmulation emulation;

  [[nodiscard]] bool has(std::string_view domain) const {
    return std::ranges::find(domains, domain, &DescribedDomain::name) != domains.end();
  }
};

}  // namespace perseus::model
