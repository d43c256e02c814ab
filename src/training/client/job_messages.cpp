#include "training/client/job_messages.h"

#include <fmt/format.h>

#include <utility>

#include "base/count_text.h"
#include "io/http/url.h"

namespace perseus::client {
namespace {

/// A server's reason may begin with the words that the message already contains.
std::string_view without_maximum_clock(std::string_view reason) {
  constexpr std::string_view maximum_clock = "maximum clock: ";
  if (reason.starts_with(maximum_clock)) reason.remove_prefix(maximum_clock.size());
  return reason;
}

std::string message_of(const ClockPlan& plan, bool sets_clocks) {
  const bool would = !sets_clocks || plan.only_possible;
  std::string saving;
  if (plan.saving_pct) {
    const std::string stddev = plan.saving_stddev_pct ? fmt::format(" (+- {:.1f} %)", *plan.saving_stddev_pct) : "";
    saving = would ? fmt::format("would save {:.1f} %{} of the energy if clocks were set (estimated)", *plan.saving_pct,
                                 stddev)
                   : fmt::format("{:.1f} %{} less energy (estimated)", *plan.saving_pct, stddev);
  }
  std::string text = fmt::format("{:.4g} s per iteration", plan.iteration_time_s);
  if (plan.maximum_clock_time_s > 0) text += fmt::format(" ({:.4g} s at maximum clock)", plan.maximum_clock_time_s);
  if (!saving.empty()) text = would ? fmt::format("{}, at {}", saving, text) : fmt::format("{}, {}", text, saving);
  if (!plan.slower_because.empty()) {
    text += fmt::format("; slower because {}", plan.slower_because);
  } else if (!plan.reason.empty()) {
    text += fmt::format("; {}", plan.reason);
  }
  return text;
}

}  // namespace

std::string start_message(std::string_view job, const ClientOptions& options, const RankFacts& facts,
                          const RankGpu& gpu) {
  const std::string name = options.job_name.empty() ? "" : fmt::format(" ({})", options.job_name);
  const std::string schedule = !options.action_table.empty() ? "an action table"
                               : options.schedule.empty()    ? "the server's schedule"
                                                             : options.schedule;
  const std::string microbatches =
      options.microbatches > 0 ? " with " + count_text(options.microbatches, "microbatch") : "";
  const int ranks = options.world_size();
  const std::string clocks =
      !gpu.no_control.empty() ? fmt::format("sets no clock: {}", gpu.no_control)
      : facts.clocks_mhz.empty()
          ? "knows no clocks"
          : fmt::format("sets clocks from {} to {} MHz", facts.clocks_mhz.back(), facts.clocks_mhz.front());
  return fmt::format(
      "job {}{} at {}: {}, {}{}, {}; rank {} on {}, {}: {}", job, name, http::without_user(options.server),
      count_text(ranks, "rank"), schedule, microbatches,
      options.profile.empty() ? "profiled while it trains" : fmt::format("profile '{}'", options.profile), options.rank,
      facts.host, gpu.name.empty() ? "no GPU" : gpu.name, clocks);
}

News news_of(ClockPlan::Kind kind) {
  if (kind == ClockPlan::Kind::plan) return News::plan;
  return kind == ClockPlan::Kind::profiling_window ? News::profiling : News::maximum_clock;
}

std::optional<std::string> PlanMessages::arrived(std::string_view job, const ClockPlan& plan, bool sets_clocks) {
  std::string text;
  switch (plan.kind) {
    case ClockPlan::Kind::maximum_clock:
      if (plan.modeled && plan.saving_pct) {
        if (every_change_) text = fmt::format("job {}: {}", job, without_maximum_clock(plan.reason));
      } else if (!plan.reason.empty()) {
        text = fmt::format("{}, no plan for job {}: {}", sets_clocks ? "the highest clock" : "no clock is set", job,
                           without_maximum_clock(plan.reason));
      }
      break;
    case ClockPlan::Kind::profiling_window:
      if (every_change_) {
        text = fmt::format("job {} is being {}", job,
                           plan.keeps_clocks ? "measured at the clocks that its GPUs have: none is set"
                                             : "profiled: clocks vary for some iterations");
      }
      break;
    case ClockPlan::Kind::plan:
      if (every_change_) text = fmt::format("job {}: plan {}: {}", job, plan.version, message_of(plan, sets_clocks));
      break;
  }
  if (text.empty() || std::exchange(last_, text) == text) return std::nullopt;
  return text;
}

}  // namespace perseus::client
