#include "io/formats/action_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>
#include <utility>

#include "io/formats/csv.h"
#include "io/formats/file.h"
#include "io/formats/number.h"

namespace perseus::formats {
namespace {

constexpr std::string_view kOverlapped = "OVERLAP_F_B";
constexpr const char* kAllowedCells =
    "<stage><type><microbatch> with type F, B, BW, I, W, REDUCE_GRAD, SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD or "
    "RESHARD, WAIT_F or WAIT_B "
    "(for example 2F0), (0F7;7B3)OVERLAP_F_B, or nothing";

struct ActionType {
  std::string_view text;
  std::optional<model::Instruction> instruction;  ///< none: the action is left out
  bool has_microbatch;
};
constexpr std::array kActionTypes = {
    ActionType{"F", model::Instruction::forward, true},
    ActionType{"B", model::Instruction::backward, true},
    ActionType{"BW", model::Instruction::backward, true},
    ActionType{"I", model::Instruction::input_gradient, true},
    ActionType{"W", model::Instruction::weight_gradient, true},
    ActionType{"REDUCE_GRAD", model::Instruction::all_reduce, false},
    ActionType{"SEND_F", std::nullopt, false},
    ActionType{"RECV_F", std::nullopt, false},
    ActionType{"SEND_B", std::nullopt, false},
    ActionType{"RECV_B", std::nullopt, false},
    ActionType{"UNSHARD", std::nullopt, false},
    ActionType{"RESHARD", std::nullopt, false},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Removes and returns the leading digits of `text`.
std::string_view take_digits(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

/// Reads one plain action into `actions`; false if the text is not a plain action.
bool read_action(std::string_view text, std::vector<model::Action>& actions) {
  const auto stage = number_in<int>(take_digits(text));
  std::size_t end = text.size();
  while (end > 0 && is_digit(text[end - 1])) --end;
  const std::string_view digits = text.substr(end);
  const auto type = std::ranges::find(kActionTypes, text.substr(0, end), &ActionType::text);
  if (!stage || *stage > kMaxStage || type == kActionTypes.end()) return false;
  const auto microbatch = number_in<int>(digits);
  if (!digits.empty() && (!microbatch || *microbatch > kMaxMicrobatch)) return false;
  if (type->has_microbatch && !microbatch) return false;
  if (type->instruction) { actions.push_back({*type->instruction, *stage, type->has_microbatch ? *microbatch : -1}); }
  return true;
}

/// The dependency of a rank's next computation: Action::instruction is forward or backward.
using Waits = std::vector<model::Action>;

/// Reads a cell like 1WAIT_F0; false if it is not a wait.
bool read_wait(std::string_view cell, Waits& waits) {
  const auto stage = number_in<int>(take_digits(cell));
  const bool is_forward = cell.starts_with("WAIT_F");
  if (!stage || *stage > kMaxStage || (!is_forward && !cell.starts_with("WAIT_B"))) return false;
  const auto microbatch = number_in<int>(cell.substr(6));
  if (!microbatch || *microbatch > kMaxMicrobatch) return false;
  waits.push_back({is_forward ? model::Instruction::forward : model::Instruction::backward, *stage, *microbatch});
  return true;
}

/// Reads one cell: nothing, an action, or overlapped actions.
bool read_cell(std::string_view cell, std::vector<model::Action>& actions) {
  if (cell.empty()) return true;
  if (!cell.starts_with('(')) return read_action(cell, actions);
  const std::size_t close = cell.find(')');
  if (close == std::string_view::npos || cell.substr(close + 1) != kOverlapped) return false;
  std::string_view parts = cell.substr(1, close - 1);
  for (;;) {
    const std::size_t end = std::min(parts.find(';'), parts.size());
    std::string_view part = parts.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!read_action(part, actions)) return false;
    if (end == parts.size()) return true;
    parts.remove_prefix(end + 1);
  }
}

/// The stage and the microbatch.
long place_of(const model::Action& a) { return static_cast<long>(a.stage) * (kMaxMicrobatch + 1L) + a.microbatch; }

/// Before torch 2.6 the input gradient was called B: such a B has a W beside it.
void rename_split_backwards(std::vector<model::Action>& actions) {
  std::unordered_set<long> split;
  for (const model::Action& action : actions) {
    if (action.instruction == model::Instruction::weight_gradient) split.insert(place_of(action));
  }
  for (const model::Action& action : actions) {
    if (action.instruction == model::Instruction::input_gradient) split.erase(place_of(action));
  }
  for (model::Action& action : actions) {
    if (action.instruction == model::Instruction::backward && split.contains(place_of(action))) {
      action.instruction = model::Instruction::input_gradient;
    }
  }
}

/// A wait for a backward that is split is a wait for its input gradient. Waits for actions that the table lacks have
/// no effect.
void resolve_waits(model::Schedule& schedule) {
  if (schedule.early_receives.empty()) return;
  std::unordered_set<long> split;
  for (const auto& actions : schedule.ranks) {
    for (const model::Action& action : actions) {
      if (action.instruction == model::Instruction::input_gradient) split.insert(place_of(action));
    }
  }
  for (model::EarlyReceive& receive : schedule.early_receives) {
    if (receive.before.instruction == model::Instruction::backward && split.contains(place_of(receive.before))) {
      receive.before.instruction = model::Instruction::input_gradient;
    }
  }
  std::erase_if(schedule.early_receives, [&](const model::EarlyReceive& receive) {
    return receive.before.stage >= schedule.num_stages || receive.before.microbatch >= schedule.num_microbatches;
  });
}

std::string_view code_of(model::Instruction instruction) {
  const auto type = std::ranges::find(kActionTypes, std::optional(instruction), &ActionType::instruction);
  return type == kActionTypes.end() ? std::string_view() : type->text;
}

}  // namespace

Result<model::Schedule> parse_action_table(std::string_view text, const std::string& name) {
  const auto invalid = [&](const std::string& what) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: {}", name, what)};
  };
  if (text.size() > kMaxFileBytes) return invalid("larger than the 256 MiB that are allowed");
  model::Schedule schedule;
  schedule.name = "action-table";
  CsvReader csv(text, name);
  for (;;) {
    const auto more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    if (csv.blank()) continue;
    std::vector<model::Action>& actions = schedule.ranks.emplace_back();
    Waits waits;
    std::vector<std::pair<model::Action, std::size_t>> waited;  // awaited action, index of the waiting action
    for (std::size_t cell = 0; cell < csv.fields().size(); ++cell) {
      const std::string_view text_of_cell = csv.fields()[cell];
      if (read_wait(text_of_cell, waits)) continue;
      const std::size_t next = actions.size();
      if (read_cell(text_of_cell, actions)) {
        if (actions.size() == next) continue;
        for (const model::Action& before : waits) waited.emplace_back(before, next);
        waits.clear();
        continue;
      }
      return csv.error(fmt::format("cell {}: '{}'; allowed: {}", cell + 1, text_of_cell.substr(0, 64), kAllowedCells));
    }
    rename_split_backwards(actions);
    for (const auto& [before, next] : waited) schedule.early_receives.push_back({before, actions[next]});
    for (const model::Action& action : actions) {
      schedule.num_stages = std::max(schedule.num_stages, action.stage + 1);
      schedule.num_microbatches = std::max(schedule.num_microbatches, action.microbatch + 1);
    }
  }
  if (schedule.ranks.empty()) return invalid("empty; one row per rank is needed");
  resolve_waits(schedule);
  if (Status status = schedule.validate(); !status) return invalid(status.error().message);
  return schedule;
}

Result<model::Schedule> read_action_table(const std::string& path) { return parsed_file(path, parse_action_table); }

Result<std::string> format_action_table(const model::Schedule& schedule) {
  std::string table;
  for (const auto& actions : schedule.ranks) {
    bool first = true;
    for (const model::Action& action : actions) {
      if (action.instruction == model::Instruction::load || action.instruction == model::Instruction::optimizer_step)
        continue;
      const std::string_view code = code_of(action.instruction);
      if (code.empty()) {
        return Error{ErrorCode::usage,
                     fmt::format("schedule {}: {} has no name in PyTorch's action tables; they know forward, backward, "
                                 "input_gradient, weight_gradient and all_reduce",
                                 schedule.name, model::text_of(action))};
      }
      if (!first) table += ',';
      first = false;
      table += fmt::format("{}{}", action.stage, code);
      if (action.microbatch >= 0) table += fmt::format("{}", action.microbatch);
    }
    table += '\n';
  }
  return table;
}

}  // namespace perseus::formats
