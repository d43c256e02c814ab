#include "server/jobs/identity.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/result.h"
#include "io/formats/sha256.h"

namespace perseus::jobs {
namespace {

constexpr std::size_t kIdDigits = 32;

}  // namespace

std::string random_hex_id() {
  std::array<std::uint64_t, 2> halves{};
  auto* const bytes = reinterpret_cast<unsigned char*>(halves.data());
  for (std::size_t have = 0; have < sizeof halves;) {
    const ssize_t got = getrandom(bytes + have, sizeof halves - have, 0);
    PERSEUS_CHECK(got > 0 || errno == EINTR, "getrandom");
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return fmt::format("{:016x}{:016x}", halves[0], halves[1]);
}

std::string content_key(std::string_view bytes) { return formats::sha256(bytes).substr(0, kIdDigits); }

}  // namespace perseus::jobs
