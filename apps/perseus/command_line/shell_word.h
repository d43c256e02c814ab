// Words of a command line, quoted where a shell needs it.
#pragma once

#include <string>

namespace perseus::cli {

/// The word as a shell reads it back.
std::string shell_word(const std::string& word);

}  // namespace perseus::cli
