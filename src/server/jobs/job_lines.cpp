#include "server/jobs/job_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "io/report/format.h"
#include "server/jobs/event_text.h"
#include "server/jobs/job_savings.h"

namespace perseus::jobs {
namespace {

std::string schedule_text(const Job& job) {
  const std::string name = job.schedule.empty() && job.spec.shape ? job.spec.shape->schedule : job.schedule;
  const int microbatches = job.schedule.empty() && job.spec.shape ? job.spec.shape->microbatches : job.microbatches;
  if (name.empty()) return "";
  return fmt::format("; {}{}", name, microbatches > 0 ? fmt::format(", {} microbatches", microbatches) : "");
}

std::string profile_text(const Job& job) {
  if (!job.profile_source.empty()) return "profile known: " + job.profile_source;
  if (job.tries_profile()) return fmt::format("tries the profile that job {} learned", job.trial->candidate.learned_by);
  return job.spec.profile_online ? "will be profiled online" : "no profile yet";
}

std::string start_text(const Job& job) {
  const Degrees& degrees = job.spec.degrees;
  const auto gpu = job.spec.facts.find("accelerator");
  return fmt::format("registered{}: {} ranks (dp {}, pp {}, tp {}){}{}; {}",
                     job.spec.name.empty() ? "" : fmt::format(" as '{}'", job.spec.name), degrees.world_size(),
                     degrees.dp, degrees.pp, degrees.tp, gpu == job.spec.facts.end() ? "" : " on " + gpu->second,
                     schedule_text(job), profile_text(job));
}

std::string points_text(const Job& job, const PlanDeployed& plan) {
  std::vector<std::string> texts;
  for (const PlanDeployed::Choice& choice : plan.choices) {
    const auto facts = job.characterized.find(choice.input);
    texts.push_back(choice.point < 0 ? "highest clocks"
                    : facts == job.characterized.end()
                        ? fmt::format("point {}", choice.point)
                        : fmt::format("point {} of {}", choice.point, facts->second.points));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// True if the plan uses a frontier that the plan before it did not use.
bool has_new_frontier(const Job& job, const PlanDeployed& plan) {
  if (job.earlier_plans.empty()) return false;
  const std::vector<PlanDeployed::Choice>& before = job.earlier_plans.back().choices;
  return std::ranges::any_of(plan.choices, [&](const PlanDeployed::Choice& choice) {
    return choice.point >= 0 && std::ranges::find(before, choice.input, &PlanDeployed::Choice::input) == before.end();
  });
}

std::string plan_text(const Job& job, const Frontiers& frontiers, const PlanDeployed& plan) {
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

std::string savings_text(const Job& job) {
  if (job.total.iterations == 0) return "no iterations under a plan were reported";
  const std::string estimated = job.estimated.iterations == 0 ? "measured"
                                : job.estimated.iterations == job.total.iterations
                                    ? "estimated"
                                    : fmt::format("{} of it estimated", report::text_of(Joules(job.estimated.saved_j)));
  return fmt::format("{} iterations saved {}, {}", job.total.iterations, report::text_of(Joules(job.total.saved_j)),
                     estimated);
}

std::string line_of(const Job& job, const Frontiers& frontiers, const Event& event) {
  if (std::holds_alternative<JobRegistered>(event.body)) return start_text(job);
  if (const auto* plan = std::get_if<PlanDeployed>(&event.body)) return plan_text(job, frontiers, *plan);
  if (std::holds_alternative<JobFinished>(event.body) || std::holds_alternative<JobExpired>(event.body)) {
    return fmt::format("{}; {}", text_of(event), savings_text(job));
  }
  constexpr std::array others{kind_of_type<ProfilingStarted>(),
                              kind_of_type<ProfilingFailed>(),
                              kind_of_type<ProfileKnown>(),
                              kind_of_type<PlanDropped>(),
                              kind_of_type<CharacterizationFailed>(),
                              kind_of_type<ShapeSeen>(),
                              kind_of_type<JobSilent>(),
                              kind_of_type<JobHeard>()};
  // The line of the start names a profile that is known from then on.
  const bool of_start = std::holds_alternative<ProfileKnown>(event.body) && event.at_s == job.created_s;
  const auto* const completed = std::get_if<ShapeCompleted>(&event.body);
  const bool logged = std::ranges::find(others, event.body.index()) != others.end() ||
                      (completed != nullptr && completed->input.empty());
  return logged && !of_start ? text_of(event) : "";
}

}  // namespace

std::string log_line(const Job& job, const Frontiers& frontiers, const Event& event) {
  const std::string line = line_of(job, frontiers, event);
  return line.empty() ? "" : fmt::format("job {}: {}", job.id, line);
}

}  // namespace perseus::jobs
