#include "simulation/simulated_gpu/find.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/split.h"

namespace perseus::simulated_gpu {
namespace {

namespace fs = std::filesystem;

void add_files_of(const fs::path& path, std::vector<std::string>& files) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    if (fs::exists(path, ignored)) files.push_back(path.string());
    return;
  }
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) {
    // A file that ends in .new is not complete yet.
    if (entry.is_regular_file(ignored) && entry.path().extension() != ".new") found.push_back(entry.path().string());
  }
  std::ranges::sort(found);
  files.insert(files.end(), found.begin(), found.end());
}

}  // namespace

std::vector<std::string> simulated_gpu_files() {
  std::vector<std::string> files;
  const char* variable = std::getenv("PERSEUS_SIMULATED_GPUS");
  for (const std::string_view part : split(variable == nullptr ? "" : variable, ':')) {
    if (!part.empty()) add_files_of(fs::path(part), files);
  }
  return files;
}

}  // namespace perseus::simulated_gpu
