#include "server/views/recent_events.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>

#include "io/formats/number.h"
#include "server/jobs/event_text.h"

namespace perseus::views {
namespace {

constexpr std::array<std::string_view, 10> kFrequentKinds{
    "rank_registered",    "rank_measured", "window_handed_out", "result_reported", "characterization_started",
    "iterations_counted", "job_seen",      "energy_measured",   "reports_kept",    "version_held"};

}  // namespace

bool is_notable(std::string_view kind) { return std::ranges::find(kFrequentKinds, kind) == kFrequentKinds.end(); }

bool RecentEvents::Place::operator<(const Place& other) const {
  return std::tie(other.at_s, job, other.sequence) < std::tie(at_s, other.job, sequence);
}

void RecentEvents::add(jobs::JobEvent event) {
  Place place{event.at_s, event.job, event.sequence};
  events_.try_emplace(std::move(place), std::move(event));
  if (events_.size() > kMostEvents) events_.erase(std::prev(events_.end()));
}

void RecentEvents::take(const std::string& job, const std::vector<live::SequencedEvent>& events) {
  for (const live::SequencedEvent& event : events) {
    if (is_notable(kind_of(event.event))) add(job_event(job, event.sequence, event.event));
  }
}

void RecentEvents::job_removed(const store::JobIndexRow& gone) {
  const auto by = removed_by_.extract(gone.job);
  add({gone.job, gone.last_sequence + 1, std::string(jobs::kJobRemoved), clock_.now_s(),
       "the job was removed with its log", by.empty() ? "" : by.mapped()});
}

std::vector<store::JobIndexRow> RecentEvents::changed_last() const {
  std::vector<store::JobIndexRow> rows;
  for (const auto& [id, row] : jobs_.index()) {
    if (!row.damaged) rows.push_back(row);
  }
  const std::size_t most = std::min(rows.size(), kJobsRead);
  std::ranges::partial_sort(rows, rows.begin() + static_cast<std::ptrdiff_t>(most), std::greater<>(),
                            &store::JobIndexRow::updated_s);
  rows.resize(most);
  return rows;
}

void RecentEvents::page(Query query, work::Done<Page> done) {
  if (past_read_ || query.after) return done(made(query));
  const auto read = [rows = changed_last()](store::Store& store) -> Result<std::vector<jobs::JobEvent>> {
    std::vector<jobs::JobEvent> found;
    for (const store::JobIndexRow& row : rows) {
      const auto log = store.read(row.job, std::max<std::int64_t>(row.last_sequence - kEventsRead, 0));
      if (!log && log.error().code == ErrorCode::internal) continue;  // a damaged log does not stop the others
      if (!log) return log.error();
      for (const store::StoredEvent& item : *log) {
        const jobs::Event event = jobs::event_in_log(item.body);
        if (is_notable(kind_of(event))) found.push_back(job_event(row.job, item.sequence, event));
      }
    }
    return found;
  };
  store_.read<std::vector<jobs::JobEvent>>(
      read, [this, query = std::move(query), done = std::move(done)](Result<std::vector<jobs::JobEvent>> found) {
        if (!found) return done(found.error());
        past_read_ = true;
        for (jobs::JobEvent& event : *found) add(std::move(event));
        done(made(query));
      });
}

RecentEvents::Page RecentEvents::made(const Query& query) const {
  Page page;
  std::optional<Place> last;
  for (auto at = query.after ? events_.upper_bound(*query.after) : events_.begin(); at != events_.end(); ++at) {
    if (query.wanted && !query.wanted(at->second)) continue;
    if (page.events.size() == query.limit) {
      page.next = last;
      break;
    }
    page.events.push_back(at->second);
    const auto row = jobs_.index().find(at->first.job);
    if (row != jobs_.index().end()) page.events.back().name = row->second.name;
    last = at->first;
  }
  return page;
}

std::string format_event_cursor(const RecentEvents::Place& place) {
  return ListCursor{place.at_s, {std::to_string(place.sequence), place.job}}.text();
}

std::optional<RecentEvents::Place> parse_event_cursor(std::string_view text) {
  auto cursor = ListCursor::parse(text, 2);
  if (!cursor) return std::nullopt;
  const auto sequence = formats::number_in<std::int64_t>(cursor->names[0]);
  if (!sequence) return std::nullopt;
  return RecentEvents::Place{cursor->time_s, std::move(cursor->names[1]), *sequence};
}

}  // namespace perseus::views
