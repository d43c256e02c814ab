// Events of a job's log, many in one compressed row.
//
// Problem: most of a large job's log says the same thing of thousands of ranks.
// Input:   bodies of events in a row.
// Output:  their bytes; unpack_events() gives the same bodies back.
// Errors:  nothing where the bytes are not what pack_events() made.
// Cost:    about 100 MB/s to pack at zlib's fastest level, 400 MB/s to unpack.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perseus::store {

/// Bodies that are packed together: reading one of them unpacks all.
constexpr std::size_t kMostPackedBytes = std::size_t{256} << 10;

std::string pack_events(std::span<const std::string> bodies);
std::optional<std::vector<std::string>> unpack_events(std::string_view packed);

}  // namespace perseus::store
