#include "base/embed.h"
#include "demo/demo_job.h"

namespace perseus::cli {

PERSEUS_EMBED(sample_profile_text, PERSEUS_SAMPLE_PROFILE);

}  // namespace perseus::cli
