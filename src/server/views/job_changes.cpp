#include "server/views/job_changes.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_writer.h"

namespace perseus::views {
namespace {

constexpr double kRowsTogether = 0.05;  // s: events within this time form one change
constexpr double kRowsSpacing = 0.5;    // s between two changes

std::string changes_json(const std::vector<JobList::Change>& changes, const JobChanges::Sees& sees) {
  std::vector<JsonRaw> rows;
  std::vector<std::string_view> removed;
  for (const JobList::Change& change : changes) {
    if (sees && !sees(change)) continue;
    if (change.text) {
      rows.push_back({*change.text});
    } else {
      removed.emplace_back(change.job);
    }
  }
  if (rows.empty() && removed.empty()) return "";
  return json_object([&](JsonWriter& f) {
    f.always("jobs", rows);
    f.always("removed", removed);
  });
}

}  // namespace

JobChanges::Id JobChanges::add(http::Responder responder, Sees sees) {
  streams_.emplace(++last_, Stream{std::move(responder), std::move(sees)});
  return last_;
}

void JobChanges::remove(Id id) {
  streams_.erase(id);
  if (streams_.empty()) due_s_.reset();
}

void JobChanges::note(double now_s) {
  if (streams_.empty() || due_s_) return;
  due_s_ = std::max(now_s + kRowsTogether, sent_s_ + kRowsSpacing);
}

void JobChanges::send(const std::vector<JobList::Change>& changes, double now_s) {
  due_s_.reset();
  sent_s_ = now_s;
  std::shared_ptr<const std::string> for_all;
  std::vector<std::pair<http::Responder, std::shared_ptr<const std::string>>>
      events;  // a stream that is cut removes itself
  for (const auto& [id, stream] : streams_) {
    std::shared_ptr<const std::string> text = stream.sees ? nullptr : for_all;
    if (!text) {
      const std::string json = changes_json(changes, stream.sees);
      text = json.empty() ? std::make_shared<const std::string>() : http::event_text("", "jobs", json);
      if (!stream.sees) for_all = text;
    }
    if (!text->empty()) events.emplace_back(stream.responder, std::move(text));
  }
  for (const auto& [responder, text] : events) responder.event(text);
}

}  // namespace perseus::views
