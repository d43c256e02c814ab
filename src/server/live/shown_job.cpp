#include "server/live/shown_job.h"

#include <algorithm>

#include "server/policies/deployment.h"

namespace perseus::live {

jobs::Job* ShownJob::to_rank(int rank) const {
  const bool usable = is_late_ || (job_ && job_->version >= committed_plan && job_->ranks[rank]);
  return usable ? job_.get() : nullptr;
}

void ShownJob::number(jobs::Job& job, double now_s) {
  const bool planned = job.plan && job.plan->version == job.version;
  if (!planned || job.version == committed_plan) return;
  if (!is_provisional(job.version)) {
    const std::int64_t last = provisional_ ? provisional_->version : 0;
    const bool same = provisional_ && !policies::differs(*job.plan, provisional_);
    job.version = job.plan->version = same ? last : std::max(provisional_version(now_s), last + 1);
  }
  provisional_ = job.plan;
}

}  // namespace perseus::live
