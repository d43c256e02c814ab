// Which texts a job may carry: the server refuses a job with another one, and the client leaves it out before.
//
// Errors:  usage, with what is allowed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace perseus {

constexpr std::size_t kMaxJobText = 256;
constexpr std::size_t kMaxLabelWord = 63;
constexpr std::size_t kMaxLabels = 32;
constexpr std::size_t kMaxFacts = 64;
/// Prefix of the facts that the server adds itself.
constexpr std::string_view kOwnFacts = "perseus.";

/// At most that many bytes of UTF-8, without control characters and without those that are not seen or turn the text
/// around them. `what`: named in the error.
Status check_text(const std::string& what, std::string_view text, std::size_t most);
/// May be empty, but not only spaces. `what`: named in the error.
Status check_job_name(const std::string& what, std::string_view name);
Status check_fact(const std::string& key, std::string_view value);

bool is_label_word(std::string_view text);
Status check_label(const std::string& name, std::string_view value);

}  // namespace perseus
