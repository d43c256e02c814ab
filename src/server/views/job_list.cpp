#include "server/views/job_list.h"

#include "server/jobs/job.h"
#include "server/jobs/view_json.h"

namespace perseus::views {

std::vector<std::string_view> listed_states() {
  std::vector<std::string_view> states;
  for (std::size_t state = 1; state < jobs::kNumJobStates; ++state)
    states.push_back(jobs::name_of(static_cast<jobs::JobState>(state)));
  states.push_back(jobs::kSilentState);
  states.push_back(kDamagedState);
  return states;
}

bool JobList::put(const jobs::JobListEntry& entry, double now_s) {
  const auto& [header, summary] = entry;
  std::string text = jobs::job_list_entry_json(entry);
  const auto known = by_job_.find(header.job);
  if (known != by_job_.end()) {
    if (known->second->second.text == text) {
      known->second->second.made_s = now_s;
      return false;
    }
    erase(known->second);
  }
  const bool is_live =
      header.state != jobs::name_of(jobs::JobState::finished) && header.state != jobs::name_of(jobs::JobState::expired);
  const Row made{header.state, header.name, summary.owner, std::move(text),
                 now_s,        is_live,     summary.ranks, summary.labels};
  count(made, 1);
  by_job_.emplace(header.job, rows_.insert_or_assign({header.created_s, header.job}, made).first);
  ++revision_;
  if (keeps_changes_) changed_[header.job] = summary.owner;
  return true;
}

void JobList::remove(const std::string& job) {
  const auto known = by_job_.find(job);
  if (known == by_job_.end()) return;
  if (keeps_changes_) changed_[job] = known->second->second.owner;
  erase(known->second);
  ++revision_;
}

void JobList::erase(Rows::iterator row) {
  count(row->second, -1);
  by_job_.erase(row->first.job);
  rows_.erase(row);
}

void JobList::count(const Row& row, int sign) {
  states_[row.state] += sign;
  if (row.is_live) live_ranks_ += std::int64_t{sign} * row.ranks;
  if (!row.is_live || !row.owner || row.owner->empty()) return;
  Owned& owned = owned_[*row.owner];
  owned.jobs += sign;
  owned.ranks += std::int64_t{sign} * row.ranks;
  if (owned.jobs == 0) owned_.erase(*row.owner);
}

JobList::Owned JobList::owned_by(const std::string& token) const {
  const auto found = owned_.find(token);
  return found == owned_.end() ? Owned{} : found->second;
}

JobList::Page JobList::page(const Query& query) const {
  Page page;
  for (auto at = query.after ? rows_.upper_bound(*query.after) : rows_.begin(); at != rows_.end(); ++at) {
    const auto& [place, row] = *at;
    if (query.wanted && !query.wanted(place, row)) continue;
    if (page.rows.size() == query.limit) {
      if (!page.rows.empty()) page.next = *page.rows.back().first;
      break;
    }
    page.rows.emplace_back(&place, &row);
  }
  return page;
}

const JobList::Row* JobList::find(const std::string& job) const {
  const auto known = by_job_.find(job);
  return known == by_job_.end() ? nullptr : &known->second->second;
}

void JobList::keep_changes(bool keep) {
  keeps_changes_ = keep;
  if (!keep) changed_.clear();
}

std::vector<JobList::Change> JobList::take_changes() {
  std::vector<Change> changes;
  for (auto& [job, owner] : changed_) {
    const Row* const row = find(job);
    changes.push_back({job, owner, row == nullptr ? std::nullopt : std::optional(row->text)});
  }
  changed_.clear();
  return changes;
}

std::string format_cursor(const JobList::Place& place) { return ListCursor{place.created_s, {place.job}}.text(); }

std::optional<JobList::Place> parse_cursor(std::string_view text) {
  auto cursor = ListCursor::parse(text, 1);
  if (!cursor) return std::nullopt;
  return JobList::Place{cursor->time_s, std::move(cursor->names[0])};
}

}  // namespace perseus::views
