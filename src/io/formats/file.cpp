#include "io/formats/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/owned_fd.h"
#include "io/formats/sha256.h"

namespace perseus::formats {
namespace {

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string reason() { return std::strerror(errno); }

Error too_large(const std::string& path, std::size_t limit) {
  return {ErrorCode::invalid_input, fmt::format("{}: larger than the {} MiB that are allowed", path, limit >> 20)};
}

Error cannot_write(const std::string& path) {
  return {ErrorCode::cannot_write, fmt::format("{}: cannot be written: {}", path, reason())};
}

/// The reads of this process.
class ReadLog {
 public:
  void add(const std::string& path, std::string_view content) {
    std::string hash = sha256(content);
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(files_, path, &FileRead::path);
    if (known == files_.end()) {
      files_.push_back({path, std::move(hash)});
    } else {
      known->sha256 = std::move(hash);
    }
  }
  [[nodiscard]] std::vector<FileRead> files() const {
    const std::lock_guard lock(mutex_);
    return files_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<FileRead> files_;
};

ReadLog& read_log() {
  static ReadLog log;
  return log;
}

Status write_in_place(const std::string& path, std::string_view content) {
  OwnedFd file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!file.valid() || !write_all(file.get(), content) || !file.close()) return cannot_write(path);
  return Ok{};
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  const auto cannot = [&] {
    return Error{ErrorCode::not_found, fmt::format("{}: cannot be read: {}", path, reason())};
  };
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return cannot();
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return cannot();
  if (S_ISDIR(facts.st_mode)) {
    errno = EISDIR;
    return cannot();
  }
  std::string content;
  content.resize(std::min<std::size_t>(limit, facts.st_size > 0 ? static_cast<std::size_t>(facts.st_size) : 4096) + 1);
  std::size_t size = 0;
  for (;;) {  // until the end, not until st_size: pipes have no size
    if (size == content.size()) {
      if (size > limit) return too_large(path, limit);
      content.resize(std::min(2 * size, limit + 1));
    }
    const ssize_t got = ::read(file.get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot();
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > limit) return too_large(path, limit);
  content.resize(size);
  read_log().add(path, content);
  if (content.starts_with(kGzipMagic)) return gunzipped(content, path, limit);
  return content;
}

std::vector<FileRead> files_read() { return read_log().files(); }

Status write_file(const std::string& path, std::string_view content) {
  // For root, a rename would replace /dev/null by a file.
  if (struct stat there{}; ::lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return write_in_place(path, content);
  }
  std::string temporary = path + ".XXXXXX";
  const auto cannot = [&] {
    Error error = cannot_write(path);
    ::unlink(temporary.c_str());
    return error;
  };
  OwnedFd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.valid() || !write_all(file.get(), content)) return cannot();
  // mkostemp makes files private; set the mode that open() would set.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(file.get(), 0666 & ~mask) != 0 || !file.close()) return cannot();
  if (::rename(temporary.c_str(), path.c_str()) != 0) return cannot();
  return Ok{};
}

Result<std::string> gunzipped(std::string_view packed, const std::string& name, std::size_t limit) {
  const auto broken = [&](const char* what) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: broken gzip file: {}", name, what)};
  };
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return broken("cannot start to inflate");
  struct End {
    z_stream* stream;
    ~End() { inflateEnd(stream); }
  } end{&stream};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  for (;;) {
    const std::size_t used = text.size();
    if (used > limit) return too_large(name, limit);
    text.resize(used + std::max<std::size_t>(used, 1 << 16));
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + used);
    stream.avail_out = static_cast<uInt>(text.size() - used);
    const int status = inflate(&stream, Z_NO_FLUSH);
    text.resize(text.size() - stream.avail_out);
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0) break;
      if (inflateReset(&stream) != Z_OK) return broken("cannot inflate its next member");
    } else if (status != Z_OK) {
      return broken(status == Z_BUF_ERROR ? "ends early" : "data error");
    }
  }
  if (text.size() > limit) return too_large(name, limit);
  return text;
}

}  // namespace perseus::formats
