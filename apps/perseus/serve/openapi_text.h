// The OpenAPI description of /v1 that this program was built with.
//
// Output:  docs/openapi.json's bytes.
#pragma once

#include <string_view>

namespace perseus::cli {

std::string_view openapi_text();

}  // namespace perseus::cli
