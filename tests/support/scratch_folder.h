// Scratch folders that are removed with the test.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace perseus::testing {

class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();
  [[nodiscard]] std::string path(std::string_view name = "") const;
  /// Writes a file there and returns its path.
  [[nodiscard]] std::string file(std::string_view name, std::string_view content) const;
  /// Names of all its entries, including hidden ones, sorted.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::filesystem::path folder_;
};

}  // namespace perseus::testing
