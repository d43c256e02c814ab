#include "server/jobs/event_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "base/count_text.h"
#include "io/report/format.h"
#include "server/jobs/job.h"
#include "server/jobs/pipeline_input.h"

namespace perseus::jobs {

std::string text_of(const StragglerTarget& target) {
  if (target.pipeline) return fmt::format("pipeline {}", *target.pipeline);
  if (target.rank) return fmt::format("rank {}", *target.rank);
  return fmt::format("accelerator {}", target.accelerator);
}

namespace {

struct PolicyText {
  std::string operator()(const PowerCap& cap) const {
    const double w = cap.average.value();
    return w >= 1e4 ? fmt::format("power cap {:.4g} kW", w / 1000) : fmt::format("power cap {:.4g} W", w);
  }
  std::string operator()(const Pin& pin) const {
    if (pin.time) return fmt::format("pinned to {:.6g} s", pin.time->value());
    return fmt::format("pinned to point {}", pin.point.value_or(0));
  }
  std::string operator()(const MaxSlowdown& s) const {
    std::string slower = fmt::format("up to {:.4g} % slower than maximum clock", 100 * (s.slowdown - 1));
    if (s.signal.empty()) return slower;
    return fmt::format("{} while the signal is above {:.6g}{}{}", slower, s.threshold.value_or(0),
                       s.unit.empty() ? "" : " ", s.unit);
  }
};

/// "rank 3", "ranks 3, 5", "ranks 0, 1, 2, 3, 4 and 12 more"
std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t most = 5;
  const auto named = std::span(ranks).first(std::min(ranks.size(), most));
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(named, ", "),
                     ranks.size() > most ? fmt::format(" and {} more", ranks.size() - most) : "");
}

struct EventAuthor {
  template <class E>
  std::string operator()(const E& e) const {
    if constexpr (requires { e.by; }) {
      return e.by.empty() && detected(e) ? std::string(kByServer) : e.by;
    } else if constexpr (std::is_same_v<E, UnknownEvent>) {
      return "";
    } else if constexpr (requires { e.rank; }) {
      return fmt::format("rank {}", e.rank);
    } else {
      return std::string(kByServer);
    }
  }

 private:
  static bool detected(const StragglerNoticed& e) { return e.detected; }
  template <class E>
  static bool detected(const E& /*e*/) {
    return false;
  }
};

