// A step of a scenario as text, and the comparison of what it expects with what is found.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/jobs/requests.h"

namespace perseus::testing {

/// One line: words, and name=value (name~value, name>value, name<value) among them.
struct ScenarioStep {
  std::vector<std::string> words;
  struct Option {
    std::string name;
    char relation;
    std::string value;
  };
  std::vector<Option> options;

  [[nodiscard]] std::optional<std::string> find(const std::string& name) const;
  [[nodiscard]] std::string text(const std::string& name, const std::string& otherwise = "") const {
    return find(name).value_or(otherwise);
  }
  [[nodiscard]] double number(const std::string& name, double otherwise) const;
  [[nodiscard]] int whole(const std::string& name, int otherwise) const {
    return static_cast<int>(number(name, otherwise));
  }
  [[nodiscard]] std::int64_t epoch() const;
};
ScenarioStep parse_step(const std::string& line);

/// The properties of an answer or of a job that a step may name.
struct ScenarioFacts {
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
};
/// Ok, or the first option of the step that does not hold.
Status compare(const ScenarioStep& step, const ScenarioFacts& facts);

/// The policy that a step `policy` names; `start_s`: the scenario's start.
Result<jobs::Policy> policy_in(const ScenarioStep& step, double start_s);

/// The error of a step that is wrong, or that finds what it does not expect.
Error wrong_step(const std::string& message);

}  // namespace perseus::testing
