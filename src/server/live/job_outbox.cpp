#include "server/live/job_outbox.h"

#include <algorithm>
#include <iterator>

namespace perseus::live {

bool JobOutbox::is_pending(std::string_view blob) const {
  const auto brings_it = [&](const Entry& entry) {
    return std::ranges::find(entry.blobs, blob, &store::Blob::key) != entry.blobs.end();
  };
  return std::ranges::any_of(in_flight_, brings_it) || std::ranges::any_of(waiting_, brings_it);
}

store::Append JobOutbox::begin_append(const std::string& job, std::int64_t committed) {
  appending_ = true;
  in_flight_ = std::exchange(waiting_, {});
  store::Append append;
  append.job = job;
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

std::vector<JobOutbox::Entry> JobOutbox::end_append() {
  appending_ = false;
  return std::exchange(in_flight_, {});
}

std::vector<JobCommand> JobOutbox::give_up() {
  std::vector<JobCommand> commands = take_commands();
  waiting_.clear();
  undecided_.clear();
  return commands;
}

std::vector<JobCommand> JobOutbox::take_commands() {
  std::vector<JobCommand> commands;
  for (std::vector<Entry>* entries : {&in_flight_, &waiting_}) {
    for (Entry& entry : *entries) {
      if (entry.command.done) commands.push_back(std::exchange(entry.command, {}));
    }
  }
  for (auto& [command, is_refused] : undecided_) {
    if (!command.done) continue;
    commands.push_back({{}, std::exchange(command.done, {})});
    command.once_durable = true;  // it is decided later nevertheless, as what the store has may still be written
  }
  return commands;
}

}  // namespace perseus::live
