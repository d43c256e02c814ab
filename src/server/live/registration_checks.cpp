#include "server/live/registration_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>

#include "base/utf8.h"
#include "io/formats/json_reader.h"
#include "server/jobs/report_checks.h"
#include "server/live/learned_profile.h"

namespace perseus::live {
namespace {

constexpr std::size_t kMaxClocks = 4096;
constexpr std::size_t kMaxInstructions = 1 << 16;

Error usage(const std::string& message) { return {ErrorCode::usage, message}; }

Status check_coordinate(const char* name, int value, int degree) {
  if (value >= 0 && value < degree) return Ok{};
  return usage(fmt::format("{}: {}; allowed: 0 to {}", name, value, degree - 1));
}

Status check_latency(const char* name, const std::optional<Seconds>& latency) {
  if (!latency || (latency->value() >= 0 && latency->value() <= 1e6)) return Ok{};
  return usage(fmt::format("{}: {} s; allowed: 0 to 1e6", name, latency->value()));
}

Status check_power(const std::optional<Watts>& power) {
  if (!power || (power->value() >= 0 && power->value() <= 1e6)) return Ok{};
  return usage(fmt::format("blocking_power_w: {} W; allowed: 0 to 1e6", power->value()));
}

/// Measurements whose relative difference is smaller count as equal.
constexpr double kSameWithin = 0.05;
bool says_more(const std::optional<double>& measured, const std::optional<double>& known) {
  return measured && !(known && std::abs(*measured - *known) <= kSameWithin * std::abs(*known));
}

/// New measurements of a rank that registers again.
std::optional<jobs::EventBody> decide_measured(const jobs::Job& job, const jobs::Rank& known,
                                               const jobs::RankMeasured& now) {
  jobs::RankMeasured measured{now.rank, {}, {}, {}, {}, {}, {}};
  if (says_more(now.switch_latency_s, known.switch_latency_s)) measured.switch_latency_s = now.switch_latency_s;
  if (says_more(now.blocking_power_w, known.blocking_power_w)) measured.blocking_power_w = now.blocking_power_w;
  if (job.instruction_sets[known.instruction_set].empty()) measured.instructions = now.instructions;
  if (job.clock_sets[known.clock_set].empty()) measured.clocks_mhz = now.clocks_mhz;
  // A rank without this member can set clocks, like one that states it.
  const std::string control = now.control.value_or("");
  if (control != (known.control.empty() ? "clocks" : known.control) && !control.empty()) {
    measured.control = control;
    measured.control_reason = now.control_reason;
  }
  if (measured == jobs::RankMeasured{now.rank, {}, {}, {}, {}, {}, {}}) return std::nullopt;
  return measured;
}

Status check_control(const jobs::RegisterRank& request) {
  const std::string& control = request.control;
  if (!control.empty() && control != "clocks" && control != "advice" && control != "none") {
    return usage(fmt::format("control: '{}'; allowed: clocks, advice, none", valid_utf8(control.substr(0, 40))));
  }
  return check_text("control_reason", request.control_reason, 1024);
}

Status check_budget(const char* name, const std::optional<double>& pct) {
  if (!pct || (*pct > 0 && *pct <= 1000)) return Ok{};
  return usage(fmt::format("{}: {}; allowed: more than 0, at most 1000", name, *pct));
}

Status check_lists(const jobs::RegisterRank& request) {
  if (request.clocks_mhz.size() > kMaxClocks) {
    return usage(fmt::format("clocks_mhz: {} of them; allowed: {}", request.clocks_mhz.size(), kMaxClocks));
  }
  for (const int clock : request.clocks_mhz) {
    if (clock < 1 || clock > jobs::kMaxClock_mhz) {
      return usage(fmt::format("clocks_mhz: {} MHz; allowed: 1 to {}", clock, jobs::kMaxClock_mhz));
    }
  }
  if (request.instructions.size() > kMaxInstructions) {
    return usage(fmt::format("instructions: {} of them; allowed: {}", request.instructions.size(), kMaxInstructions));
  }
  for (const std::string& instruction : request.instructions) {
    if (Status named = check_text("instructions", instruction, 64); !named) return named;
  }
  return Ok{};
}

}  // namespace

Status check_profile_name(const std::string& name) {
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '+' || c == '-';
  };
  if (!name.empty() && name.size() <= 128 && name[0] != '.' && std::ranges::all_of(name, allowed)) return Ok{};
  return usage(fmt::format("profile name '{}'; allowed: 1 to 128 of letters, digits and . _ + -, no dot first",
                           valid_utf8(name.substr(0, 140))));
}

