// Calls of /v1 about events: streams, and the last events of all jobs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/jobs/describe_view.h"
#include "server/jobs/event.h"
#include "server/power/limit_changes.h"
#include "server/routes/call_input.h"

namespace perseus::routes {
namespace {

constexpr std::size_t kPageEvents = 100, kMostPageEvents = 1000;

std::vector<std::string_view> recent_event_kinds() {
  std::vector<std::string_view> kinds{jobs::kJobRemoved, power::kLimitChanged};
  for (std::size_t kind = 0; kind < jobs::kNumEventKinds; ++kind) {
    const std::string_view name = jobs::kind_name(kind);
    if (!name.empty() && views::is_notable(name)) kinds.push_back(name);
  }
  std::ranges::sort(kinds);
  return kinds;
}

std::string events_json(const views::RecentEvents::Page& page) {
  return json_object([&](JsonWriter& f) {
    f.always("events", page.events);
    if (page.next) f.always("next", views::format_event_cursor(*page.next));
  });
}

}  // namespace

void Api::recent_events(Call call) {
  Parameters parameters(call.request);
  views::RecentEvents::Query query{
      parameters.limit("events", kPageEvents, kMostPageEvents), parameters.after(views::parse_event_cursor), {}};
  const auto kind = parameters.text("kind");
  const auto job = parameters.text("job"), by = parameters.text("by");
  if (const auto error = parameters.error()) return call.fail(*error);
  if (kind) {
    const std::vector<std::string_view> kinds = recent_event_kinds();
    if (std::ranges::find(kinds, *kind) == kinds.end()) {
      return call.fail(wrong_parameter("kind", *kind, fmt::format("one of {}", fmt::join(kinds, ", "))));
    }
  }
  query.wanted = [this, kind, job, by, identity = call.identity](const jobs::JobEvent& event) {
    return (!kind || *kind == event.kind) && (!job || *job == event.job) && (!by || *by == event.by) &&
           reaches(identity, event.job) == true;
  };
  service_.recent.page(std::move(query), then<views::RecentEvents::Page>(call, events_json));
}

void Api::job_events(Call call) {
  Parameters parameters(call.request);
  auto after = parameters.take<std::int64_t>("after", "the id of an event");
  if (const auto error = parameters.error()) return call.fail(*error);
  if (const auto last = call.request.header("Last-Event-ID"); last && !last->empty()) {
    const auto id = number_from<std::int64_t>("Last-Event-ID", *last, "the id of an event");
    if (!id) return call.fail(id.error());
    after = *id;
  }
  if (refuse_if_full(call, access::HeldCalls::Kind::stream)) return;
  const auto end = std::make_shared<std::function<void()>>();
  const std::string job = call.parts[0];
  service_.subscriptions.subscribe(
      job, after.value_or(-1),
      [this, responder = call.responder, end](const jobs::JobEvent& event) {
        // After a part of a long log, readers subscribe again from its last id, as event sources do by themselves.
        const bool part_over = event.kind == jobs::kPartOver;
        if (!part_over) responder.event(text_of(event));
        if ((part_over || event.kind == jobs::kJobRemoved) && *end) (*end)();
      },
      [this, call, end](const Result<jobs::SubscriptionId>& subscription) {
        if (!subscription) return call.fail(subscription.error());
        call.responder.open_stream();
        const access::HeldCalls::Id held =
            keep_open(call, [this, id = *subscription] { service_.subscriptions.unsubscribe(id); });
        *end = [this, responder = call.responder, held, id = *subscription] {
          held_.remove(held);
          service_.subscriptions.unsubscribe(id);
          responder.end_stream();
        };
      });
}

void Api::all_events(Call call) {
  if (refuse_if_full(call, access::HeldCalls::Kind::stream)) return;
  call.responder.open_stream();
  if (call.identity.role == access::Role::job) {  // it sees only some jobs
    const jobs::SubscriptionId subscription = service_.subscriptions.subscribe_all(
        [this, responder = call.responder, identity = call.identity](const jobs::JobEvent& event) {
          if (reaches(identity, event.job) == true) responder.event(text_of(event));
        });
    keep_open(call, [this, subscription] { service_.subscriptions.unsubscribe(subscription); });
    return;
  }
  if (events_.empty()) {
    all_events_ = service_.subscriptions.subscribe_all(
        [this](const jobs::JobEvent& event) { events_.take(*text_of(event), clock_.now_s()); });
  }
  const views::EventStreams::Id id = events_.add(call.responder);
  keep_open(call, [this, id] {
    if (events_.empty()) return;
    events_.remove(id);
    if (events_.empty()) service_.subscriptions.unsubscribe(all_events_);
  });
}

std::shared_ptr<const std::string> Api::text_of(const jobs::JobEvent& event) {
  if (!last_sent_.text || last_sent_.job != event.job || last_sent_.sequence != event.sequence) {
    last_sent_ = {event.job, event.sequence,
                  http::event_text(std::to_string(event.sequence), event.kind, jobs::event_json(event))};
  }
  return last_sent_.text;
}

}  // namespace perseus::routes
