#include "serve/secret_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/formats/file.h"

namespace perseus::cli {

Result<std::string> read_secret(const std::string& file) {
  const auto content = formats::read_file(file);
  if (!content) return content.error();
  const std::size_t end = content->find_last_not_of(" \t\r\n");
  std::string secret = content->substr(0, end == std::string::npos ? 0 : end + 1);
  const bool is_text = std::ranges::all_of(secret, [](char c) { return c > ' ' && c < 0x7f; });
  if (secret.empty() || !is_text) {
    return Error{ErrorCode::usage, fmt::format("'{}' does not contain a token on one line, without spaces", file)};
  }
  return secret;
}

}  // namespace perseus::cli
