#include "tests/server/scenario/scenario_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "io/formats/number.h"

namespace perseus::testing {
namespace {

std::vector<std::string> split_step(const std::string& line) {
  std::vector<std::string> parts;
  std::string part;
  bool quoted = false;
  for (const char c : line) {
    if (c == '#' && !quoted) break;
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      if (!part.empty()) parts.push_back(part);
      part.clear();
    } else {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

}  // namespace

std::optional<std::string> ScenarioStep::find(const std::string& name) const {
  for (const Option& option : options) {
    if (option.name == name) return option.value;
  }
  return std::nullopt;
}

double ScenarioStep::number(const std::string& name, double otherwise) const {
  const auto value = find(name);
  return value ? formats::number_in<double>(*value).value_or(NAN) : otherwise;
}

std::int64_t ScenarioStep::epoch() const {
  return formats::number_in<std::int64_t>(find("epoch").value_or("0")).value_or(-1);
}

ScenarioStep parse_step(const std::string& line) {
  ScenarioStep step;
  for (const std::string& part : split_step(line)) {
    const std::size_t relation = part.find_first_of("=~<>");
    if (relation == std::string::npos || relation == 0) {
      step.words.push_back(part);
    } else {
      step.options.push_back({part.substr(0, relation), part[relation], part.substr(relation + 1)});
    }
  }
  return step;
}

Status compare(const ScenarioStep& step, const ScenarioFacts& facts) {
  const auto& [numbers, texts] = facts;
  for (const ScenarioStep::Option& option : step.options) {
    if (const auto text = texts.find(option.name); text != texts.end()) {
      const bool holds =
          option.relation == '~' ? text->second.find(option.value) != std::string::npos : text->second == option.value;
      if (!holds) {
        return wrong_step(
            fmt::format("expected {}{}{}, found '{}'", option.name, option.relation, option.value, text->second));
      }
      continue;
    }
    const auto number = numbers.find(option.name);
    const auto wanted = formats::number_in<double>(option.value);
    if (number == numbers.end() || !wanted) {
      return wrong_step(
          fmt::format("expected {}{}{}, but there is no such thing now", option.name, option.relation, option.value));
    }
    const double found = number->second;
    const bool equal = std::abs(found - *wanted) <= 1e-6 * std::max(1.0, std::abs(*wanted));
    const bool holds = option.relation == '<' ? found < *wanted : option.relation == '>' ? found > *wanted : equal;
    if (!holds) {
      return wrong_step(fmt::format("expected {}{}{}, found {}", option.name, option.relation, option.value, found));
    }
  }
  return Ok{};
}

Result<jobs::Policy> policy_in(const ScenarioStep& step, double start_s) {
  if (step.find("power_cap")) return jobs::Policy(jobs::PowerCap{Watts(step.number("power_cap", 0))});
  if (step.find("pinned_point")) return jobs::Policy(jobs::Pin{std::nullopt, step.whole("pinned_point", 0)});
  if (step.find("pinned_time")) return jobs::Policy(jobs::Pin{Seconds(step.number("pinned_time", 0)), std::nullopt});
  if (!step.find("slowdown")) {
    return wrong_step("policy JOB power_cap=W | pinned_point=N | pinned_time=S | slowdown=X ...");
  }
  jobs::MaxSlowdown slowdown{step.number("slowdown", 1), {}, {}, ""};
  if (step.find("threshold")) slowdown.threshold = step.number("threshold", 0);
  std::stringstream samples(step.text("signal"));  // 0:10,60:100: seconds after the start and values
  for (std::string sample; std::getline(samples, sample, ',');) {
    const std::size_t colon = sample.find(':');
    const auto from = formats::number_in<double>(std::string_view(sample).substr(0, colon));
    const auto value = formats::number_in<double>(std::string_view(sample).substr(colon + 1));
    if (!from || !value) return wrong_step(fmt::format("signal: {}", sample));
    slowdown.signal.push_back({start_s + *from, *value});
  }
  return jobs::Policy(std::move(slowdown));
}

Error wrong_step(const std::string& message) { return {ErrorCode::usage, message}; }

}  // namespace perseus::testing
