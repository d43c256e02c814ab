// An environment variable for the lifetime of an object.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace perseus::device {

class Environment {
 public:
  /// Null: removes the variable.
  Environment(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    set(value);
  }
  Environment(std::string name, const std::string& value) : Environment(std::move(name), value.c_str()) {}
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) {
    if (value == nullptr) {
      unsetenv(name_.c_str());
    } else {
      setenv(name_.c_str(), value, 1);
    }
  }
  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace perseus::device
