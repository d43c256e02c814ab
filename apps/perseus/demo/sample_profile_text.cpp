#include "demo/sample_profile_text.h"

#include "base/embed.h"

namespace perseus::cli {

PERSEUS_EMBED(sample_profile_text, PERSEUS_SAMPLE_PROFILE);

}  // namespace perseus::cli
