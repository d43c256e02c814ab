#include "io/trace/trace_event.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/split.h"
#include "io/formats/number.h"
#include "io/trace/event_splitter.h"

namespace perseus::trace {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr double kMost_us = 1e18;

Error broken(std::string message) { return {ErrorCode::invalid_input, std::move(message)}; }

std::optional<double> number_of(std::string_view text) {
  while (!text.empty() && (text.front() == '"' || text.front() == ' ')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == '"' || text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text.starts_with('+') ? std::nullopt : formats::number_in<double>(text);
}

void read_time(std::string_view member, std::string_view token, std::optional<double>& time_us, TraceEvent& event) {
  time_us = number_of(token);
  if (time_us && std::isfinite(*time_us) && std::abs(*time_us) <= kMost_us) return;
  time_us.reset();
  event.wrong = {member, token, "a number of microseconds"};
}

}  // namespace

std::optional<int> whole_number(std::string_view text) {
  if (text == "null") return -1;
  const auto value = number_of(text);
  if (!value || *value != std::floor(*value) || *value < -1 || *value > std::numeric_limits<int>::max())
    return std::nullopt;
  return static_cast<int>(*value);
}

void TraceEventParser::read_arguments_of(const TraceNames& names) {
  for (std::size_t f = 0; f < kNumFields; ++f) {
    if (names.places[f].starts_with("args.")) args_.emplace_back(names.places[f], f);
  }
}

simdjson::error_code TraceEventParser::parse(std::string_view text, ondemand::document& document) {
  return parser_.iterate(text.data(), text.size(), text.size() + EventSplitter::kPadding).get(document);
}

std::string_view TraceEventParser::name_of(std::string_view text) {
  ondemand::document document;
  std::string_view name;
  if (parse(text, document) || document["name"].get(name)) return {};
  return name;
}

Status TraceEventParser::parse(std::string_view text, TraceEvent& event) {
  ondemand::document document;
  ondemand::object members;
  if (const auto error = parse(text, document)) return broken(fmt::format("{}; expected JSON", error_message(error)));
  if (const auto error = document.get_object().get(members))
    return broken(fmt::format("{}; expected an object", error_message(error)));
  for (auto member : members) {
    ondemand::raw_json_string key;
    ondemand::value value;
    if (member.key().get(key) || member.value().get(value)) return broken("broken JSON; expected \"key\": value");
    simdjson::error_code error = simdjson::SUCCESS;
    if (key == "ph") {
      error = value.get_string().get(event.phase);
      if (error == simdjson::SUCCESS && !event.matters()) return Ok{};
    } else if (key == "name") {
      if (value.get_string().get(event.name)) event.name = {};  // some recorders write null
    } else if (key == "cat") {
      if (value.get_string().get(event.category)) event.category = {};
    } else if (key == "pid") {
      event.pid = trimmed(value.raw_json_token());
    } else if (key == "tid") {
      event.tid = trimmed(value.raw_json_token());
    } else if (key == "ts") {
      read_time("ts", trimmed(value.raw_json_token()), event.ts, event);
    } else if (key == "dur") {
      read_time("dur", trimmed(value.raw_json_token()), event.dur, event);
    } else if (key == "args") {
      error = read_args(value, event);
    }
    if (error) return broken(fmt::format("{}; expected an event's members", error_message(error)));
  }
  return Ok{};
}

simdjson::error_code TraceEventParser::read_args(ondemand::value value, TraceEvent& event) const {
  ondemand::object args;
  if (value.get_object().get(args)) return simdjson::SUCCESS;  // some recorders write null
  for (auto arg : args) {
    ondemand::raw_json_string key;
    if (const auto error = arg.key().get(key)) return error;
    ondemand::value inner;
    if (const auto error = arg.value().get(inner)) return error;
    if (event.phase == "M" && key == "name") {
      if (inner.get_string().get(event.thread_name)) event.thread_name = {};
      continue;
    }
    if (key == "iteration") event.iteration = whole_number(trimmed(inner.raw_json_token())).value_or(-1);
    if (key == "step") event.step = whole_number(trimmed(inner.raw_json_token())).value_or(-1);
    for (const auto& [place, field] : args_) {
      if (key != std::string_view(place).substr(5)) continue;
      const std::string_view token = trimmed(inner.raw_json_token());
      const auto number = whole_number(token);
      if (!number) event.wrong = {place, token, "a whole number from 0"};
      event.args[field] = number.value_or(-1);
    }
  }
  return simdjson::SUCCESS;
}

}  // namespace perseus::trace