Status check_tier(const jobs::Tier& tier) {
  for (const auto& [name, value, least, most] :
       {std::tuple{"least_rate", tier.least_rate, 0.0, 1.0}, {"priority", tier.priority, 1e-3, 1e3}}) {
    if (value && !(*value >= least && *value <= most)) {
      return usage(fmt::format("{}: {}; allowed: {} to {}", name, *value, least, most));
    }
  }
  return check_text("domain", tier.domain, kMaxJobText);
}

Result<jobs::JobRegistered> decide_job(const jobs::RegisterJob& request, int max_ranks) {
  const jobs::Degrees& d = request.degrees;
  for (const auto& [name, value] : {std::pair{"dp", d.dp}, {"pp", d.pp}, {"tp", d.tp}}) {
    if (value < 1 || value > max_ranks) {
      return usage(fmt::format("{} degree: {}; allowed: 1 to {}", name, value, max_ranks));
    }
  }
  const double product = static_cast<double>(d.dp) * d.pp * d.tp;
  if (product > max_ranks) {
    return Error{ErrorCode::too_large,
                 fmt::format("degrees: dp {} times pp {} times tp {} is {} ranks; allowed: 1 to {}", d.dp, d.pp, d.tp,
                             product, max_ranks)};
  }
  if (request.world_size != 0 && request.world_size != d.world_size()) {
    return usage(fmt::format("world_size: {}; dp {} times pp {} times tp {} is {}", request.world_size, d.dp, d.pp,
                             d.tp, d.world_size()));
  }
  if (Status named = check_job_name("name", request.name); !named) return named.error();
  if (request.facts.size() > kMaxFacts) {
    return usage(fmt::format("facts: {} of them; allowed: {}", request.facts.size(), kMaxFacts));
  }
  for (const auto& [key, value] : request.facts) {
    if (Status fits = check_fact(key, value); !fits) return fits.error();
  }
  if (Status labeled = jobs::check_labels(request.labels); !labeled) return labeled.error();
  for (const auto& [pipeline, profile] : request.profile_of) {
    if (Status fits = check_coordinate("pipeline", pipeline, d.dp); !fits) return fits.error();
  }
  if (request.profile_online && request.profile.empty() && !request.shape) {
    return usage("profile_online needs the pipeline: its schedule and microbatches");
  }
  for (const Status& status :
       {check_tier(request.tier), check_budget("profiling_slowdown_pct", request.profiling_slowdown_pct),
        check_budget("profiling_worst_slowdown_pct", request.profiling_worst_slowdown_pct),
        check_latency("switch_latency_s", request.switch_latency)}) {
    if (!status) return status.error();
  }
  return jobs::JobRegistered{request.name,
                             d,
                             request.profile_online,
                             request.plain_profiling,
                             request.shape,
                             request.facts,
                             request.detect_stragglers,
                             request.profiling_slowdown_pct,
                             request.profiling_worst_slowdown_pct,
                             number_of(request.switch_latency),
                             request.labels,
                             request.tier,
                             request.tier_bounded,
                             request.by};
}

namespace {

std::string text_of_holder(const jobs::Rank& rank) {
  return fmt::format("{}{}", rank.epoch, rank.host.empty() ? "" : " on host " + rank.host);
}

}  // namespace

Status check_holder(const jobs::Job& job, int rank, std::int64_t epoch) {
  if (epoch < 0 || epoch > kMostEpoch) { return usage(fmt::format("epoch: {}; allowed: 0 to {}", epoch, kMostEpoch)); }
  const jobs::Rank& known = *job.ranks[rank];
  if (epoch == 0 || epoch >= known.epoch || known.is_held_by(epoch)) return Ok{};
  return Error{ErrorCode::conflict, fmt::format("job {}: a later process holds rank {}: epoch {}; this one's is {}",
                                                job.id, rank, text_of_holder(known), epoch)};
}

