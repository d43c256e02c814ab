// Many events of a job's log in one compressed row.
//
// Problem: most events of a large job's log repeat the same content for thousands of ranks.
// Input:   bodies of consecutive events.
// Output:  their bytes; unpack_events() returns the same bodies.
// Errors:  unpack_events() returns nothing for bytes that pack_events() did not make.
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

/// Most bytes of bodies that are packed together: reading one of them unpacks all.
constexpr std::size_t kMostPackedBytes = std::size_t{256} << 10;

std::string pack_events(std::span<const std::string> bodies);
std::optional<std::vector<std::string>> unpack_events(std::string_view packed);

}  // namespace perseus::store
