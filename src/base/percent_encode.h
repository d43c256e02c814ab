// Percent-encoding of text in URLs.
//
// Output:  everything but letters, digits and -._~ becomes %XX.
// Cost:    O(length).
// Source:  RFC 3986, section 2.
#pragma once

#include <string>
#include <string_view>

namespace perseus {

std::string percent_encode(std::string_view text);

}  // namespace perseus