struct EventText {
  std::string operator()(const JobRegistered& e) const {
    return fmt::format("job of {} x {} x {} ranks (dp x pp x tp) registered", e.degrees.dp, e.degrees.pp, e.degrees.tp);
  }
  std::string operator()(const RankRegistered& e) const {
    return fmt::format("rank {} registered (pipeline {}, stage rank {}){}", e.rank, e.dp_rank, e.pp_rank,
                       e.control.empty() ? "" : "; " + text_of_control(e.rank, e.control, e.control_reason));
  }
  std::string operator()(const RankMeasured& e) const {
    if (e.control && *e.control == "clocks") return fmt::format("rank {} can set its clock now", e.rank);
    if (e.control) return text_of_control(e.rank, *e.control, e.control_reason.value_or(""));
    return fmt::format("rank {} updated what it measured of itself", e.rank);
  }
  std::string operator()(const PlanDropped& e) const { return text_of(e); }
  std::string operator()(const EnergyMeasured& e) const {
    return fmt::format("an iteration {} takes {} and {:.6g} s: means of {}, measured",
                       e.version == 0 ? std::string("at the highest clock") : fmt::format("under plan {}", e.version),
                       report::text_of(Joules(e.energy_j)), e.time_s, count_text(e.iterations, "iteration"));
  }
  std::string operator()(const ReportsKept& e) const {
    std::size_t iterations = 0;
    for (const ReportsKept::Run& run : e.runs) iterations += run.energies_j.size();
    if (iterations == 0) return "the ranks report which plan their iterations followed";
    return fmt::format("the server stopped and stored reports of {} not counted yet",
                       count_text(iterations, "iteration"));
  }
  std::string operator()(const ProfileKnown& e) const {
    return fmt::format("profile known: {}{}{}{}{}", e.source, e.text.empty() ? "" : ": ", e.text,
                       e.switch_latency_s ? fmt::format("; switch latency {:.2g} s", *e.switch_latency_s) : "",
                       e.doubts.empty() ? "" : fmt::format("; DOUBTFUL: {}", fmt::join(e.doubts, "; ")));
  }
  std::string operator()(const ProfileOnTrial& e) const {
    return fmt::format(
        "the profile that job {} learned is on trial: it is compared with iterations at the highest clock",
        e.learned_by);
  }
  std::string operator()(const TrialEnded& e) const {
    return fmt::format("the profile of an earlier run is {}: {}", e.agreed ? "confirmed" : "doubted", e.text);
  }
  std::string operator()(const ProfilingStarted& e) const {
    return e.keeps_clocks ? "measuring started, at the clocks that the GPUs have" : "profiling started";
  }
  std::string operator()(const SavingModeled& e) const { return e.text; }
  std::string operator()(const WindowHandedOut& e) const {
    return fmt::format("profiling window {} handed out: {}{}{}", e.number, count_text(e.iterations, "iteration"),
                       e.overdue.empty() ? "" : "; ", e.overdue);
  }
  std::string operator()(const ResultReported& e) const {
    if (!e.missed.empty()) {
      return fmt::format("rank {} measured nothing in profiling window {}: {}", e.rank, e.window, e.missed);
    }
    return fmt::format("rank {} reported profiling window {}", e.rank, e.window);
  }
  std::string operator()(const ProfilingFailed& e) const { return fmt::format("profiling failed: {}", e.why); }
  std::string operator()(const CharacterizationStarted&) const { return "characterization started"; }
  std::string operator()(const Characterized& e) const {
    return fmt::format("{}frontier of {}, from {:.4g} s to {:.4g} s", is_quick_frontier_key(e.input) ? "quick " : "",
                       count_text(e.points, "point"), e.t_min_s, e.t_star_s);
  }
  std::string operator()(const CharacterizationFailed& e) const {
    return fmt::format("characterization failed: {}", e.why);
  }
  std::string operator()(const RefinementEnded& e) const {
    return fmt::format("the quick frontier is kept: {}", e.why);
  }
  std::string operator()(const StragglerNoticed& e) const {
    if (e.degree == 1) return fmt::format("{} will be back to normal", text_of(e.target));
    return fmt::format("{} {} {:.4g} times slower{}", text_of(e.target), e.detected ? "was seen" : "will be", e.degree,
                       e.target.pipeline ? "" : fmt::format(" (pipeline {})", e.pipeline));
  }
  std::string operator()(const StragglerTookEffect& e) const {
    return fmt::format("straggler notice {} is in force", e.id);
  }
  std::string operator()(const StragglerWithdrawn& e) const {
    return fmt::format("straggler notice {} withdrawn", e.id);
  }
  std::string operator()(const PolicySet& e) const { return text_of(e.policy) + " set"; }
  std::string operator()(const PolicyCleared& e) const { return fmt::format("policy {} cleared", e.policy); }
  std::string operator()(const TierSet& e) const { return text_of(e.tier) + " set"; }
  std::string operator()(const PlanDeployed& e) const {
    const std::string when = e.from_iteration > 0 ? fmt::format("from iteration {}", e.from_iteration) : "at once";
    return fmt::format("plan {} deployed {}: {}", e.version, when, e.reason);
  }
  std::string operator()(const IterationsCounted& e) const {
    return fmt::format("{} saved {}, {}", count_text(e.iterations, "iteration"), report::text_of(Joules(e.saved_j)),
                       e.measured ? "measured" : "estimated");
  }
  std::string operator()(const PowerGranted& e) const {
    if (!e.granted_w) {
      const char* const released = "no power limit of the site applies any more";
      return e.correction == 1 ? released : fmt::format("{}; it draws {:.3g} times as planned", released, e.correction);
    }
    const std::string before = e.counted_w > *e.granted_w * 1.0001 ? fmt::format(", at once: its ranks may draw {}",
                                                                                 report::text_of(Watts(e.counted_w)))
                                                                   : std::string();
    const std::string corrected = e.correction == 1 ? "" : fmt::format(" (it draws {:.3g} times that)", e.correction);
    const std::string falls =
        e.ahead.empty() ? "" : fmt::format(", {} MHz at the lowest within the hour", e.ahead.back().ceiling_mhz);
    const std::string paced = e.paced_to_rate > 0 ? ", paced" : "";
    return fmt::format("the site's limits grant {}{}{}{}; at most {} MHz without a valid plan{}",
                       report::text_of(Watts(*e.granted_w)), corrected, paced, before, e.ceiling_mhz, falls);
  }
  std::string operator()(const VersionHeld& e) const {
    if (e.ranks.empty()) return fmt::format("all ranks hold plan {}", e.version);
    return fmt::format("{} ranks hold plan {}", e.ranks.size(), e.version);
  }
  std::string operator()(const ShapeSeen& e) const {
    if (!e.varies.empty()) return text_of_varying(e.varies);
    return fmt::format("steps have {}{}", count_text(e.microbatches, "microbatch"), e.prevails ? ", most of them" : "");
  }
  std::string operator()(const ShapeCompleted& e) const {
    return e.input.empty() ? fmt::format("no plan for steps of {}: {}", count_text(e.microbatches, "microbatch"), e.why)
                           : fmt::format("steps of {} are being planned", count_text(e.microbatches, "microbatch"));
  }
  std::string operator()(const UnknownEvent& e) const {
    return fmt::format("an event that this version of Perseus does not know ({})", e.kind);
  }
  std::string operator()(const JobSilent& e) const {
    if (!e.ranks.empty()) return ranks_text(e.ranks) + " stopped calling, while others call";
    return e.ended > 0 ? fmt::format("silent: no rank calls any more; the processes of {} have ended", e.ended)
                       : "silent: no rank calls any more; they may have ended, or be cut off";
  }
  std::string operator()(const JobHeard& e) const {
    return e.ranks.empty() ? "no longer silent: a rank has called"
                           : fmt::format("no longer silent: {} called", ranks_text(e.ranks));
  }
  std::string operator()(const JobSeen&) const { return "still running"; }
  std::string operator()(const JobFinished&) const { return "finished"; }
  std::string operator()(const JobExpired&) const { return "expired: no request for too long"; }
  std::string operator()(const JobRevived&) const { return "revived by a request of a rank"; }
};

}  // namespace

