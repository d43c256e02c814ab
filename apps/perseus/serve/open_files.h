// The limit on open files of `perseus serve`, which limits its connections.
//
// Threads: one; call both before there are more.
#pragma once

#include <sys/resource.h>

#include "base/result.h"

namespace perseus::cli {

/// Allows that many connections; returns the allowed number of files.
rlim_t make_room_for(int connections);

/// Without descriptors, libraries end the process, or name another cause. Errors: unavailable.
Status check_files(rlim_t allowed);

}  // namespace perseus::cli
