#include "server/savings/job_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/count_text.h"
#include "io/report/format.h"
#include "server/jobs/event_text.h"
#include "server/savings/job_savings.h"

namespace perseus::savings {
namespace {

std::string schedule_text(const jobs::Job& job) {
  const std::string name = job.schedule.empty() && job.spec.shape ? job.spec.shape->schedule : job.schedule;
  const int microbatches = job.schedule.empty() && job.spec.shape ? job.spec.shape->microbatches : job.microbatches;
  if (name.empty()) return "";
  return fmt::format("; {}{}", name, microbatches > 0 ? ", " + count_text(microbatches, "microbatch") : "");
}

std::string profile_text(const jobs::Job& job) {
  if (!job.profile_source.empty()) return "profile known: " + job.profile_source;
  if (job.tries_profile()) return fmt::format("tries the profile that job {} learned", job.trial->candidate.learned_by);
  return job.spec.profile_online ? "will be profiled online" : "no profile yet";
}

std::string start_text(const jobs::Job& job) {
  const jobs::Degrees& degrees = job.spec.degrees;
  const auto gpu = job.spec.facts.find("accelerator");
  return fmt::format("registered{}: {} (dp {}, pp {}, tp {}){}{}; {}",
                     job.spec.name.empty() ? "" : fmt::format(" as '{}'", job.spec.name),
                     count_text(degrees.world_size(), "rank"), degrees.dp, degrees.pp, degrees.tp,
                     gpu == job.spec.facts.end() ? "" : " on " + gpu->second, schedule_text(job), profile_text(job));
}

std::string points_text(const jobs::Job& job, const jobs::PlanDeployed& plan) {
  std::vector<std::string> texts;
  for (const jobs::PlanDeployed::Choice& choice : plan.choices) {
    const auto facts = job.characterized.find(choice.input);
    texts.push_back(choice.point < 0 ? "highest clocks"
                    : facts == job.characterized.end()
                        ? fmt::format("point {}", choice.point)
                        : fmt::format("point {} of {}", choice.point, facts->second.points));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// True if the plan uses a frontier that the plan before it did not use.
bool has_new_frontier(const jobs::Job& job, const jobs::PlanDeployed& plan) {
  if (job.earlier_plans.empty()) return false;
  const std::vector<jobs::PlanDeployed::Choice>& before = job.earlier_plans.back().choices;
  return std::ranges::any_of(plan.choices, [&](const jobs::PlanDeployed::Choice& choice) {
    return choice.point >= 0 &&
           std::ranges::find(before, choice.input, &jobs::PlanDeployed::Choice::input) == before.end();
  });
}

std::string plan_text(const jobs::Job& job, const policies::Frontiers& frontiers, const jobs::PlanDeployed& plan) {
  std::string text =
      fmt::format("plan {} from iteration {}: {}", plan.version, plan.from_iteration, points_text(job, plan));
  const bool in_force = job.plan && job.plan->version == plan.version;
  if (const auto cost = in_force ? iteration_cost(job, frontiers, CountedRanks::as_they_are) : std::nullopt) {
    text +=
        fmt::format("; est. {} and {} an iteration, plan saves {} est.", report::text_of(cost->time),
                    report::text_of(cost->energy), report::percent(100 * (1 - cost->energy / cost->all_max_energy)));
  }
  return fmt::format("{}; {}{}", text, has_new_frontier(job, plan) ? "new frontier; " : "", plan.reason);
}

std::string savings_text(const jobs::Job& job) {
  if (job.total.iterations == 0) return "no iterations under a plan were reported";
  const std::string estimated = job.estimated.iterations == 0 ? "measured"
                                : job.estimated.iterations == job.total.iterations
                                    ? "estimated"
                                    : fmt::format("{} of it estimated", report::text_of(Joules(job.estimated.saved_j)));
  return fmt::format("{} saved {}, {}", count_text(job.total.iterations, "iteration"),
                     report::text_of(Joules(job.total.saved_j)), estimated);
}

std::string line_of(const jobs::Job& job, const policies::Frontiers& frontiers, const jobs::Event& event) {
  if (std::holds_alternative<jobs::JobRegistered>(event.body)) return start_text(job);
  if (const auto* plan = std::get_if<jobs::PlanDeployed>(&event.body)) return plan_text(job, frontiers, *plan);
  if (std::holds_alternative<jobs::JobFinished>(event.body) || std::holds_alternative<jobs::JobExpired>(event.body)) {
    return fmt::format("{}; {}", jobs::text_of(event), savings_text(job));
  }
  constexpr std::array others{jobs::kind_of_type<jobs::ProfilingStarted>(),
                              jobs::kind_of_type<jobs::ProfilingFailed>(),
                              jobs::kind_of_type<jobs::ProfileKnown>(),
                              jobs::kind_of_type<jobs::PlanDropped>(),
                              jobs::kind_of_type<jobs::CharacterizationFailed>(),
                              jobs::kind_of_type<jobs::ShapeSeen>(),
                              jobs::kind_of_type<jobs::JobSilent>(),
                              jobs::kind_of_type<jobs::JobHeard>()};
  // The line of the start names a profile that is known from then on.
  const bool of_start = std::holds_alternative<jobs::ProfileKnown>(event.body) && event.at_s == job.created_s;
  const auto* const completed = std::get_if<jobs::ShapeCompleted>(&event.body);
  const bool logged = std::ranges::find(others, event.body.index()) != others.end() ||
                      (completed != nullptr && completed->input.empty());
  return logged && !of_start ? jobs::text_of(event) : "";
}

}  // namespace

std::string log_line(const jobs::Job& job, const policies::Frontiers& frontiers, const jobs::Event& event) {
  const std::string line = line_of(job, frontiers, event);
  return line.empty() ? "" : fmt::format("job {}: {}", job.id, line);
}

}  // namespace perseus::savings
