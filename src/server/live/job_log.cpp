#include "server/live/job_log.h"

namespace perseus::live {

Result<JobLog> read_log(store::Store& store, const std::string& id, std::int64_t after) {
  const auto stored = store.read(id, 0);
  if (!stored) return stored.error();
  JobLog read;
  read.job.id = id;
  for (const store::StoredEvent& item : *stored) {
    jobs::Event event = jobs::event_in_log(item.body);
    if (Status folded = jobs::apply(read.job, event); !folded) return folded.error();
    if (item.sequence > after) read.events.push_back({item.sequence, std::move(event)});
  }
  return read;
}

}  // namespace perseus::live
