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

constexpr double kMostClockDifference_s = 60;  // between servers

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
  if (events.empty()) return;
  Seen& seen = seen_[job];
  const std::int64_t first = events.front().sequence;
  if (first == 1) seen.past_read = true;
  if (first > seen.to + 1 && first > 1) seen.past_read = false;  // another server's events lie between
  seen.to = std::max(seen.to, events.back().sequence);
}

void RecentEvents::job_removed(const store::JobIndexRow& gone) {
  seen_.erase(gone.job);
  const auto by = removed_by_.extract(gone.job);
  add({gone.job, gone.last_sequence + 1, std::string(jobs::kJobRemoved), clock_.now_s(),
       "the job was removed with its log", by.empty() ? "" : by.mapped()});
}

std::vector<RecentEvents::Wanted> RecentEvents::behind() const {
  std::vector<const store::JobIndexRow*> rows;
  for (const auto& [id, row] : jobs_.index()) {
    if (row.damaged || (read_s_ && row.updated_s < *read_s_ - kMostClockDifference_s)) continue;
    const auto seen = seen_.find(id);
    const bool known = seen != seen_.end() && seen->second.past_read && seen->second.to >= row.last_sequence;
    if (!known) rows.push_back(&row);
  }
  const std::size_t most = std::min(rows.size(), kJobsRead);
  std::ranges::partial_sort(rows, rows.begin() + static_cast<std::ptrdiff_t>(most), std::greater<>(),
                            [](const store::JobIndexRow* row) { return row->updated_s; });
  rows.resize(most);
  std::vector<Wanted> wanted;
  for (const store::JobIndexRow* row : rows) {
    const auto seen = seen_.find(row->job);
    const bool past_read = seen != seen_.end() && seen->second.past_read;
    wanted.push_back({row->job, std::max(row->last_sequence - kEventsRead, past_read ? seen->second.to : 0)});
  }
  return wanted;
}

void RecentEvents::page(Query query, work::Done<Page> done) {
  const double now_s = clock_.now_s();
  const bool looks = !query.after && (!read_s_ || now_s - *read_s_ >= kBetweenReads_s);
  std::vector<Wanted> wanted = looks ? behind() : std::vector<Wanted>{};
  if (wanted.empty()) {
    if (looks) read_s_ = now_s;
    return done(made(query));
  }
  const auto read = [wanted = std::move(wanted)](store::Store& store) -> Result<Read> {
    Read found;
    for (const Wanted& one : wanted) {
      const auto log = store.read(one.job, one.after);
      if (!log && log.error().code == ErrorCode::internal) {  // a damaged log does not stop the others
        found.to.emplace_back(one.job, one.after + kEventsRead);
        continue;
      }
      if (!log) return log.error();
      for (const store::StoredEvent& item : *log) {
        const jobs::Event event = jobs::event_in_log(item.body);
        if (is_notable(kind_of(event))) found.events.push_back(job_event(one.job, item.sequence, event));
      }
      found.to.emplace_back(one.job, log->empty() ? one.after : log->back().sequence);
    }
    return found;
  };
  store_.read<Read>(read, [this, query = std::move(query), done = std::move(done), now_s](Result<Read> found) {
    if (!found) return done(found.error());
    read_s_ = now_s;
    for (jobs::JobEvent& event : found->events) add(std::move(event));
    for (const auto& [job, to] : found->to) {
      Seen& seen = seen_[job];
      seen.to = std::max(seen.to, to);
      seen.past_read = true;
    }
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
