// Decompresses gzip.
//
// Input:   one or more gzip members (RFC 1952); `name` identifies them in messages.
// Errors:  invalid_input: broken, truncated, or more than `limit` bytes.
// Cost:    linear, some hundred megabytes per second.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace perseus::formats {

inline constexpr std::string_view kGzipMagic = "\x1f\x8b";

Result<std::string> gunzipped(std::string_view packed, const std::string& name, std::size_t limit);

}  // namespace perseus::formats
