#include "command_line/output_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "command_line/interrupt.h"

namespace perseus::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = 64 * 1024;

Error cannot_write(const fs::path& path, std::string_view reason) {
  return Error{ErrorCode::cannot_write, fmt::format("{}: cannot be written: {}", path.string(), reason)};
}

/// Ok if `target` may be replaced: absent, or a directory whose every file is ours.
Status check_replaceable(const fs::path& target, const OutputDirectory::IsOurs& is_ours) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  if (status.type() == fs::file_type::not_found) return Ok{};
  if (status.type() == fs::file_type::none) return cannot_write(target, error.message());
  if (status.type() == fs::file_type::symlink) {
    const fs::path itself = (target.parent_path() / fs::read_symlink(target, error)).lexically_normal();
    return cannot_write(target, "it is a symbolic link; name the directory itself: " + itself.string());
  }
  if (status.type() != fs::file_type::directory) return cannot_write(target, "it exists and is not a directory");
  for (fs::recursive_directory_iterator entry(target, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().lexically_relative(target).generic_string();
    if (entry->symlink_status().type() == fs::file_type::directory || is_ours(name)) continue;
    return cannot_write(target, fmt::format("it holds '{}', which this command does not write; choose a directory that "
                                            "does not exist, is empty, or holds an earlier result of it only",
                                            name));
  }
  if (error) return cannot_write(target, error.message());
  return Ok{};
}

}  // namespace

OutputFile::OutputFile(const OutputDirectory& directory, std::string_view name) : shown_as_(directory.target_ / name) {
  const fs::path path = directory.temporary_ / name;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (!error) descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) error_ = error ? error.value() : errno;
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::append(std::string_view text) {
  buffer_.append(text);
  if (buffer_.size() >= kBufferBytes) flush();
}

void OutputFile::flush() {
  std::string_view rest = buffer_;
  while (error_ == 0 && !rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  buffer_.clear();
}

Status OutputFile::close() {
  flush();
  if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0 && error_ == 0) error_ = errno;
  if (error_ != 0) return cannot_write(shown_as_, std::strerror(error_));
  return Ok{};
}

OutputDirectory::OutputDirectory(fs::path target, fs::path temporary)
    : target_(std::move(target)), temporary_(std::move(temporary)) {}

OutputDirectory::OutputDirectory(OutputDirectory&& other) noexcept
    : target_(std::move(other.target_)), temporary_(std::exchange(other.temporary_, fs::path())) {}

OutputDirectory::~OutputDirectory() {
  std::error_code ignored;  // nothing can be done about it here
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

Result<OutputDirectory> OutputDirectory::create(const fs::path& target, const IsOurs& is_ours) {
  std::error_code error;
  fs::path full = fs::absolute(target, error).lexically_normal();
  if (!full.has_filename()) full = full.parent_path();  // "DIR/"
  if (error || !full.has_filename()) return cannot_write(target, "it is not a directory's name");
  if (Status replaceable = check_replaceable(full, is_ours); !replaceable) return replaceable.error();

  fs::create_directories(full.parent_path(), error);
  if (error) return cannot_write(target, error.message());
  std::string temporary = (full.parent_path() / fmt::format(".{}.perseus-XXXXXX", full.filename().string())).string();
  if (::mkdtemp(temporary.data()) == nullptr) return cannot_write(target, std::strerror(errno));
  OutputDirectory directory(std::move(full), temporary);
  // mkdtemp makes private directories; give it the mode that mkdir would have given.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::chmod(temporary.c_str(), 0777 & ~mask) != 0) return cannot_write(target, std::strerror(errno));
  return directory;
}

Status OutputDirectory::commit() {
  if (::rename(temporary_.c_str(), target_.c_str()) == 0) {  // absent or empty
    temporary_.clear();
    return Ok{};
  }
  if (errno != ENOTEMPTY && errno != EEXIST) return cannot_write(target_, std::strerror(errno));
  // The destructor then removes the earlier result, which now has the temporary name.
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) return Ok{};
  if (errno != EINVAL && errno != ENOSYS) return cannot_write(target_, std::strerror(errno));

  const fs::path earlier = temporary_.string() + "-earlier";
  if (::rename(target_.c_str(), earlier.c_str()) != 0) return cannot_write(target_, std::strerror(errno));
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int reason = errno;
    if (::rename(earlier.c_str(), target_.c_str()) != 0) {
      return cannot_write(target_,
                          fmt::format("{}; the earlier result is now {}", std::strerror(reason), earlier.string()));
    }
    return cannot_write(target_, std::strerror(reason));
  }
  temporary_ = earlier;
  return Ok{};
}

OutputDirectory::IsOurs one_of(std::vector<std::string_view> names) {
  return [names = std::move(names)](std::string_view name) {
    return std::ranges::any_of(names, [&](std::string_view known) {
      const std::size_t star = known.find('*');
      if (star == std::string_view::npos) return name == known;
      return name.size() + 1 >= known.size() && name.starts_with(known.substr(0, star)) &&
             name.ends_with(known.substr(star + 1));
    });
  };
}

Status write_files(const OutputDirectory& directory, const std::vector<ResultFile>& files) {
  for (const ResultFile& content : files) {
    if (InterruptGuard::interrupted()) return Ok{};
    OutputFile file(directory, content.name);
    content.fill([&](std::string_view text) { file.append(text); });
    if (Status closed = file.close(); !closed) return closed;
  }
  return Ok{};
}

std::string written_text(const fs::path& directory, std::string_view page) {
  return fmt::format("written to {0}; to look at: {0}/{1}\n", directory.string(), page);
}

Status check_output(const fs::path& target, const OutputDirectory::IsOurs& is_ours) {
  if (target.empty()) return Ok{};
  const Result<OutputDirectory> probe = OutputDirectory::create(target, is_ours);
  return probe ? Status(Ok{}) : probe.error();
}

Result<bool> write_guarded_output(const fs::path& target, const OutputDirectory::IsOurs& is_ours,
                                  const std::vector<ResultFile>& files) {
  Result<OutputDirectory> out = OutputDirectory::create(target, is_ours);
  if (!out) return out.error();
  if (const Status written = write_files(*out, files); !written) return written.error();
  if (InterruptGuard::interrupted()) return false;  // the directory's destructor removes what was written
  if (const Status committed = out->commit(); !committed) return committed.error();
  return true;
}

Status write_output(const fs::path& target, const OutputDirectory::IsOurs& is_ours,
                    const std::vector<ResultFile>& files) {
  if (target.empty()) return Ok{};
  Result<bool> written = false;
  {
    const InterruptGuard guard;
    written = write_guarded_output(target, is_ours, files);
  }
  die_if_interrupted();
  return written ? Status(Ok{}) : written.error();
}

}  // namespace perseus::cli
