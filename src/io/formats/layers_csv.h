// Reads and writes the layers of a model as CSV.
//
// A header line and one row per layer, or per layer and clock. Columns, in any order:
//
//   name           of the layer, 1 to 64 characters
//   forward_s      forward latency of one microbatch, > 0 and <= 1e6
//   kind           optional: embedding, transformer, mtp, head, other; default: transformer
//   frequency_mhz, backward_s, forward_j, backward_j
//                  optional: the clock, the backward's latency, both energies (energies come in pairs)
//
// Input:   with frequency_mhz, rows of the same name are one layer at several clocks; it must have each clock once,
//          and all layers the same clocks. Without it every row is a layer. Layers are in the order of their first
//          rows. Quotes, CRLF, byte order mark, blank lines and gzip are accepted as in all CSV input. Other columns
//          are an error: a misspelled one must not be ignored.
// Output:  layers as in planning/model/layer.h. Limits: 100000 layers, 1 <= clock <= 1000000 MHz, energies >= 0 and
//          <= 1e15 J, 256 MiB.
// Errors:  "file:line: column: value; allowed", the first one in the file.
// Cost:    O(rows log rows).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planning/model/layer.h"

namespace perseus::formats {

/// `name` identifies the file in messages.
Result<std::vector<model::Layer>> parse_layers_csv(std::string_view text, const std::string& name);
Result<std::vector<model::Layer>> read_layers_csv(const std::string& path);

/// All known columns of these layers; reads back the same.
std::string format_layers_csv(const std::vector<model::Layer>& layers);

}  // namespace perseus::formats
