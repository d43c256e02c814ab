#include "serve/openapi_text.h"

#include "base/embed.h"

namespace perseus::cli {

PERSEUS_EMBED(openapi_text, PERSEUS_OPENAPI);

}  // namespace perseus::cli
