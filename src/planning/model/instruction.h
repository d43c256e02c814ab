// The instructions of pipeline schedules, and their names in CSV, JSON, plan files and the C ABI.
//
// Threads: constants.
// Source:  paper section 4.4 (constant-time operations, other schedules); names are Zeus' names if Zeus has them.
#pragma once

#include <optional>
#include <string_view>

namespace perseus::model {

enum class Instruction : unsigned char {
  forward,
  backward,         ///< full backward, including recomputation if the stage recomputes
  input_gradient,   ///< first half of a split backward (zero-bubble schedules; "I" in PyTorch's tables)
  weight_gradient,  ///< second half ("W")
  recompute,        ///< the forward again, ahead of its backward (early recomputation 1F1B)
  pure_backward,    ///< backward without its recomputation
  load,             ///< constant-time: batch loading, once per microbatch before the forward
  all_reduce,       ///< constant-time: gradient synchronization, once at the end of the iteration
  optimizer_step,   ///< constant-time: once, last of all
};

inline constexpr int kNumInstructions = 9;

/// snake_case name, e.g. "input_gradient".
std::string_view name_of(Instruction instruction);
/// The inverse; empty for an unknown name.
std::optional<Instruction> instruction_named(std::string_view name);
/// load, all_reduce and optimizer_step: no clock affects them, so they have exactly one option, at clock 0.
bool is_constant_time(Instruction instruction);

}  // namespace perseus::model
