// A library that is loaded at run time if it is present, and its functions, each of which may be missing.
//
// Input:   names to try, in order.
// Output:  a handle, for as long as the process lives: drivers' libraries do not survive dlclose().
// Errors:  the loader's message about the last name.
// Cost:    the loader's.
// Threads: any.
#pragma once

#include <dlfcn.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace perseus::device {

class DynamicLibrary {
 public:
  static Result<DynamicLibrary> load(const std::vector<std::string>& names) {
    std::string why = "no name to load";
    for (const std::string& name : names) {
      if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return DynamicLibrary(handle);
      if (const char* said = dlerror()) why = said;
    }
    return Error{ErrorCode::not_found, why};
  }

  /// Null: the library has no such function.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace perseus::device
