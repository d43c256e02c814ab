// A job as folded from the database's log.
#pragma once

#include <rapidcheck.h>

#include <string>

#include "server/jobs/event.h"
#include "server/jobs/job.h"
#include "server/store/memory_store.h"

namespace perseus::testing {

/// Folds the job's log; aborts the case if it does not fold, or if an event is not written as it was read.
inline jobs::Job folded(const store::MemoryDatabase& database, const std::string& id) {
  jobs::Job job;
  job.id = id;
  std::int64_t version = 0;
  for (const store::StoredEvent& item : database.jobs.at(id).events) {
    const auto event = jobs::parse_event(item.body, "log");
    if (!event) RC_FAIL(event.error().message + " in " + item.body);
    RC_ASSERT(jobs::format_event(*event) == item.body);
    if (const auto* plan = std::get_if<jobs::PlanDeployed>(&event->body)) RC_ASSERT(plan->version == ++version);
    if (const auto* w = std::get_if<jobs::WindowHandedOut>(&event->body)) RC_ASSERT(w->version == ++version);
    if (Status done = jobs::apply(job, *event); !done) RC_FAIL(done.error().message);
    RC_ASSERT(job.sequence == item.sequence);
  }
  return job;
}

}  // namespace perseus::testing
