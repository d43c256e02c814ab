#include "server/openadr/iso8601.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "base/terminal_text.h"

namespace perseus::openadr {
namespace {

namespace chrono = std::chrono;

constexpr int kMostDigits = 9;
constexpr int kNeverEnds_years = 1000;
constexpr double kLastTime_s = 253402300800;  // of the year 9999

/// Reads digits and separators from the front of a text.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  bool skip(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  char next() {
    if (rest_.empty()) return '\0';
    const char first = rest_.front();
    rest_.remove_prefix(1);
    return first;
  }
  /// Between `least` and `most` digits.
  std::optional<int> digits(int least, int most) {
    int count = 0, value = 0;
    while (count < most && !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      value = value * 10 + (next() - '0');
      ++count;
    }
    if (count < least) return std::nullopt;
    return value;
  }
  /// ".123", if there is one; digits beyond the ninth are dropped.
  std::optional<double> fraction() {
    if (!skip('.') && !skip(',')) return 0;
    double value = 0, scale = 1;
    int count = 0;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      const int digit = next() - '0';
      if (++count > kMostDigits) continue;
      value = value * 10 + digit;
      scale *= 10;
    }
    if (count == 0) return std::nullopt;
    return value / scale;
  }

 private:
  std::string_view rest_;
};

struct TimeOfDay {
  double seconds = 0;
  std::optional<double> zone_s;  ///< east of UTC; none: the text names no zone
};

std::optional<double> read_zone(TextReader& text) {
  if (text.skip('Z') || text.skip('z')) return 0;
  const double sign = text.skip('-') ? -1 : text.skip('+') ? 1 : 0;
  if (sign == 0) return std::nullopt;
  const auto hours = text.digits(2, 2);
  if (!hours) return std::nullopt;
  const bool is_short = !text.skip(':') && text.at_end();
  const auto minutes = is_short ? 0 : text.digits(2, 2);
  if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  return sign * (*hours * 3600.0 + *minutes * 60.0);
}

/// What follows the date: nothing, or a time with or without a zone.
std::optional<TimeOfDay> read_time_of_day(TextReader& text) {
  if (text.at_end()) return TimeOfDay{};
  if (!text.skip('T') && !text.skip('t') && !text.skip(' ')) return std::nullopt;
  const auto hours = text.digits(2, 2);
  if (!hours || !text.skip(':')) return std::nullopt;
  const auto minutes = text.digits(2, 2);
  if (!minutes) return std::nullopt;
  const bool has_seconds = text.skip(':');
  const auto seconds = has_seconds ? text.digits(2, 2) : 0;
  if (!seconds || *hours > 23 || *minutes > 59 || *seconds > 60) return std::nullopt;  // 60: a leap second
  const auto fraction = has_seconds ? text.fraction() : 0;
  if (!fraction) return std::nullopt;
  TimeOfDay time{*hours * 3600.0 + *minutes * 60.0 + *seconds + *fraction, std::nullopt};
  if (text.at_end()) return time;
  time.zone_s = read_zone(text);
  if (!time.zone_s || !text.at_end()) return std::nullopt;
  return time;
}

Error wrong_time(std::string_view text) {
  return {ErrorCode::invalid_input,
          fmt::format("time '{}'; allowed: like 2026-03-14T09:30:00Z, with a time zone, or 0001-01-01 for now",
                      terminal_text(text.substr(0, 64)))};
}

Error wrong_duration(std::string_view text) {
  return {ErrorCode::invalid_input, fmt::format("duration '{}'; allowed: like PT1H30M, P7D or P9999Y, not negative",
                                                terminal_text(text.substr(0, 64)))};
}

