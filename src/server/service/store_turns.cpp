#include "server/service/store_turns.h"

namespace perseus::service {

void StoreTurns::add(Change change, Done<Ok> done) {
  turns_.push_back({std::move(change), std::move(done)});
  if (turns_.size() == 1) begin();
}

void StoreTurns::begin() {
  store_.claim(work_, options_.owner, clock_.now_s(), kLease_s, [weak = weak_from_this()](const Result<bool>& got) {
    const auto self = weak.lock();
    if (!self) return;
    if (!got) return self->end(got.error());
    if (!*got) return self->end(self->busy_);
    const Change change = std::move(self->turns_.front().change);  // the turn may end within it
    change([weak](const Result<Ok>& result) {
      const auto still = weak.lock();
      if (still) still->end(result);
    });
  });
}

void StoreTurns::end(const Result<Ok>& result) {
  store_.release(work_, options_.owner);
  const Done<Ok> done = std::move(turns_.front().done);
  turns_.pop_front();
  if (!turns_.empty()) begin();
  done(result);
}

}  // namespace perseus::service
