// data/sample_profile.csv, part of the program so that `perseus demo` needs no other file.
//
// Threads: constant.
#pragma once

#include <string_view>

namespace perseus::cli {

std::string_view sample_profile_text();

}  // namespace perseus::cli
