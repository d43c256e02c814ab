#include "training/client/backstop_request.h"

namespace perseus::client {

void BackstopRequest::arrives(const ClockPlan& plan, bool follows) {
  const std::lock_guard lock(mutex_);
  lower_.reset();
  const Watts limit(plan.budget ? plan.budget->power_limit_w : 0);
  const bool lowers = requested_ > Watts(0) && limit > Watts(0) && limit < requested_;
  if (lowers && follows && !plan.budget->at_once) {
    lower_ = {plan.version, limit, std::nullopt};
  } else {
    request(limit);
  }
}

void BackstopRequest::follows(std::int64_t version, double now_s) {
  const std::lock_guard lock(mutex_);
  if (!lower_ || version < lower_->version) return;
  if (!lower_->since_s) lower_->since_s = now_s;
  if (now_s - *lower_->since_s < kRunsAhead_s) return;
  request(lower_->limit);
  lower_.reset();
}

void BackstopRequest::request(Watts limit) {
  if (limit == requested_) return;
  requested_ = limit;
  if (limit_power_) limit_power_(limit);
}

}  // namespace perseus::client
