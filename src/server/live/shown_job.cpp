#include "server/live/shown_job.h"

namespace perseus::live {

jobs::Job* ShownJob::to_rank(int rank) const {
  if (shadow) return shadow.get();
  const bool usable = durable_ && durable_->version == committed_plan && durable_->ranks[rank];
  return usable ? durable_.get() : nullptr;
}

void ShownJob::keep_durable(const jobs::Job& job) {
  if (!durable_) durable_ = std::make_unique<jobs::Job>(job);
}

void ShownJob::became_durable(const std::vector<SequencedEvent>& events, bool all_durable) {
  if (!durable_) return;
  if (all_durable) return durable_.reset();
  for (const SequencedEvent& event : events) {
    if (event.sequence <= durable_->sequence) continue;
    const Status folded = jobs::apply(*durable_, event.event);
    PERSEUS_CHECK(folded.ok(), "an event that was folded before");
  }
}

}  // namespace perseus::live
