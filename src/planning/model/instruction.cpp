#include "planning/model/instruction.h"

#include <algorithm>
#include <array>

namespace perseus::model {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, kNumInstructions> kInstructionNames = {
    "forward",       "backward", "input_gradient", "weight_gradient", "recompute",
    "pure_backward", "load",     "all_reduce",     "optimizer_step"};

}  // namespace

std::string_view name_of(Instruction instruction) { return kInstructionNames[static_cast<std::size_t>(instruction)]; }

std::optional<Instruction> instruction_named(std::string_view name) {
  const auto* const found = std::ranges::find(kInstructionNames, name);
  if (found == kInstructionNames.end()) return std::nullopt;
  return static_cast<Instruction>(found - kInstructionNames.begin());
}

bool is_constant_time(Instruction instruction) { return instruction >= Instruction::load; }

}  // namespace perseus::model
