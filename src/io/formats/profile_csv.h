// Reads a profile from CSV in the formats of existing profilers.
//
// Columns, in any order, others ignored: `stage` (or Zeus's `pp_rank`), `instruction`, `frequency` (MHz), `time` (s),
// `energy` (J); the last three also as frequency_mhz, time_s, energy_j. Instructions are those of
// planning/model/instruction.h, `-` for `_` allowed.
//
// - Rows with the same stage, instruction, clock and rank are samples: their mean is the measurement; their spread
//   (sample standard deviation) and number are kept.
// - `time_stddev`, `energy_stddev` (also time_stddev_s, energy_stddev_j) and `samples` may describe a row that is
//   already a mean; several such rows are merged as the samples that they represent. Empty and nan: no spread.
// - With Zeus's `rank` column (or tp_rank/dp_rank without it) the ranks of a stage are merged: time is the maximum,
//   energy the sum, `accelerators` of that stage the number of ranks. A clock that not every rank of the stage has
//   for that instruction is dropped; an instruction that is left without clocks, or that some ranks lack, is an
//   error.
// - The frequency of constant-time instructions has no meaning and is stored as 0, so all their rows are samples of
//   one measurement.
// - A clock that a stage's forward has and its backward lacks, or the reverse, is kept.
//
// Input:   a header line and one row per measurement. Quotes, CRLF, byte order mark and blank lines are accepted; a
//          file may be gzipped.
// Output:  a valid Profile. Limits: stage < 65536, 1 <= frequency <= 1000000 MHz, 0 < time <= 1e6 s, 0 <= energy <=
//          1e15 J, 256 MiB.
// Errors:  "file:line: column: value; what is allowed", the first one in the file.
// Cost:    O(rows log rows).
// Source:  paper section 5 (Profiler).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "planning/model/profile.h"

namespace perseus::formats {

/// `name` identifies the file in messages.
Result<model::Profile> parse_profile_csv(std::string_view text, const std::string& name);
Result<model::Profile> read_profile_csv(const std::string& path);

// Writes a profile as CSV: `stage,instruction,frequency,time,energy`, as read_profile_csv() reads it.
// Stages with merged ranks get a `rank` column, and each rank its share of the energy. Any spread is written too, as
// `time_stddev,energy_stddev,samples`. Numbers are the shortest text that reads back the same; only where ranks were
// merged the last digits of their shares may differ.

std::string format_profile_csv(const model::Profile& profile);

}  // namespace perseus::formats
