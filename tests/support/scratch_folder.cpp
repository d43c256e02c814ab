#include "tests/support/scratch_folder.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/result.h"

namespace perseus::testing {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "perseus_test_XXXXXX").string();
  PERSEUS_CHECK(::mkdtemp(name.data()) != nullptr, "no scratch folder");
  folder_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string ScratchFolder::path(std::string_view name) const { return (folder_ / name).string(); }

std::string ScratchFolder::file(std::string_view name, std::string_view content) const {
  std::ofstream(folder_ / name, std::ios::binary) << content;
  return path(name);
}

std::vector<std::string> ScratchFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace perseus::testing
