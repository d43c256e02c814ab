#include "server/views/job_list_updater.h"

#include "base/utf8.h"
#include "server/jobs/view_json.h"
#include "server/live/job_view.h"
#include "server/savings/job_savings.h"

namespace perseus::views {
namespace {

constexpr std::size_t kRowsAtOnce = 128;

}  // namespace

const JobList& JobListUpdater::list() {
  update();
  return list_;
}

void JobListUpdater::update() {
  for (const std::string& id : jobs_.index().take_changed()) refresh(id);
}

void JobListUpdater::update_if_many() {
  if (jobs_.index().changed() >= kRowsAtOnce) update();
}

void JobListUpdater::refresh(const std::string& job) {
  const auto found = jobs_.index().find(job);
  if (found == jobs_.index().end()) return list_.remove(valid_utf8(job));
  const store::JobIndexRow& row = found->second;
  const live::LiveJob* const live = jobs_.in_memory(job);
  const double now_s = clock_.now_s();
  if (row.damaged) {
    list_.put({{valid_utf8(row.job), "", std::string(kDamagedState), 0, 0}, {}}, now_s);
    return;
  }
  list_.put({{row.job, row.name, row.state, row.created_s, row.updated_s},
             live != nullptr ? live::summary_of(*live) : jobs::parse_summary(row.summary)},
            now_s);
}

jobs::JobSummary JobListUpdater::summary_of(const live::LiveJob& live) const {
  jobs::JobSummary summary = live::summary_of(live);
  const auto row = jobs_.index().find(live.job.id);
  if (row == jobs_.index().end() || !live.job.live() || !savings::awaits_frontiers(live.job, live.frontiers.all()))
    return summary;
  const jobs::JobSummary stored = jobs::parse_summary(row->second.summary);
  summary.iteration_time = stored.iteration_time;
  summary.saved_pct = stored.saved_pct;
  summary.possible_saving_pct = stored.possible_saving_pct;
  summary.possible_saving_stddev_pct = stored.possible_saving_stddev_pct;
  summary.possible_saving_modeled = stored.possible_saving_modeled;
  summary.saved = stored.saved;
  summary.estimated_saved = stored.estimated_saved;
  summary.power = stored.power;
  summary.all_max_power = stored.all_max_power;
  summary.power_measured = stored.power_measured;
  summary.planned_power = stored.planned_power;
  return summary;
}

std::optional<std::string> JobListUpdater::owner_of(const std::string& job) {
  const JobList::Row* row = list_.find(job);
  if (row == nullptr && jobs_.index().has_changed(job)) {
    refresh(job);
    row = list_.find(job);
  }
  return row == nullptr ? std::nullopt : row->owner;
}

void JobListUpdater::keep_changes(bool keep) {
  update();
  list_.keep_changes(keep);
}

std::vector<JobList::Change> JobListUpdater::take_changes() {
  update();
  return list_.take_changes();
}

}  // namespace perseus::views
