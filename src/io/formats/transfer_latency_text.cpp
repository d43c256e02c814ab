#include "io/formats/transfer_latency_text.h"

#include <fmt/format.h>

#include <vector>

#include "base/split.h"
#include "io/formats/number.h"

namespace perseus::formats {
namespace {

constexpr double kMostSeconds = 1e6;
constexpr std::string_view kExpected =
    "a number of seconds, or a list with a number or [forward, backward] per boundary";

Result<model::BoundaryLatency> read_boundary(const JsonReader& json) {
  if (const auto both = json.number()) return model::BoundaryLatency{Seconds(*both), Seconds(*both)};
  const auto pair = json.numbers();
  if (!pair || pair->size() != 2) return json.error("a number of seconds, or [forward, backward]");
  return model::BoundaryLatency{Seconds((*pair)[0]), Seconds((*pair)[1])};
}

Result<Seconds> parse_seconds(std::string_view text) {
  const auto value = number_in<double>(text);
  if (value && *value >= 0 && *value <= kMostSeconds) return Seconds(*value);
  return Error{ErrorCode::usage,
               fmt::format("transfer latency '{}'; allowed: 0 to {:g} s; one number, or one per boundary separated by "
                           "commas, FORWARD/BACKWARD where the directions differ",
                           text.substr(0, 64), kMostSeconds)};
}

/// One entry per boundary; `both`: the format of two directions that differ.
std::vector<std::string> entries_of(const model::TransferLatency& latency, fmt::format_string<double, double> both) {
  std::vector<std::string> entries;
  for (const auto& [forward, backward] : latency.boundaries) {
    entries.push_back(forward == backward ? fmt::format("{}", forward.value())
                                          : fmt::format(both, forward.value(), backward.value()));
  }
  return entries;
}

}  // namespace

Result<model::TransferLatency> read_transfer_latency(const JsonReader& json) {
  if (const auto all = json.number()) return model::TransferLatency(Seconds(*all));
  std::vector<model::BoundaryLatency> boundaries;
  std::optional<Error> wrong;
  const Status read = json.for_each([&](const JsonReader& element) -> Status {
    const auto boundary = read_boundary(element);
    if (!boundary) {
      wrong = boundary.error();
      return *wrong;
    }
    boundaries.push_back(*boundary);
    return Ok{};
  });
  if (wrong) return *wrong;
  if (!read || boundaries.empty()) return json.error(std::string(kExpected));
  return model::TransferLatency(std::move(boundaries));
}

std::string format_transfer_latency(const model::TransferLatency& latency) {
  if (latency.boundaries.empty()) return fmt::format("{}", latency.common.value());
  return fmt::format("[{}]", fmt::join(entries_of(latency, "[{}, {}]"), ", "));
}

std::string transfer_latency_option(const model::TransferLatency& latency) {
  if (latency.boundaries.empty()) return fmt::format("{}", latency.common.value());
  return fmt::format("{}", fmt::join(entries_of(latency, "{}/{}"), ","));
}

Result<model::TransferLatency> parse_transfer_latency(std::string_view text) {
  std::vector<model::BoundaryLatency> boundaries;
  for (const std::string_view entry : split(text, ',')) {
    const auto slash = entry.find('/');
    const auto forward = parse_seconds(entry.substr(0, slash));
    if (!forward) return forward.error();
    const auto backward = slash == std::string_view::npos ? forward : parse_seconds(entry.substr(slash + 1));
    if (!backward) return backward.error();
    boundaries.push_back({*forward, *backward});
  }
  const auto& [forward, backward] = boundaries.front();
  if (boundaries.size() == 1 && forward == backward) return model::TransferLatency(forward);
  return model::TransferLatency(std::move(boundaries));
}

}  // namespace perseus::formats
