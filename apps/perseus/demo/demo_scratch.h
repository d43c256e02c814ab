// The folder in which a demo keeps its GPUs, logs and database.
//
// Such a folder is locked for as long as its demo lives; the next demo removes unlocked ones.
//
// Problem: nothing must be left behind, even by a killed demo.
// Input:   a folder that the user wants to keep, or none: a new one in the temporary directory, removed at the end.
// Errors:  cannot_write naming the folder; conflict: another demo uses the given folder.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace perseus::cli {

class DemoScratch {
 public:
  static Result<DemoScratch> create(const std::string& wanted);
  DemoScratch(DemoScratch&& other) noexcept;
  DemoScratch& operator=(DemoScratch&&) = delete;
  ~DemoScratch();
  /// The file may not exist yet.
  [[nodiscard]] std::string file(std::string_view name) const;
  /// The end of a log, on lines of its own, for an error message; "" if there is none.
  [[nodiscard]] std::string end_of_log(std::string_view name) const;

 private:
  DemoScratch(std::string path, bool remove, int lock) : path_(std::move(path)), remove_(remove), lock_(lock) {}
  std::string path_;
  bool remove_;
  int lock_;  ///< descriptor
};

}  // namespace perseus::cli
