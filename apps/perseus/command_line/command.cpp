#include "command_line/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <type_traits>
#include <utility>

#include "base/error_table.h"
#include "base/standard_streams.h"
#include "base/terminal_text.h"
#include "io/formats/boost_json_text.h"
#include "io/formats/number.h"
#include "io/formats/transfer_latency_text.h"
#include "planning/model/make_schedule.h"

namespace perseus::cli {
namespace {

template <class Number>
CLI::Validator within(Number least, Number most, std::string unit, const char* kind) {
  const std::string allowed = std::is_integral_v<Number>
                                  ? fmt::format("{} to {}", least, most)
                                  : fmt::format("{:g} to {:g}", static_cast<double>(least), static_cast<double>(most));
  return {[=](const std::string& text) -> std::string {
            const auto value = formats::number_in<Number>(text);
            if (value && *value >= least && *value <= most) return {};
            return fmt::format("'{}' is not a {} from {}{}{}", text, kind, allowed, unit.empty() ? "" : " ", unit);
          },
          ""};
}

}  // namespace

CLI::Option* add_json_flag(CLI::App& subcommand, Command& command) {
  return subcommand.add_flag("--json", command.json, "Print one JSON object instead of text, for errors too");
}

void set_run(CLI::App& subcommand, Command& command, std::function<Result<int>()> run) {
  subcommand.callback([&command, run = std::move(run)] { command.run = run; });
}

CLI::Validator number_within(double least, double most, std::string unit) {
  return within(least, most, std::move(unit), "number");
}

CLI::Validator whole_number_within(std::int64_t least, std::int64_t most, std::string unit) {
  return within(least, most, std::move(unit), "whole number");
}

CLI::Validator schedule_names() {
  return {[](std::string& text) -> std::string {
            std::string ours;
            for (std::size_t begins = 0; begins <= text.size();) {
              const std::size_t ends = std::min(text.find(',', begins), text.size());
              const std::string name = text.substr(begins, ends - begins);
              ours += (begins > 0 ? "," : "") + model::schedule_named(name).value_or(name);
              begins = ends + 1;
            }
            text = ours;
            return {};
          },
          ""};
}

CLI::Option* add_transfer_latency(CLI::App& app, const std::string& description,
                                  std::function<void(const model::TransferLatency&)> set) {
  return app
      .add_option_function<std::string>(
          "--transfer-latency",
          [set = std::move(set)](const std::string& text) {
            const auto latency = formats::parse_transfer_latency(text);
            if (!latency) throw CLI::ValidationError("--transfer-latency", latency.error().message);
            set(*latency);
          },
          description)
      ->type_name("S");
}

void print(std::string_view text) { print_drawing(terminal_text(text)); }

void print_drawing(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void print_json(const boost::json::object& object) { print(formats::json_text(object) + "\n"); }

void note(std::string_view text) { write_error(fmt::format("perseus: note: {}\n", line_text(text))); }

static_assert(kAllErrors.size() == static_cast<std::size_t>(ErrorCode::unavailable) + 1);

std::string exit_codes_text(std::span<const ErrorCode> errors) {
  std::string text = "Exit codes:\n   0  done\n";
  for (const ErrorCode code : errors) {
    const ErrorEntry& entry = entry_of(code);
    text += fmt::format("  {:2}  {}\n", entry.exit_code, entry.meaning);
  }
  return text + fmt::format("  {:2}  out of memory\n", kOutOfMemoryExitCode);
}

std::string help_footer(std::span<const ErrorCode> errors, std::string_view examples) {
  return fmt::format("Examples:\n{}\n{}", examples, exit_codes_text(errors));
}

}  // namespace perseus::cli
