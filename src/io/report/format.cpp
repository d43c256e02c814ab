#include "io/report/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/utf8.h"
#include "planning/model/instruction.h"

namespace perseus::report {
namespace {

std::string with_commas(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  auto point = text.find('.');
  if (point == std::string::npos) point = text.size();
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  for (std::size_t at = point; at > first + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

/// Number of decimals that gives `digits` significant digits; 0 for large values.
int decimals_for(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return 0;
  return std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value)))), 0, 12);
}

std::string quantity(double value, int digits, const char* unit) {
  return with_commas(value, decimals_for(value, digits)) + unit;
}

char letter_of(const std::string& instruction) {
  if (instruction == model::name_of(model::Instruction::pure_backward)) return 'B';
  return instruction.empty() ? '?' : static_cast<char>(std::toupper(static_cast<unsigned char>(instruction[0])));
}

constexpr char32_t kReplacement = 0xFFFD;

/// Removes the next code point of `text` and returns it; U+FFFD for bytes that are not UTF-8 and for noncharacters.
char32_t take_code_point(std::string_view& text) {
  const CodePoint point = first_code_point(text);
  text.remove_prefix(std::max<std::size_t>(point.bytes, 1));
  return point.bytes == 0 || point.value == 0xFFFE || point.value == 0xFFFF ? kReplacement : point.value;
}

}  // namespace

std::string text_of(Seconds time) {
  const double s = time.value();
  if (s != 0 && std::abs(s) < 1e-3) return quantity(s * 1e6, 4, " us");
  if (s != 0 && std::abs(s) < 1) return quantity(s * 1e3, 4, " ms");
  return quantity(s, 5, " s");
}

std::string text_of(Joules energy) { return quantity(energy.value(), 5, " J"); }
std::string text_of(Watts power) { return quantity(power.value(), 3, " W"); }
std::string text_of(Megahertz clock) {
  return clock.value() == 0 ? "fixed clock" : fmt::format("{} MHz", clock.value());
}
std::string percent(double value) {
  if (std::abs(value) < 5e-4) value = 0;  // no "-0.000"
  return fmt::format("{:.{}f} %", value, std::abs(value) < 1 ? 3 : 2);
}

std::string short_name(const model::ComputationDag& dag, int computation) {
  const model::Computation& c = dag.computations[computation];
  const std::string letter(1, letter_of(dag.types[c.type].instruction));
  return c.microbatch < 0 ? letter : letter + std::to_string(c.microbatch);
}

std::string long_name(const model::ComputationDag& dag, int computation) {
  const model::Computation& c = dag.computations[computation];
  const model::ComputationType& type = dag.types[c.type];
  std::string name = type.instruction;
  if (c.microbatch >= 0) name += fmt::format(" {}", c.microbatch);
  if (type.stage >= 0) name += fmt::format(", stage {}", type.stage);
  return name;
}

std::vector<double> ticks_within(double low, double high, int count) {
  if (!(high - low > 1e-12 * std::max(std::abs(low), std::abs(high))) || count < 1) return {low};
  const double raw = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  const double mantissa = raw / power;
  const double step = power * (mantissa < 1.5 ? 1 : mantissa < 3.5 ? 2 : mantissa < 7.5 ? 5 : 10);
  std::vector<double> ticks;
  for (double k = std::ceil(low / step); k * step <= high + 1e-9 * step; ++k) ticks.push_back(k * step);
  return ticks;
}

std::string tick_label(double value, const std::vector<double>& ticks) {
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : value;
  if (std::abs(value) < 1e-9 * step) value = 0;  // no "-0.0"
  const int decimals = step == 0 ? 0 : std::clamp(-static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 12);
  return with_commas(value, decimals);
}

std::string escape_markup(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    switch (const char32_t c = take_code_point(text)) {
      case U'&':
        out += "&amp;";
        break;
      case U'<':
        out += "&lt;";
        break;
      case U'>':
        out += "&gt;";
        break;
      case U'"':
        out += "&quot;";
        break;
      case U'\'':
        out += "&#39;";
        break;
      case U'\t':
      case U'\n':
        out += ' ';
        break;
      default:
        append_utf8(out, c < 0x20 || (c >= 0x7F && c < 0xA0) ? kReplacement : c);
    }
  }
  return out;
}

}  // namespace perseus::report
