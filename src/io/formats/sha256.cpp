#include "io/formats/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "base/result.h"

namespace perseus::formats {

std::string sha256(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  unsigned int length = 0;
  const int done = EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr);
  PERSEUS_CHECK(done == 1 && length == digest.size(), "EVP_Digest failed");
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

}  // namespace perseus::formats
