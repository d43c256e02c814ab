// Stand-in for {fmt}'s ranges: joins texts, for builds on machines without that library.
//
// Input:   a range of values, and what stands between them.
// Output:  std::string.
// Errors:  none.
#pragma once

#include <sstream>
#include <string>
#include <string_view>

#include "format.h"

namespace fmt {

template <class Range>
std::string join(const Range& values, std::string_view between) {
  std::ostringstream out;
  bool is_first = true;
  for (const auto& value : values) {
    if (!is_first) out << between;
    is_first = false;
    out << value;
  }
  return out.str();
}

}  // namespace fmt
