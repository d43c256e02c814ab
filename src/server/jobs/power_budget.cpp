#include "server/jobs/power_budget.h"

#include <algorithm>

#include "server/jobs/job.h"

namespace perseus::jobs {
namespace {

constexpr std::size_t kMostVersions = 64;

bool is_paced(const Job& job) { return job.plan && job.plan->budget && job.plan->budget->paced_iteration_s > 0; }

}  // namespace

void HeldVersions::deployed(std::int64_t version, const std::optional<PowerBudget>& budget) {
  if (!budget || (!watts_of_.empty() && watts_of_.rbegin()->first + 1 != version)) watts_of_.clear();
  if (!budget) return;
  watts_of_.emplace(version, budget->watts);
  if (watts_of_.size() > kMostVersions) watts_of_.erase(watts_of_.begin());
}

void HeldVersions::held_by_all(std::int64_t version) {
  watts_of_.erase(watts_of_.begin(), watts_of_.lower_bound(version));
}

std::optional<Watts> HeldVersions::most(std::int64_t first, std::int64_t last) const {
  if (watts_of_.empty() || first < watts_of_.begin()->first || last != watts_of_.rbegin()->first) return std::nullopt;
  double most_w = 0;
  for (auto one = watts_of_.lower_bound(first); one != watts_of_.end(); ++one) most_w = std::max(most_w, one->second);
  return Watts(most_w);
}

void HeldVersions::acts_from(double from_s, double at_s, std::optional<Watts> before) {
  if (!acts(at_s)) before = before && before_ ? std::optional(std::max(*before, *before_)) : std::nullopt;
  acts_from_s_ = std::max(from_s, acts_from_s_);
  before_ = before;
}

std::int64_t version_held_by_all(const Job& job) {
  if (job.ranks_registered < static_cast<int>(job.ranks.size())) return 0;
  std::int64_t least = job.version;
  for (const RankSlot& rank : job.ranks) least = std::min(least, rank ? rank->held : 0);
  return least;
}

void note_held(Job& job, std::int64_t version, const std::vector<int>& ranks, double at_s) {
  const std::int64_t before = version_held_by_all(job);
  const auto note = [&](RankSlot& rank) {
    if (rank) rank->held = std::max(rank->held, std::min(version, job.version));
  };
  if (ranks.empty()) std::ranges::for_each(job.ranks, note);
  for (const int rank : ranks) {
    if (rank >= 0 && rank < static_cast<int>(job.ranks.size())) note(job.ranks[rank]);
  }
  const std::int64_t held = version_held_by_all(job);
  if (held == 0) return;
  if (is_paced(job) && before < held) {
    const double iteration_s = std::max(job.plan->t_opt_s.value_or(0), job.plan->t_straggler_s.value_or(0));
    job.held.acts_from(at_s + iteration_s, at_s, before == 0 ? std::nullopt : job.held.most(before, job.version));
  }
  job.held.held_by_all(held);
}

std::optional<Watts> counted_power(const Job& job, double now_s) {
  const std::int64_t held = version_held_by_all(job);
  if (held == 0 || (is_paced(job) && !paces(job))) return std::nullopt;
  const std::optional<Watts> most = job.held.most(held, job.version);
  if (!most || job.held.acts(now_s)) return most;
  return job.held.before() ? std::optional(std::max(*most, *job.held.before())) : std::nullopt;
}

int counted_accelerators(const Job& job) {
  return job.has_reports() ? job.spec.degrees.world_size() : job.ranks_registered;
}

bool paces(const Job& job) {
  return std::ranges::all_of(job.ranks, [](const RankSlot& rank) { return !rank || rank->paces; });
}

bool keeps_budgets(const Job& job) {
  return job.uncontrolled.empty() &&
         std::ranges::all_of(job.ranks, [](const RankSlot& rank) { return !rank || rank->keeps_budgets; });
}

}  // namespace perseus::jobs