namespace {

Status check_rank(const jobs::Degrees& d, const jobs::RegisterRank& request) {
  for (const Status& status :
       {check_coordinate("rank", request.rank, d.world_size()), check_coordinate("dp_rank", request.dp_rank, d.dp),
        check_coordinate("pp_rank", request.pp_rank, d.pp), check_coordinate("tp_rank", request.tp_rank, d.tp),
        check_text("accelerator", request.accelerator, kMaxJobText), check_text("gpu", request.gpu, kMaxJobText),
        check_text("host", request.host, kMaxJobText), check_latency("transfer_latency_s", request.transfer_latency),
        check_latency("switch_latency_s", request.switch_latency), check_power(request.blocking_power),
        check_lists(request), check_control(request)}) {
    if (!status) return status;
  }
  return Ok{};
}

Result<jobs::RankRegistered> event_of(const jobs::RegisterRank& request) {
  jobs::RankRegistered event{request.rank,
                             request.dp_rank,
                             request.pp_rank,
                             request.tp_rank,
                             request.clocks_mhz,
                             request.accelerator,
                             request.host,
                             number_of(request.transfer_latency),
                             number_of(request.switch_latency),
                             request.instructions,
                             request.epoch,
                             request.control == "clocks" ? "" : request.control,
                             request.control == "clocks" ? "" : request.control_reason,
                             std::nullopt,
                             request.gpu,
                             request.keeps_budgets,
                             request.paces};
  std::ranges::sort(event.clocks_mhz, std::greater{});
  const auto repeated = std::ranges::adjacent_find(event.clocks_mhz);
  if (repeated != event.clocks_mhz.end()) return usage(fmt::format("clocks_mhz: {} MHz twice", *repeated));
  return event;
}

/// True if the registration could be of the same process: an unknown list equals every list.
bool describes_same(const jobs::Job& job, const jobs::Rank& known, const jobs::RankRegistered& now) {
  const std::vector<std::string>& instructions = job.instruction_sets[known.instruction_set];
  const bool same_instructions = instructions.empty() || now.instructions.empty() || instructions == now.instructions;
  const std::vector<int>& clocks = job.clock_sets[known.clock_set];
  const bool same_clocks = clocks.empty() || now.clocks_mhz.empty() || clocks == now.clocks_mhz;
  return same_clocks && same_instructions && known.accelerator == now.accelerator && known.host == now.host;
}

/// For a rank that is registered already: a take-over, new measurements, nothing for a repeated registration, or a
/// conflict. `same_place`: at these degrees.
Result<std::optional<jobs::EventBody>> decide_known_rank(const jobs::Job& job, const jobs::RegisterRank& request,
                                                         jobs::RankRegistered event, bool same_place,
                                                         const std::optional<double>& silent_s) {
  const jobs::Rank& known = *job.ranks[request.rank];
  const bool holds = known.is_held_by(request.epoch);
  const bool same = same_place && describes_same(job, known, event);
  const bool later = request.epoch > known.epoch;
  // A process without an epoch and with the same registration may be the known process.
  const bool takes_over = later || request.replaces || (silent_s && (request.epoch != 0 || !same));
  if (!holds && takes_over && same_place) {
    if (!later) {
      event.process = request.epoch;
      event.epoch = known.epoch + 1;
    }
    return std::optional<jobs::EventBody>(std::move(event));
  }
  const char* const how =
      "a process takes it over with a greater epoch, with \"replaces\": true, or once the other "
      "one has been silent for a minute";
  if (request.epoch != 0 && !holds) {
    return Error{ErrorCode::conflict, fmt::format("job {}: a later process has registered rank {}: epoch {}; this "
                                                  "one's is {}; {}",
                                                  job.id, request.rank, text_of_holder(known), request.epoch, how)};
  }
  if (same) {
    return decide_measured(
        job, known,
        {request.rank, event.switch_latency_s, number_of(request.blocking_power), event.instructions, event.clocks_mhz,
         request.control.empty() ? std::nullopt : std::optional(request.control), request.control_reason});
  }
  return Error{ErrorCode::conflict,
               fmt::format("job {}: rank {} is registered already, with other data; {}", job.id, request.rank, how)};
}

}  // namespace

Result<std::optional<jobs::EventBody>> decide_rank(const jobs::Job& job, const jobs::RegisterRank& request,
                                                   std::optional<double> silent_s) {
  if (Status checked = check_rank(job.spec.degrees, request); !checked) return checked.error();
  if (!job.live()) return Error{ErrorCode::conflict, fmt::format("job {} is {}", job.id, name_of(job.state))};
  auto event = event_of(request);
  if (!event) return event.error();
  // A process that takes over gets the next epoch.
  constexpr std::int64_t most_epoch = kMostEpoch - (std::int64_t{1} << 20);
  if (request.epoch < 0 || request.epoch > most_epoch) {
    return usage(fmt::format("epoch: {}; allowed: 0 to {}", request.epoch, most_epoch));
  }
  const int there = job.rank_at[job.coordinate(request.dp_rank, request.pp_rank, request.tp_rank)];
  if (job.ranks[request.rank]) {
    return decide_known_rank(job, request, *std::move(event), there == request.rank, silent_s);
  }
  if (there >= 0) {
    return Error{ErrorCode::conflict, fmt::format("job {}: dp {}, pp {}, tp {} is rank {} already", job.id,
                                                  request.dp_rank, request.pp_rank, request.tp_rank, there)};
  }
  return std::optional<jobs::EventBody>(*std::move(event));
}

}  // namespace perseus::live
