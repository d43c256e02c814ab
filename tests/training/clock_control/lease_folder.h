// A private lease folder for a test, so that it does not see leases of other processes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/result.h"

namespace perseus::clock_control {

class LeaseFolder {
 public:
  LeaseFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "perseus-lease-XXXXXX").string();
    PERSEUS_CHECK(::mkdtemp(name.data()) != nullptr, "no folder for the test's files");
    path_ = name;
    ::setenv("PERSEUS_RUNTIME_DIR", path_.c_str(), 1);
  }
  LeaseFolder(const LeaseFolder&) = delete;
  LeaseFolder& operator=(const LeaseFolder&) = delete;
  ~LeaseFolder() {
    ::unsetenv("PERSEUS_RUNTIME_DIR");
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] std::string path() const { return path_; }
  /// What can be read: nothing of a process in /proc that has ended meanwhile.
  static std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

}  // namespace perseus::clock_control
