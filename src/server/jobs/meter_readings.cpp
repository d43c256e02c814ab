#include "server/jobs/meter_readings.h"

#include <fmt/format.h>

#include "io/formats/described_json.h"

namespace perseus::jobs {

void describe(auto& f, formats::MaybeConst<MeterReading> auto& s) {
  f.always("domain", s.domain);
  f("at_s", s.at_s);
  f.always("power_w", s.power);
}

namespace {

constexpr std::size_t kMostReadings = 20'000;
constexpr Watts kMostReading(1e12);
constexpr double kLatest_s = 1e11;

struct ReadingsBody {
  std::vector<MeterReading> readings;
};
void describe(auto& f, formats::MaybeConst<ReadingsBody> auto& s) { f.always("readings", s.readings); }

}  // namespace

Result<std::vector<MeterReading>> parse_meter_readings(std::string_view text, const std::string& name) {
  const auto body = formats::parse_json_as<ReadingsBody>(text, name);
  if (!body) return body.error();
  if (body->readings.empty() || body->readings.size() > kMostReadings) {
    return Error{ErrorCode::usage,
                 fmt::format("{}: readings: {} entries; allowed: 1 to {}", name, body->readings.size(), kMostReadings)};
  }
  for (std::size_t k = 0; k < body->readings.size(); ++k) {
    const MeterReading& one = body->readings[k];
    const std::string at = fmt::format("{}: readings[{}].", name, k);
    if (!(one.power >= Watts(0) && one.power <= kMostReading)) {
      return Error{ErrorCode::usage,
                   fmt::format("{}power_w: {}; allowed: 0 to {:g}", at, one.power.value(), kMostReading.value())};
    }
    if (!(one.at_s >= 0 && one.at_s <= kLatest_s)) {
      return Error{ErrorCode::usage, fmt::format("{}at_s: {}; allowed: seconds since 1970", at, one.at_s)};
    }
  }
  return body->readings;
}

}  // namespace perseus::jobs
