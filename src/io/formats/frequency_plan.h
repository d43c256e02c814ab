// One plan in the form of Zeus's server and clients: `freqs_pipeline_%05d.py`, a Python literal that must not be
// passed to eval().
//
// Format: one list per rank, in execution order, of (instruction, MHz). A rank is a stage unless it holds several
// (interleaved and V-shaped schedules); then its list has the instructions of all its stages in execution order,
// since a rank has one clock. Constant-time instructions (those whose option has clock 0) are left out. Example:
//
//   [
//     [('forward', 1410), ('backward', 1245)],
//     [('forward', 1260), ('backward', 1185)],
//   ]
//   # any comment
//
// Cost:    writing is one copy of about 20 bytes per computation.
// Threads: a writer per thread; functions any.
// Source:  the plan files of Zeus and lowtime.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::formats {

struct ClockedInstruction {
  std::string instruction;
  Megahertz clock;
  bool operator==(const ClockedInstruction&) const = default;
};

/// Formats many plans of one DAG fast: every piece of text is made once, in advance.
class FrequencyPlanWriter {
 public:
  explicit FrequencyPlanWriter(const model::ComputationDag& dag);

  /// The file's content; valid until the next call. `comment` becomes a last line "# comment" if it is not empty (line
  /// ends in it become spaces).
  std::string_view write(const model::Plan& plan, std::string_view comment = {});

 private:
  struct Step {
    int computation = 0;
    int first_piece = 0;  ///< of this type's options
  };
  std::vector<std::vector<Step>> ranks_;
  std::vector<std::string> pieces_;  ///< "('forward', 1410), " per type and option; empty for constant-time ones
  std::string text_;
};

/// "freqs_pipeline_00042.py"
std::string frequency_plan_file_name(int point);

}  // namespace perseus::formats
