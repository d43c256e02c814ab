// Reads and writes pipeline schedules as PyTorch's action tables (`_dump_csv`, both of its formats).
//
// Format: CSV without header; one row per rank, one cell per action; an empty cell is a bubble. A cell is
// <stage><type><microbatch>, for example 2F0; types are F forward, B full backward, I input gradient, W weight
// gradient, REDUCE_GRAD (all_reduce; its microbatch, if any, is ignored); (0F7;7B3)OVERLAP_F_B is its parts in order.
// SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD and RESHARD are accepted and left out: the dependencies follow from the
// computations, and transfer time is a cost of the DAG. A cell 1WAIT_F0 or 1WAIT_B0, which PyTorch does not have,
// means that the rank's next computation waits for stage 1's forward or backward (or input gradient) of microbatch 0,
// even if it does not need it yet: some versions of PyTorch receive everything at once.
//
// Output:  a Schedule that passes validate(), with as many stages and microbatches as the table names.
// Errors:  "name:line: cell N: text; what is allowed", a stage or microbatch without all of its computations, no
//          rows. Limits: stage < 65536, microbatch < 1048576, 256 MiB.
// Source:  torch.distributed.pipelining.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "planning/model/schedule.h"

namespace perseus::formats {

Result<model::Schedule> parse_action_table(std::string_view text, const std::string& name);
Result<model::Schedule> read_action_table(const std::string& path);

/// The compute-only table. load and optimizer_step are left out, since PyTorch has no action for them; recompute and
/// pure_backward are an Error for the same reason.
Result<std::string> format_action_table(const model::Schedule& schedule);

}  // namespace perseus::formats
