#include "server/jobs/meter_readings.h"

#include <fmt/format.h>

#include <type_traits>

#include "io/formats/described_json.h"

namespace perseus::jobs {
namespace {

constexpr std::size_t kMostReadings = 20'000;
constexpr double kMostReading_w = 1e12, kLatest_s = 1e11;

struct ReadingBody {
  std::string domain;
  double at_s = 0, power_w = 0;
};
struct ReadingsBody {
  std::vector<ReadingBody> readings;
};
void describe(auto& f, formats::MaybeConst<ReadingBody> auto& s) {
  f.always("domain", s.domain);
  f("at_s", s.at_s);
  f.always("power_w", s.power_w);
}
void describe(auto& f, formats::MaybeConst<ReadingsBody> auto& s) { f.always("readings", s.readings); }

}  // namespace

Result<std::vector<MeterReading>> parse_meter_readings(std::string_view text, const std::string& name) {
  const auto body = formats::parse_json_as<ReadingsBody>(text, name);
  if (!body) return body.error();
  if (body->readings.empty() || body->readings.size() > kMostReadings) {
    return Error{ErrorCode::usage,
                 fmt::format("{}: readings: {} entries; allowed: 1 to {}", name, body->readings.size(), kMostReadings)};
  }
  std::vector<MeterReading> readings;
  for (const ReadingBody& one : body->readings) {
    const std::string at = fmt::format("{}: readings[{}].", name, readings.size());
    if (!(one.power_w >= 0 && one.power_w <= kMostReading_w)) {
      return Error{ErrorCode::usage, fmt::format("{}power_w: {}; allowed: 0 to {:g}", at, one.power_w, kMostReading_w)};
    }
    if (!(one.at_s >= 0 && one.at_s <= kLatest_s)) {
      return Error{ErrorCode::usage, fmt::format("{}at_s: {}; allowed: seconds since 1970", at, one.at_s)};
    }
    readings.push_back({one.domain, one.at_s, Watts(one.power_w)});
  }
  return readings;
}

}  // namespace perseus::jobs
