#include "server/service/live_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/jobs/job_savings.h"

namespace perseus::service {

Error later_version(const std::string& job) {
  return {ErrorCode::unavailable,
          fmt::format("job {} was changed by a later version of Perseus, which this server does not know: ask a server "
                      "of that version",
                      job)};
}

bool LiveJob::is_pending(std::string_view blob) const {
  const auto brings_it = [&](const Entry& entry) {
    return std::ranges::find(entry.blobs, blob, &store::Blob::key) != entry.blobs.end();
  };
  return std::ranges::any_of(in_flight_, brings_it) || std::ranges::any_of(outbox_, brings_it);
}

bool LiveJob::note_progress(int rank, std::int64_t iteration, std::int64_t finished, double now_s) {
  if (!progress) progress.emplace(job.created_s);
  const auto cost = jobs::iteration_cost(job, frontiers);
  // Plans are slower than the possible minimum, but by less than this factor.
  constexpr double far_below = 0.25;
  const double fastest_s = far_below * (cost ? cost->time.value() : job.profiled.highest_s);
  return progress->report(rank, iteration, finished, now_s, fastest_s);
}

std::int64_t LiveJob::next_common_iteration(double now_s, int margin_iterations) const {
  if (!progress || !progress->iteration()) return 0;
  std::int64_t iteration = *progress->iteration();
  const auto cost = jobs::iteration_cost(job, frontiers);
  const double time_s = cost ? cost->time.value() : job.profiled.highest_s;
  if (time_s > 0) iteration += static_cast<std::int64_t>(std::max(0.0, (now_s - progress->at_s()) / time_s));
  return iteration + 1 + margin_iterations;
}

}  // namespace perseus::service
