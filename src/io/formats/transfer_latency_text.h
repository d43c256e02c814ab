// Text forms of a TransferLatency.
//
//   JSON:         a number, or a list with one entry per boundary: a number for both directions, or [forward,
//   backward]. Command line: "0.002", or "0.002,0.064/0.07,0.002": one entry per boundary, FORWARD/BACKWARD if they
//   differ.
//
// Output:  the value as written; planning/model/transfer_latency.h defines the valid values.
// Errors:  "file: JSON path: found; expected", or the entry and the allowed form.
// Source:  docs/formats.md.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "io/formats/json_reader.h"
#include "planning/model/transfer_latency.h"

namespace perseus::formats {

Result<model::TransferLatency> read_transfer_latency(const JsonReader& json);
std::string format_transfer_latency(const model::TransferLatency& latency);

/// An optional latency as a member of a described struct (io/formats/described_json.h).
template <class Optional>
struct TransferLatencyMember {
  Optional& latency;
  [[nodiscard]] bool empty() const { return !latency; }
};
template <class Optional>
TransferLatencyMember(Optional&) -> TransferLatencyMember<Optional>;
template <class Optional>
void append_json_form(std::string& out, const TransferLatencyMember<Optional>& member) {
  out += format_transfer_latency(*member.latency);
}
template <class Optional>
Status read_json_form(const JsonReader& json, const TransferLatencyMember<Optional>& member) {
  auto read = read_transfer_latency(json);
  if (!read) return read.error();
  member.latency = *std::move(read);
  return Ok{};
}

/// Parses the command-line form. Values are finite and >= 0.
Result<model::TransferLatency> parse_transfer_latency(std::string_view text);
/// The form that parse_transfer_latency() reads.
std::string transfer_latency_option(const model::TransferLatency& latency);

}  // namespace perseus::formats
