// A job as folded from the database's log, event by event as they are committed.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/jobs/event.h"
#include "server/jobs/job.h"
#include "tests/support/test_store.h"

namespace perseus::testing {

/// The log of one job so far. follow() reads what is new, and fails if the log does not fold, if an event is not
/// written as it was read, or if a version of the plan is missing or repeated.
struct FollowedLog {
  jobs::Job job;
  std::vector<jobs::Event> events;
  std::int64_t version = 0;

  explicit FollowedLog(const std::string& id) { job.id = id; }

  Status follow(const TestDatabase& database) {
    for (const store::StoredEvent& stored : database.log(job.id, job.sequence)) {
      const auto event = jobs::parse_event(stored.body, "log");
      if (!event) return Error{ErrorCode::internal, event.error().message + " in " + stored.body};
      if (jobs::format_event(*event) != stored.body) return Error{ErrorCode::internal, "not as read: " + stored.body};
      const auto* plan = std::get_if<jobs::PlanDeployed>(&event->body);
      const auto* window = std::get_if<jobs::WindowHandedOut>(&event->body);
      const std::int64_t next = plan != nullptr ? plan->version : window != nullptr ? window->version : 0;
      if (next != 0 && next != ++version) return Error{ErrorCode::internal, "not the next version: " + stored.body};
      if (Status done = jobs::apply(job, *event); !done) return done;
      if (job.sequence != stored.sequence) return Error{ErrorCode::internal, "not the next sequence: " + stored.body};
      events.push_back(*event);
    }
    return Ok{};
  }
};

/// The job's log; aborts the case of a property if it does not fold.
inline FollowedLog followed(const TestDatabase& database, const std::string& id) {
  FollowedLog log(id);
  if (Status read = log.follow(database); !read) RC_FAIL(read.error().message);
  return log;
}
inline jobs::Job folded(const TestDatabase& database, const std::string& id) { return followed(database, id).job; }

}  // namespace perseus::testing
