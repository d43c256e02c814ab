// A directory of results that appears whole or not at all.
//
// Problem: a plan is many files, and whoever reads DIR must never find half of them, whatever happens to the writer.
// Input: DIR, which does not exist, is empty, or holds an earlier result and nothing else; and the names of the files
// that a result consists of. Output: files are written into a hidden neighbour of DIR; commit() puts it in DIR's place
// in one step (rename, or an exchange with the earlier result). Without commit() the neighbour is removed again; after
// SIGKILL it may be left behind as .DIR.perseus-XXXXXX, and DIR is untouched.
// Errors: cannot_write, naming the path and the reason; a DIR with foreign files in it is refused, naming one.
// Cost: one write() per 64 kB. Threads: one. File systems that cannot exchange two directories (RENAME_EXCHANGE) are
// served by two renames, between which DIR does not exist.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace perseus::cli {

class OutputDirectory {
 public:
  /// Is this a name (relative to the directory, '/' between) that a result consists of?
  using IsOurs = std::function<bool(std::string_view name)>;

  /// Makes the hidden neighbour, parents included.
  static Result<OutputDirectory> create(const std::filesystem::path& target, const IsOurs& is_ours);
  OutputDirectory(OutputDirectory&& other) noexcept;
  OutputDirectory& operator=(OutputDirectory&&) = delete;
  ~OutputDirectory();

  Status commit();

 private:
  friend class OutputFile;
  OutputDirectory(std::filesystem::path target, std::filesystem::path temporary);
  std::filesystem::path target_;
  std::filesystem::path temporary_;  ///< empty once there is nothing to remove
};

/// A file of the directory, folders in `name` are made. Remembers its first failure; close() tells it.
class OutputFile {
 public:
  OutputFile(const OutputDirectory& directory, std::string_view name);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void append(std::string_view text);
  Status close();

 private:
  void flush();
  std::filesystem::path shown_as_;
  int descriptor_ = -1;
  int error_ = 0;
  std::string buffer_;
};

/// One whole file, which `fill` hands over in pieces.
Status write_output_file(const OutputDirectory& directory, std::string_view name,
                         const std::function<void(const std::function<void(std::string_view)>&)>& fill);

}  // namespace perseus::cli