std::string text_of_control(int rank, const std::string& control, const std::string& reason) {
  return fmt::format("rank {} {}{}{}", rank, control == "advice" ? "runs in advice mode" : "cannot set its clock",
                     reason.empty() ? "" : ": ", reason);
}

std::string text_of_silent_ranks(const Job& job) {
  if (job.silent_ranks.empty()) return "";
  const int rank = job.silent_ranks.begin()->first;
  const std::string& host = job.ranks[rank]->host;
  const std::size_t more = job.silent_ranks.size() - 1;
  return fmt::format("rank {}{}{}{} not call, while others do", rank, host.empty() ? "" : " on ", host,
                     more == 0 ? " does" : fmt::format(" and {} more do", more));
}

std::string text_of_varying(const std::string& seen) {
  return fmt::format("no plan can fit: {}; fill batches by tokens at a fixed number of microbatches, or pad them",
                     seen);
}

std::string text_of(const PlanDropped& e) {
  const std::string times =
      e.promised_s > 0 ? fmt::format("iterations took {:.6g} s, {:.6g} s was promised", e.measured_s, e.promised_s)
                       : std::string("iterations were slower than promised");
  return fmt::format("rank {} dropped plan {}: {}{}{}", e.rank, e.version, times, e.reason.empty() ? "" : "; ",
                     e.reason);
}
std::string text_of(const Policy& policy) { return std::visit(PolicyText{}, policy); }
std::string text_of(const Tier& tier) {
  std::string parts;
  const auto add = [&parts](std::string_view what, const std::string& value) {
    parts += fmt::format("{}{} {}", parts.empty() ? " of " : ", ", what, value);
  };
  if (!tier.domain.empty()) add("domain", tier.domain);
  if (tier.least_rate) add("least rate", fmt::format("{:g}", *tier.least_rate));
  if (tier.priority) add("priority", fmt::format("{:g}", *tier.priority));
  return "tier" + (parts.empty() ? " of its team" : parts);
}
std::string author_of(const Event& event) { return std::visit(EventAuthor{}, event.body); }
JobEvent job_event(const std::string& job, std::int64_t sequence, const Event& event) {
  return {job, sequence, std::string(kind_of(event)), event.at_s, text_of(event), author_of(event)};
}
std::string text_of(const Event& event) { return std::visit(EventText{}, event.body); }

}  // namespace perseus::jobs
