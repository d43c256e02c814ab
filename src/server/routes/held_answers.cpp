// Calls of the API that stay open: waits for a plan, and streams.
#include <memory>
#include <utility>

#include "server/routes/api.h"

namespace perseus::routes {

bool Api::refuse_if_full(const Call& call, service::HeldCalls::Kind kind, std::size_t waits) const {
  const auto why = held_.full({call.identity, call.request.peer, kind, waits});
  if (!why) return false;
  http::HttpResponse refusal = http::error_response(429, *why);
  refusal.headers.emplace_back("Retry-After", "5");
  call.send(std::move(refusal));
  return true;
}

void Api::wait_for_plan(const Call& call, jobs::WaitForPlan request,
                        std::function<std::string(const jobs::PlanAnswer&)> format) {
  if (refuse_if_full(call, service::HeldCalls::Kind::wait)) return;
  const auto held = std::make_shared<service::HeldCalls::Id>(0);
  const auto wait = std::make_shared<jobs::WaitId>(0);
  *held = held_.add({call.identity, call.request.peer, service::HeldCalls::Kind::wait}, [this, call, wait] {
    service_.cancel_wait(*wait);
    call.fail({ErrorCode::unauthorized, "this token was revoked or has expired"});
  });
  *wait = service_.wait_for_plan(
      std::move(request),
      [this, held, done = then<jobs::PlanAnswer>(call, std::move(format))](const Result<jobs::PlanAnswer>& answer) {
        held_.remove(*held);
        done(answer);
      });
  if (*wait == 0) return;
  call.responder.on_closed([this, held, wait] {
    held_.remove(*held);
    service_.cancel_wait(*wait);
  });
}

service::HeldCalls::Id Api::keep_open(const Call& call, const std::function<void()>& end) {
  const service::HeldCalls::Id held = held_.add({call.identity, call.request.peer, service::HeldCalls::Kind::stream},
                                                [responder = call.responder, end] {
                                                  end();
                                                  responder.end_stream();
                                                });
  call.responder.on_closed([this, held, end] {
    held_.remove(held);
    end();
  });
  return held;
}

}  // namespace perseus::routes
