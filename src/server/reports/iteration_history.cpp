#include "server/reports/iteration_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "server/jobs/job_shapes.h"
#include "server/savings/job_savings.h"

namespace perseus::reports {
namespace {

constexpr double kRetryWrite_s = 10;

std::int64_t minute_of(double now_s) {
  return static_cast<std::int64_t>(std::floor(now_s / store::kMinute_s)) * store::kMinute_s;
}

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
  const std::int64_t start_s = minute_of(clock_.now_s());
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
  add(live.job.id, start_s, sum);
  add(std::string(store::kAllJobs), start_s, sum_of_all);
}

void IterationHistory::add(const std::string& job, std::int64_t start_s, const store::HistoryFigures& figures) {
  const auto [at, is_new] = minutes_of_[job].try_emplace(start_s);
  at->second.add(figures);
  if (!is_new) return;
  ++size_;
  forget_oldest();
  if (!writing_ && !alarm_.at()) alarm_.set(static_cast<double>(start_s + store::kMinute_s));
}

void IterationHistory::forget_oldest() {
  if (size_ <= kMostKept) return;
  auto oldest = std::numeric_limits<std::int64_t>::max();
  for (const auto& [job, minutes] : minutes_of_) oldest = std::min(oldest, minutes.begin()->first);
  for (auto of = minutes_of_.begin(); of != minutes_of_.end();) {
    size_ -= of->second.erase(oldest);
    of = of->second.empty() ? minutes_of_.erase(of) : std::next(of);
  }
}

std::vector<store::HistoryRow> IterationHistory::rows_before(std::int64_t start_s) const {
  std::vector<store::HistoryRow> rows;
  for (const auto& [job, minutes] : minutes_of_) {
    for (auto at = minutes.begin(); at != minutes.end() && at->first < start_s; ++at) {
      if (rows.size() == kRowsAtOnce) return rows;
      rows.push_back({job, store::kMinute_s, at->first, source_, at->second});
    }
  }
  return rows;
}

void IterationHistory::write() {
  const std::int64_t before_s = keepers_.empty() ? minute_of(clock_.now_s()) : std::numeric_limits<std::int64_t>::max();
  std::vector<store::HistoryRow> rows = rows_before(before_s);
  if (rows.empty()) {
    for (work::Done<Ok>& keeper : std::exchange(keepers_, {})) keeper(Ok{});
    alarm_.set(minutes_of_.empty() ? std::nullopt : std::optional<double>(before_s + store::kMinute_s));
    return;
  }
  writing_ = true;
  alarm_.set(std::nullopt);
  store_.write(&store::Store::write_history, rows, [this, rows](const Result<Ok>& done) { written(rows, done); });
}

void IterationHistory::written(const std::vector<store::HistoryRow>& rows, const Result<Ok>& done) {
  writing_ = false;
  if (!done && done.error().code == ErrorCode::unavailable) {
    for (work::Done<Ok>& keeper : std::exchange(keepers_, {})) keeper(done.error());
    alarm_.set(clock_.now_s() + kRetryWrite_s);
  } else {
    // A row that the database rejects would be rejected again.
    for (const store::HistoryRow& row : rows) forget(row);
    write();
  }
}

void IterationHistory::forget(const store::HistoryRow& row) {
  const auto of = minutes_of_.find(row.job);
  if (of == minutes_of_.end()) return;
  // A minute that an orderly stop writes may still get iterations.
  const auto at = of->second.find(row.start_s);
  if (at == of->second.end() || !(at->second == row.figures)) return;
  of->second.erase(at);
  --size_;
  if (of->second.empty()) minutes_of_.erase(of);
}

void IterationHistory::keep(work::Done<Ok> done) {
  keepers_.push_back(std::move(done));
  if (!writing_) write();
}

std::vector<store::HistoryRow> IterationHistory::with_own(std::vector<store::HistoryRow> rows,
                                                          const savings::HistoryQuery& query) const {
  const auto of = minutes_of_.find(query.job);
  if (of == minutes_of_.end()) return rows;
  std::erase_if(rows, [&](const store::HistoryRow& row) {
    return row.source == source_ && row.step_s == store::kMinute_s && of->second.contains(row.start_s);
  });
  for (const auto& [start_s, figures] : of->second) {
    rows.push_back({query.job, store::kMinute_s, start_s, source_, figures});
  }
  return rows;
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
        done(savings::history_view(query, with_own(*std::move(rows), query)));
      });
}

}  // namespace perseus::reports
