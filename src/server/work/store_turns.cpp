#include "server/work/store_turns.h"

#include <utility>

namespace perseus::work {

void StoreTurns::add(Change change, Done<Ok> done) {
  turns_.push_back({std::move(change), std::move(done)});
  if (turns_.size() == 1) begin();
}

void StoreTurns::begin() {
  const Change change = std::move(turns_.front().change);  // the turn may end within it
  change([this](const Result<Ok>& result) { end(result); });
}

void StoreTurns::end(const Result<Ok>& result) {
  const Done<Ok> done = std::move(turns_.front().done);
  turns_.pop_front();
  if (!turns_.empty()) begin();
  done(result);
}

}  // namespace perseus::work
