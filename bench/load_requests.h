// Requests of ranks and relays as JSON, and members of the answers.
//
// Threads: pure functions.
#pragma once

#include <fmt/format.h>

#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"

namespace perseus::bench {

inline std::string member(const std::string& json, const std::string& name) {
  const std::size_t at = json.find("\"" + name + "\":") + name.size() + 3;
  const std::size_t end = json.find_first_of(",}", at);
  std::string value = json.substr(at, end - at);
  std::erase(value, '"');
  return value;
}

inline std::string pipeline_json(const std::string& csv, int microbatches) {
  return json_object([&](JsonWriter& f) {
    f.always("profile_csv", csv);
    f.always("pipeline", JsonObject{[&](JsonWriter& pipeline) {
               pipeline.always("schedule", "1f1b");
               pipeline.always("microbatches", microbatches);
               pipeline.always("blocking_power_w", 80);
             }});
  });
}

inline constexpr std::string_view kProfile = "load";

/// A job that uses the profile of that name; empty: none.
inline std::string job_json(int dp, int pp, std::string_view profile) {
  return json_object([&](JsonWriter& f) {
    f.always("degrees", JsonObject{[&](JsonWriter& degrees) {
               degrees.always("dp", dp);
               degrees.always("pp", pp);
               degrees.always("tp", 1);
             }});
    f("profile", profile);
  });
}

/// A rank of a job without tensor parallelism.
inline std::string rank_json(int rank, int stages, const std::string& accelerator, int host) {
  return json_object([&](JsonWriter& f) {
    f.always("rank", rank);
    f.always("dp_rank", rank / stages);
    f.always("pp_rank", rank % stages);
    f.always("tp_rank", 0);
    f.always("accelerator", accelerator);
    f.always("host", fmt::format("node{}", host));
  });
}
inline std::string rank_json(int rank, int stages) {
  return rank_json(rank, stages, fmt::format("GPU-{}", rank), rank / 8);
}

inline std::string straggler_json(int pipeline, double degree) {
  return json_object([&](JsonWriter& f) {
    f.always("pipeline", pipeline);
    f.always("degree", degree);
  });
}

inline std::vector<int> ranks_from(int first, int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

/// Waits of a host's ranks for the plan after `version`.
inline std::string waits_json(const std::string& job, const std::vector<int>& ranks, const std::string& version) {
  return json_text(JsonList{ranks, [&](int rank) {
                              return JsonObject{[&, rank](JsonWriter& f) {
                                f.always("job", job);
                                f.always("rank", rank);
                                f.always("have", JsonRaw{version});
                              }};
                            }});
}

/// Requests of a host's ranks, which a relay sends for them.
inline std::string bodies_json(const std::string& job, const std::vector<std::string>& bodies) {
  return json_text(JsonList{bodies, [&](const std::string& body) {
                              return JsonObject{[&](JsonWriter& f) {
                                f.always("job", job);
                                f.always("body", body);
                              }};
                            }});
}

/// A relay's request for the ranks of its host.
inline std::string exchange_json(const std::string& job, int first, int count, const std::string& version) {
  const std::string waits = waits_json(job, ranks_from(first, count), version);
  return json_object([&](JsonWriter& f) {
    f.always("wait_s", 60);
    f.always("waits", JsonRaw{waits});
  });
}

inline std::string report_json(int rank, int iteration) {
  return json_object([&](JsonWriter& f) {
    f.always("rank", rank);
    f.always("last_iteration", iteration);
    f.always("plan_version", 1);
    f.always("iteration_time_s", std::vector{4.5});
    f.always("iteration_energy_j", std::vector{1200});
  });
}

}  // namespace perseus::bench
