#include "base/embed.h"
#include "serve/server_process.h"

namespace perseus::cli {

PERSEUS_EMBED(openapi_text, PERSEUS_OPENAPI);

}  // namespace perseus::cli
