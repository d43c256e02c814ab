// Reads and writes whole files; the one part of io/formats that uses the file system.
//
// Input:   reading gunzips a file that starts with gzip's magic bytes; at most kMaxFileBytes before and after.
// Output:  a file appears under its name complete or not at all: it is written to a temporary neighbor, which is then
//          renamed. An existing link, device or pipe of that name is written directly. files_read() lists the files
//          that this process has read: a pipe cannot be read again to compute its hash.
// Errors:  name the path and the system's reason: not_found for reading, cannot_write for writing, invalid_input for
//          a file that is too large or broken gzip.
// Cost:    one copy, and the SHA-256 of a file that is read.
// Threads: any, on different paths.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace perseus::formats {

inline constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;

Result<std::string> read_file(const std::string& path, std::size_t limit = kMaxFileBytes);

/// What parse(text, path) makes of the file.
template <class Parse>
auto parsed_file(const std::string& path, Parse parse) -> decltype(parse(std::string(), path)) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  return parse(*text, path);
}

/// A file and the SHA-256 of its bytes, as sha256sum prints it: of a compressed file, before decompression.
struct FileRead {
  std::string path;
  std::string sha256;
};
/// The files that this process has read, in the order of their first read, each as last read.
std::vector<FileRead> files_read();

Status write_file(const std::string& path, std::string_view content);

inline constexpr std::string_view kGzipMagic = "\x1f\x8b";

/// Decompresses gzip.
/// Input:   one or more gzip members (RFC 1952); `name` identifies them in messages.
/// Errors:  invalid_input: broken, truncated, or more than `limit` bytes.
Result<std::string> gunzipped(std::string_view packed, const std::string& name, std::size_t limit);

}  // namespace perseus::formats
