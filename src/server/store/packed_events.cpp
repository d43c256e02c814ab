#include "server/store/packed_events.h"

#include <zlib.h>

#include <charconv>
#include <cstdint>

#include "base/result.h"

namespace perseus::store {
namespace {

/// Removes the number before the next space, and the space, from `text`.
std::optional<std::size_t> take_number(std::string_view& text) {
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end == text.data() + text.size() || *end != ' ') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

}  // namespace

// Format: "SIZE " and zlib's encoding of SIZE bytes, which are, per body, "LENGTH " and the body.

std::string pack_events(std::span<const std::string> bodies) {
  std::string plain;
  for (const std::string& body : bodies) plain += std::to_string(body.size()) + ' ' + body;
  std::string packed = std::to_string(plain.size()) + ' ';
  const std::size_t head = packed.size();
  uLongf size = compressBound(static_cast<uLong>(plain.size()));
  packed.resize(head + size);
  const int status = compress2(reinterpret_cast<Bytef*>(packed.data() + head), &size,
                               reinterpret_cast<const Bytef*>(plain.data()), static_cast<uLong>(plain.size()), 1);
  PERSEUS_CHECK(status == Z_OK, "zlib has memory");
  packed.resize(head + size);
  return packed;
}

std::optional<std::vector<std::string>> unpack_events(std::string_view packed) {
  constexpr std::size_t most = std::size_t{1} << 31;  // a single body may be large
  const auto size = take_number(packed);
  if (!size || *size > most) return std::nullopt;
  std::string plain(*size, '\0');
  auto length = static_cast<uLongf>(plain.size());
  if (uncompress(reinterpret_cast<Bytef*>(plain.data()), &length, reinterpret_cast<const Bytef*>(packed.data()),
                 static_cast<uLong>(packed.size())) != Z_OK ||
      length != plain.size()) {
    return std::nullopt;
  }
  std::vector<std::string> bodies;
  for (std::string_view rest = plain; !rest.empty();) {
    const auto bytes = take_number(rest);
    if (!bytes || *bytes > rest.size()) return std::nullopt;
    bodies.emplace_back(rest.substr(0, *bytes));
    rest.remove_prefix(*bytes);
  }
  return bodies;
}

}  // namespace perseus::store
