#include "server/service/live_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/jobs/job_savings.h"

namespace perseus::service {

Error later_version(const std::string& job) {
  return {
      ErrorCode::unavailable,
      fmt::format("job {} was changed by a later version of Perseus, which this server does not support: use a server "
                  "of that version",
                  job)};
}

bool LiveJob::is_pending(std::string_view blob) const {
  const auto brings_it = [&](const Entry& entry) {
    return std::ranges::find(entry.blobs, blob, &store::Blob::key) != entry.blobs.end();
  };
  return std::ranges::any_of(in_flight_, brings_it) || std::ranges::any_of(outbox_, brings_it);
}

void LiveJob::forget_iterations() {
  progress.reset();
  followed = {};
  measured_iterations = {};
  schedules.clear();
}

store::Append LiveJob::take_outbox() {
  in_flight_ = std::move(outbox_);
  outbox_.clear();
  store::Append append;
  append.job = job.id;
  append.expected_sequence = committed;
  for (Entry& entry : in_flight_) {
    for (const SequencedEvent& event : entry.events) append.bodies.push_back(jobs::format_event(event.event));
    std::ranges::copy(entry.blobs, std::back_inserter(append.blobs));
    std::ranges::copy(entry.holds, std::back_inserter(append.holds));
    for (const store::Blob& blob : entry.blobs) {
      append.holds.push_back(blob.key);
      if (blob.key.starts_with("input/")) append.holds.push_back("frontier/" + blob.key.substr(6));
    }
  }
  return append;
}

std::vector<JobCommand> LiveJob::take_commands() {
  std::vector<JobCommand> commands;
  for (std::vector<Entry>* entries : {&in_flight_, &outbox_}) {
    for (Entry& entry : *entries) {
      if (entry.command.done) commands.push_back(std::exchange(entry.command, {}));
    }
  }
  std::erase_if(outbox_, [](const Entry& entry) { return entry.events.empty(); });
  return commands;
}

void LiveJob::keep_known(const std::vector<SequencedEvent>& events) {
  if (!known_) return;
  if (outbox_.empty()) return known_.reset();
  for (const SequencedEvent& event : events) {
    if (event.sequence <= known_->sequence) continue;
    const Status folded = jobs::apply(*known_, event.event);
    PERSEUS_CHECK(folded.ok(), "an event that was folded before");
  }
}

bool LiveJob::note_progress(int rank, std::int64_t iteration, std::int64_t finished, double now_s) {
  if (!progress) progress.emplace(job.created_s, job.spec.degrees.world_size() == 1);
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
