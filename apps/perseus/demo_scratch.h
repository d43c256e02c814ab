// The folder in which a demo keeps its GPUs, logs and database.
//
// Problem: nothing is to be left behind, even by a demo that was killed. Input: a folder that the user wants to keep,
// or none: a new one in the temporary directory, removed at the end. Such a folder is locked for as long as its demo
// lives; whoever makes the next one removes those that are not. Errors: cannot_write naming the folder; conflict: a
// wanted folder that another demo is using. Cost: a directory listing. Threads: one.
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
  /// Not made yet.
  [[nodiscard]] std::string file(std::string_view name) const;

 private:
  DemoScratch(std::string path, bool remove, int lock) : path_(std::move(path)), remove_(remove), lock_(lock) {}
  std::string path_;
  bool remove_;
  int lock_;  ///< descriptor
};

}  // namespace perseus::cli
