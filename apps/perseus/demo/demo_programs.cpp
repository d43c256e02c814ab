#include "demo/demo_programs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace perseus::cli {
namespace {

namespace fs = std::filesystem;

Result<std::string> own_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return Error{ErrorCode::not_found, fmt::format("/proc/self/exe: {}", error.message())};
  return self.parent_path().string();
}

/// The folder of the demo's own programs and libraries: that of this program, or the one into which they are installed.
std::string private_folder(const std::string& own) {
  std::error_code ignored;
  if (fs::exists(own + "/perseus-replay", ignored)) return own;
  return (fs::path(own) / PERSEUS_PRIVATE_FOLDER).lexically_normal().string();
}

}  // namespace

Result<DemoPrograms> find_demo_programs(const DemoOptions& options) {
  const auto folder = own_folder();
  if (!folder) return folder.error();
  const std::string own = private_folder(*folder);
  DemoPrograms programs{*folder + "/perseus", own + "/perseus-replay", own + "/libcuda-simulated.so", {}};
  if (!fs::exists(programs.worker)) {
    return Error{ErrorCode::not_found, programs.worker + ": the worker program does not exist"};
  }
  if (options.host_ahead != "synchronous" && !fs::exists(programs.cuda)) {
    return Error{ErrorCode::not_found, programs.cuda + ": the simulated CUDA driver does not exist"};
  }
  const std::string beside = *folder + "/perseus-clockd";
  if (fs::exists(beside)) programs.helper = beside;
  return programs;
}

}  // namespace perseus::cli
