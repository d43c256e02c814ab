// What an event of a job changes: the plans that ranks get, or the value of iterations that are not counted yet.
//
// Threads: io thread.
#pragma once

#include "server/service/live_job.h"

namespace perseus::service {

/// True for events that no plan depends on.
bool is_no_matter(const jobs::EventBody& body);
/// True for events after which iterations that are not counted yet would have another value, or none: they are counted
/// first. So a total never goes back because a plan or a straggler changed.
bool revalues_iterations(const LiveJob& live, const jobs::EventBody& body);

}  // namespace perseus::service