/// Adds "3D", in the order of `units`, to `seconds`; false if the text is something else.
bool add_parts(TextReader& text, std::string_view units, const double* lengths, double& seconds, bool& any) {
  std::size_t unit = 0;
  while (true) {
    TextReader ahead = text;
    const auto whole = ahead.digits(1, kMostDigits);
    if (!whole) return true;
    const auto fraction = ahead.fraction();
    if (!fraction) return false;
    const char name = ahead.next();
    const std::size_t found = units.find(name, unit);
    if (name == '\0' || found == std::string_view::npos) return true;  // the caller's, or an error there
    if (*fraction != 0 && name != 'S') return false;
    seconds += (*whole + *fraction) * lengths[found];
    unit = found + 1;
    any = true;
    text = ahead;
  }
}

}  // namespace

Result<std::optional<double>> parse_event_time(std::string_view text) {
  TextReader reader(text);
  const auto year = reader.digits(4, 4);
  if (!year || !reader.skip('-')) return wrong_time(text);
  const auto month = reader.digits(2, 2);
  if (!month || !reader.skip('-')) return wrong_time(text);
  const auto day = reader.digits(2, 2);
  if (!day) return wrong_time(text);
  const chrono::year_month_day date{chrono::year(*year), chrono::month(static_cast<unsigned>(*month)),
                                    chrono::day(static_cast<unsigned>(*day))};
  const auto time = read_time_of_day(reader);
  constexpr int last_year_of_now = 1;
  if (time && *year <= last_year_of_now) return std::optional<double>();
  if (!date.ok() || !time || !time->zone_s) return wrong_time(text);
  const double days = static_cast<double>(chrono::sys_days(date).time_since_epoch().count());
  return std::optional<double>(days * kSecondsPerDay + time->seconds - *time->zone_s);
}

Result<IsoDuration> parse_iso_duration(std::string_view text) {
  constexpr double date_lengths[] = {12, 1};
  constexpr double day_lengths[] = {7 * kSecondsPerDay, kSecondsPerDay};
  constexpr double time_lengths[] = {3600, 60, 1};
  TextReader reader(text);
  if (!reader.skip('P')) return wrong_duration(text);
  IsoDuration duration;
  double months = 0;
  bool any = false;
  if (!add_parts(reader, "YM", date_lengths, months, any)) return wrong_duration(text);
  if (!add_parts(reader, "WD", day_lengths, duration.seconds, any)) return wrong_duration(text);
  if (reader.skip('T')) {
    any = false;
    if (!add_parts(reader, "HMS", time_lengths, duration.seconds, any)) return wrong_duration(text);
  }
  if (!any || !reader.at_end()) return wrong_duration(text);
  constexpr double years_per_month = 1.0 / 12;
  constexpr double years_per_second = 1 / (365.25 * kSecondsPerDay);
  if (months * years_per_month + duration.seconds * years_per_second >= kNeverEnds_years) {
    return IsoDuration{0, 0, true};
  }
  duration.months = static_cast<int>(months);
  return duration;
}

double end_of(double start_s, const IsoDuration& duration) {
  if (duration.never_ends) return kForever;
  if (duration.months == 0 || !(std::abs(start_s) < kLastTime_s)) return start_s + duration.seconds;
  const double days = std::floor(start_s / kSecondsPerDay);
  const chrono::year_month_day date{chrono::sys_days(chrono::days(static_cast<int>(days)))};
  const chrono::year_month month = date.year() / date.month() + chrono::months(duration.months);
  const chrono::day last = (month / chrono::last).day();
  const chrono::year_month_day moved = month / std::min(date.day(), last);
  const double moved_days = static_cast<double>(chrono::sys_days(moved).time_since_epoch().count());
  return moved_days * kSecondsPerDay + (start_s - days * kSecondsPerDay) + duration.seconds;
}

std::string time_text(double time_s) {
  if (!(std::abs(time_s) < kLastTime_s)) return time_s > 0 ? "never" : "ever";
  const double days = std::floor(time_s / kSecondsPerDay);
  const chrono::year_month_day date{chrono::sys_days(chrono::days(static_cast<int>(days)))};
  const int seconds = static_cast<int>(time_s - days * kSecondsPerDay);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), seconds / 3600,
                     seconds / 60 % 60, seconds % 60);
}

}  // namespace perseus::openadr
