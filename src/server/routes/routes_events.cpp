// Event streams of /v1.
#include <functional>
#include <memory>
#include <utility>

#include "server/routes/call_input.h"

namespace perseus::routes {

void Api::job_events(Call call) {
  Parameters parameters(call.request);
  auto after = parameters.take<std::int64_t>("after", "the id of an event");
  if (const auto error = parameters.error()) return call.fail(*error);
  if (const auto last = call.request.header("Last-Event-ID"); last && !last->empty()) {
    const auto id = number_from<std::int64_t>("Last-Event-ID", *last, "the id of an event");
    if (!id) return call.fail(id.error());
    after = *id;
  }
  if (refuse_if_full(call, service::HeldCalls::Kind::stream)) return;
  const auto end = std::make_shared<std::function<void()>>();
  const std::string job = call.parts[0];
  service_.subscribe(
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
        const service::HeldCalls::Id held = keep_open(call, [this, id = *subscription] { service_.unsubscribe(id); });
        *end = [this, responder = call.responder, held, id = *subscription] {
          held_.remove(held);
          service_.unsubscribe(id);
          responder.end_stream();
        };
      });
}

void Api::all_events(Call call) {
  if (refuse_if_full(call, service::HeldCalls::Kind::stream)) return;
  call.responder.open_stream();
  if (call.identity.role == service::Role::job) {  // it sees only some jobs
    const jobs::SubscriptionId subscription = service_.subscribe_all(
        [this, responder = call.responder, identity = call.identity](const jobs::JobEvent& event) {
          if (reaches(identity, event.job) == true) responder.event(text_of(event));
        });
    keep_open(call, [this, subscription] { service_.unsubscribe(subscription); });
    return;
  }
  if (events_.empty()) {
    all_events_ = service_.subscribe_all([this](const jobs::JobEvent& event) {
      if (events_.take(*text_of(event), clock_.now_s()) && earlier_wake_) earlier_wake_();
    });
  }
  const service::EventStreams::Id id = events_.add(call.responder);
  keep_open(call, [this, id] {
    if (events_.empty()) return;
    events_.remove(id);
    if (events_.empty()) service_.unsubscribe(all_events_);
  });
}

std::shared_ptr<const std::string> Api::text_of(const jobs::JobEvent& event) {
  if (!told_.text || told_.job != event.job || told_.sequence != event.sequence) {
    told_ = {event.job, event.sequence,
             http::event_text(std::to_string(event.sequence), event.kind, jobs::event_json(event))};
  }
  return told_.text;
}

}  // namespace perseus::routes
