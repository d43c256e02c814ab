#include "figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace perseus::measure {
namespace {

/// The smallest sample that a share `q` of all is not above.
double quantile(const std::vector<double>& sorted, double q) {
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// A cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

template <class Items, class Write>
std::string joined(const Items& items, Write write) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ",") + write(item);
  return out;
}

}  // namespace

void Figures::begin_part(std::string_view name, std::string_view title) {
  parts_.push_back({std::string(name), std::string(title), {}, {}, {}});
}

void Figures::add(std::string what, std::string_view unit, std::vector<double> samples) {
  if (samples.empty()) return fact(std::move(what), "no sample");
  std::sort(samples.begin(), samples.end());
  parts_.back().figures.push_back({std::move(what), std::string(unit), quantile(samples, 0.5), quantile(samples, 0.9),
                                   quantile(samples, 0.99), samples.back(), samples.size()});
}

void Figures::fact(std::string what, std::string value) {
  parts_.back().facts.push_back({std::move(what), std::move(value)});
}

void Figures::fact(std::string what, double value, std::string_view unit) {
  fact(std::move(what), number(value) + (unit.empty() ? "" : " ") + std::string(unit));
}

void Figures::failed(std::string why) { parts_.back().failure = std::move(why); }
void Figures::head(std::string what, std::string value) { head_.push_back({std::move(what), std::move(value)}); }
void Figures::not_touched(std::string what) { not_touched_.push_back(std::move(what)); }

bool Figures::any_failed() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return !part.failure.empty(); });
}

std::string Figures::markdown() const {
  std::string out = "# GPU measurements\n\n";
  for (const Fact& fact : head_) out += "- " + fact.what + ": " + fact.value + "\n";
  out += "\nNot touched:\n";
  for (const std::string& text : not_touched_) out += "- " + text + "\n";
  for (const Part& part : parts_) {
    out += "\n## " + part.title + "\n\n";
    if (!part.figures.empty()) {
      out += "| figure | unit | p50 | p90 | p99 | max | samples |\n| --- | --- | --: | --: | --: | --: | --: |\n";
      for (const Figure& f : part.figures) {
        out += "| " + cell(f.what) + " | " + f.unit + " | " + number(f.p50) + " | " + number(f.p90) + " | " +
               number(f.p99) + " | " + number(f.maximum) + " | " + std::to_string(f.count) + " |\n";
      }
      if (!part.facts.empty() || !part.failure.empty()) out += "\n";
    }
    for (const Fact& fact : part.facts) out += "- " + fact.what + ": " + fact.value + "\n";
    if (!part.failure.empty()) out += "- **not measured: " + part.failure + "**\n";
  }
  return out;
}

std::string Figures::json() const {
  const auto fact = [](const Fact& f) { return quoted(f.what) + ":" + quoted(f.value); };
  const auto figure = [](const Figure& f) {
    return "{\"what\":" + quoted(f.what) + ",\"unit\":" + quoted(f.unit) + ",\"p50\":" + number(f.p50) +
           ",\"p90\":" + number(f.p90) + ",\"p99\":" + number(f.p99) + ",\"max\":" + number(f.maximum) +
           ",\"samples\":" + std::to_string(f.count) + "}";
  };
  const auto part = [&](const Part& p) {
    return "\n{\"name\":" + quoted(p.name) + ",\"title\":" + quoted(p.title) +
           ",\"failure\":" + (p.failure.empty() ? "null" : quoted(p.failure)) + ",\"figures\":[" +
           joined(p.figures, figure) + "],\"facts\":{" + joined(p.facts, fact) + "}}";
  };
  return "{\"run\":{" + joined(head_, fact) + "},\"not_touched\":[" + joined(not_touched_, quoted) + "],\"parts\":[" +
         joined(parts_, part) + "\n]}\n";
}

}  // namespace perseus::measure
