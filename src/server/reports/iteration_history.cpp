#include "server/reports/iteration_history.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "server/jobs/job_shapes.h"
#include "server/savings/job_savings.h"

namespace perseus::reports {
namespace {

/// What an iteration adds to the sum of all jobs.
store::HistoryFigures compared(store::HistoryFigures figures) {
  figures.first_version = figures.last_version = 0;
  if (figures.energy_iterations > 0 && figures.planned_iterations > 0) return figures;
  figures.energy_iterations = figures.planned_iterations = 0;
  figures.energy_j = figures.planned_s = figures.planned_j = 0;
  return figures;
}

}  // namespace

void IterationHistory::add(const live::LiveJob& live, const std::vector<savings::WholeIteration>& measured) {
  if (measured.empty()) return;
  store::HistoryFigures sum, sum_of_all;
  std::map<std::pair<std::int64_t, int>, std::optional<jobs::JobView::PerIteration>> costs;  // by version and shape
  for (const savings::WholeIteration& one : measured) {
    store::HistoryFigures figures;
    figures.iterations = 1;
    figures.time_s = figures.least_s = figures.most_s = one.time_s;
    figures.straggler_iterations = one.straggles ? 1 : 0;
    if (one.energy_j > 0) {
      figures.energy_iterations = 1;
      figures.energy_j = one.energy_j;
    }
    const jobs::PlanDeployed* const plan = one.version > 0 ? savings::plan_of_version(live.job, one.version) : nullptr;
    if (plan != nullptr) {
      figures.first_version = figures.last_version = one.version;
      const auto [known, is_new] = costs.try_emplace({one.version, one.shape});
      auto& cost = known->second;
      const auto of_shape = is_new ? jobs::plan_for(*plan, one.shape) : std::nullopt;
      if (of_shape) {
        cost = savings::cost_under(*of_shape, live.job, live.frontiers.all(), savings::CountedRanks::as_they_are);
      }
      if (cost) {
        figures.planned_iterations = 1;
        figures.planned_s = cost->time.value();
        figures.planned_j = cost->energy.value();
      }
    }
    sum.add(figures);
    sum_of_all.add(compared(figures));
  }
  minutes_.add(live.job.id, sum);
  minutes_.add(std::string(store::kAllJobs), sum_of_all);
}

void IterationHistory::history(const savings::HistoryQuery& query, work::Done<savings::HistoryView> done) {
  if (query.job == store::kAllJobs) return history_of_all(query, done);
  access_.show<Ok>(
      query.job, [](const live::LiveJob& /*live*/) -> Result<Ok> { return Ok{}; },
      [this, query, done = std::move(done)](const Result<Ok>& found) {
        if (!found) return done(found.error());
        read(query, done);
      });
}

void IterationHistory::history_of_all(const savings::HistoryQuery& query,
                                      const work::Done<savings::HistoryView>& done) {
  const double now_s = clock_.now_s();
  while (!views_.empty() && now_s - views_.front().at_s >= kAllJobsAge_s) views_.pop_front();
  const auto known = std::ranges::find(views_, query, &Kept::query);
  if (known != views_.end()) return done(known->view);
  read(query, [this, query, done, now_s](const Result<savings::HistoryView>& view) {
    if (view) {
      if (views_.size() == kMostViews) views_.pop_front();
      views_.push_back({query, now_s, *view});
    }
    done(view);
  });
}

void IterationHistory::read(const savings::HistoryQuery& query, work::Done<savings::HistoryView> done) {
  store_.read<std::vector<store::HistoryRow>>(
      [query](store::Store& store) { return store.history(query.job, query.from_s, query.to_s + query.step_s); },
      [this, query, done = std::move(done)](Result<std::vector<store::HistoryRow>> rows) {
        if (!rows) return done(rows.error());
        done(savings::history_view(query, minutes_.with_own(*std::move(rows), query.job)));
      });
}

}  // namespace perseus::reports
