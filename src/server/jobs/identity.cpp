#include "server/jobs/identity.h"

#include <fmt/format.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <span>

#include "base/result.h"

namespace perseus::jobs {
namespace {

constexpr std::size_t kIdBytes = 16;

std::string hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

std::string random_hex_id() {
  std::array<unsigned char, kIdBytes> bytes{};
  for (std::size_t have = 0; have < bytes.size();) {
    const ssize_t got = getrandom(bytes.data() + have, bytes.size() - have, 0);
    PERSEUS_CHECK(got > 0 || errno == EINTR, "getrandom");
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return hex(bytes);
}

std::string content_key(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return hex(std::span(digest).first<kIdBytes>());
}

}  // namespace perseus::jobs
