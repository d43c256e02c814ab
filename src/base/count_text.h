// A count with its noun: "1 rank", "12 ranks", "4 microbatches".
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace perseus {

/// `noun`: in the singular; its plural ends with s, behind ch with es.
std::string count_text(std::integral auto count, std::string_view noun) {
  const std::string_view ending = count == 1 ? "" : noun.ends_with("ch") ? "es" : "s";
  return std::to_string(count) + " " + std::string(noun) + std::string(ending);
}

}  // namespace perseus
