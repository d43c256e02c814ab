#include "plan/slowdown.h"

#include <fmt/format.h>

#include "command_line/command.h"
#include "io/formats/number.h"

namespace perseus::cli {
namespace {

constexpr double kMost_pct = 1000;

}  // namespace

Result<double> slowdown_of(const std::string& text) {
  const auto pct = text.ends_with('%') ? formats::number_in<double>(std::string_view(text).substr(0, text.size() - 1))
                                       : std::optional<double>();
  if (pct && *pct >= 0 && *pct <= kMost_pct) return *pct / 100;
  return Error{ErrorCode::usage, fmt::format("'{}' is not a percentage from 0% to {:g}%, like 0.3%", text, kMost_pct)};
}

CLI::Option* add_slowdown_option(CLI::App& subcommand, std::string& slowdown) {
  const auto check = [](const std::string& text) {
    const Result<double> value = slowdown_of(text);
    return value ? std::string() : value.error().message;
  };
  return add_default(subcommand, "--slowdown PERCENT", slowdown,
                     "Slowdown to tolerate without a straggler, against everything at maximum clock",
                     CLI::Validator(check, ""));
}

model::DefaultRule default_rule(const std::string& method, double slowdown) { return {slowdown, method == "perseus"}; }

model::DefaultRule default_rule_of(const formats::PlanFile& file) {
  const auto noted = [&](const char* key) {
    const auto found = file.metadata.find(key);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  const auto slowdown = formats::number_in<double>(noted(kSlowdownKey));
  return default_rule(noted("method"), slowdown && *slowdown >= 0 ? *slowdown : 0);
}

}  // namespace perseus::cli
