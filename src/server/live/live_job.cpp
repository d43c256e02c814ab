#include "server/live/live_job.h"

#include <fmt/format.h>

namespace perseus::live {

Error later_version(const std::string& job) {
  return {
      ErrorCode::unavailable,
      fmt::format("job {} was changed by a later version of Perseus, which this server does not support: use a server "
                  "of that version",
                  job)};
}

}  // namespace perseus::live
