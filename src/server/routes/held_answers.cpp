// Calls of the API that stay open: waits for a plan, and streams.
#include <memory>
#include <utility>

#include "server/routes/api.h"

namespace perseus::routes {

bool Api::refuse_if_full(const Call& call, access::HeldCalls::Kind kind, std::size_t waits) const {
  const auto why = held_.full({call.identity, call.request.peer, kind, waits});
  if (!why) return false;
  http::HttpResponse refusal = http::error_response(429, *why);
  refusal.headers.emplace_back("Retry-After", "5");
  call.send(std::move(refusal));
  return true;
}

void Api::wait_for_plan(const Call& call, jobs::WaitForPlan request,
                        std::function<std::string(const jobs::PlanAnswer&)> format) {
  if (refuse_if_full(call, access::HeldCalls::Kind::wait)) return;
  struct Held {
    Reply reply;
    std::function<std::string(const jobs::PlanAnswer&)> format;
    access::HeldCalls::Id id = 0;
    jobs::WaitId wait = 0;
  };
  const auto held = std::make_shared<Held>(Held{call, std::move(format)});
  held->id = held_.add({call.identity, call.request.peer, access::HeldCalls::Kind::wait}, [this, held] {
    service_.waiting.cancel(held->wait);
    held->reply.fail({ErrorCode::unauthorized, "this token was revoked or has expired"});
  });
  held->wait = service_.waiting.wait(std::move(request), [this, held](const Result<jobs::PlanAnswer>& answer) {
    held_.remove(held->id);
    answer ? held->reply.answer(held->format(*answer)) : held->reply.fail(answer.error());
  });
  if (held->wait == 0) return;
  call.responder.on_closed([this, id = held->id, wait = held->wait](bool by_client) {
    held_.remove(id);
    by_client ? service_.waiting.closed(wait) : void(service_.waiting.cancel(wait));
  });
}

access::HeldCalls::Id Api::keep_open(const Call& call, const std::function<void()>& end) {
  const access::HeldCalls::Id held =
      held_.add({call.identity, call.request.peer, access::HeldCalls::Kind::stream}, [responder = call.responder, end] {
        end();
        responder.end_stream();
      });
  call.responder.on_closed([this, held, end](bool) {
    held_.remove(held);
    end();
  });
  return held;
}

}  // namespace perseus::routes
