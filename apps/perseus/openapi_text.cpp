#include "openapi_text.h"

#include "base/embed.h"

namespace perseus {

PERSEUS_EMBED(openapi_text, PERSEUS_OPENAPI);

}  // namespace perseus
