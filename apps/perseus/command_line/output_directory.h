// A directory of results that appears whole or not at all.
//
// Problem: a plan is many files, and readers of DIR must never find half of them, whatever happens to the writer.
// Input:   DIR, which does not exist, is empty, or holds an earlier result and nothing else; and the names of the
//          files that a result consists of.
// Output:  the files go into a hidden sibling of DIR; commit() puts it in DIR's place in one step (rename, or an
//          exchange with the earlier result). Without commit() the sibling is removed again; after SIGKILL it may
//          remain as .DIR.perseus-XXXXXX, and DIR is untouched.
// Errors:  cannot_write, naming the path and the reason. Refused: a DIR with foreign files in it, naming one, and a
//          symbolic link, since the rename would replace it and not the directory that it names.
// Cost:    one write() per 64 kB. File systems that cannot exchange two directories (RENAME_EXCHANGE) need two
//          renames, between which DIR does not exist.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace perseus::cli {

class OutputDirectory {
 public:
  /// True if a result contains a file of this name (relative to the directory, '/' between).
  using IsOurs = std::function<bool(std::string_view name)>;

  /// Creates the hidden sibling and missing parents.
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

/// A file of the directory; creates the folders in `name`. Remembers its first failure; close() returns it.
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

/// True for each of `names`; a "*" stands for any text.
OutputDirectory::IsOurs one_of(std::vector<std::string_view> names);

/// A file of a result: its text, or a function that provides it in pieces.
struct ResultFile {
  using Fill = std::function<void(const std::function<void(std::string_view)>& sink)>;
  ResultFile(std::string file, Fill provide) : name(std::move(file)), fill(std::move(provide)) {}
  ResultFile(std::string file, std::string text)
      : name(std::move(file)), fill([all = std::move(text)](const auto& sink) { sink(all); }) {}
  std::string name;
  Fill fill;
};
/// Writes the files; stops after an interrupt.
Status write_files(const OutputDirectory& directory, const std::vector<ResultFile>& files);

/// "written to DIR; to look at: DIR/report.html\n"
std::string written_text(const std::filesystem::path& directory, std::string_view page);

/// Fails before a long computation if DIR cannot be written; "" stands for no directory.
Status check_output(const std::filesystem::path& target, const OutputDirectory::IsOurs& is_ours);
/// False after an interrupt, which leaves nothing (the caller holds an InterruptGuard).
Result<bool> write_guarded_output(const std::filesystem::path& target, const OutputDirectory::IsOurs& is_ours,
                                  const std::vector<ResultFile>& files);
/// The same under a guard of its own: after an interrupt the process ends by the signal. "": writes nothing.
Status write_output(const std::filesystem::path& target, const OutputDirectory::IsOurs& is_ours,
                    const std::vector<ResultFile>& files);

}  // namespace perseus::cli
