#include "io/formats/run_trace_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "io/formats/csv_table.h"
#include "io/formats/file.h"
#include "io/formats/number.h"

namespace perseus::formats {
namespace {

constexpr int kMaxPlan = 999'999;
constexpr CsvRange kLongTimes{false, 1e9, "a number > 0 and <= 1e9 (seconds)"};
constexpr CsvRange kLoadTimes{true, 1e9, "a number >= 0 and <= 1e9 (seconds)"};
constexpr CsvRange kLargeEnergies{false, 1e18, "a number > 0 and <= 1e18 (joules)"};

struct OpColumn {
  enum : std::size_t { plan, stage, op, instruction, microbatch, clock, time };
};
constexpr std::array<CsvColumn, 7> kOpColumns{{{"plan", true},
                                               {"stage", true},
                                               {"op", true},
                                               {"instruction", true},
                                               {"microbatch", true},
                                               {"frequency_mhz", true},
                                               {"time_s", true}}};

struct IterationColumn {
  enum : std::size_t { plan, stage, time, energy, median_time, median_energy, loading, kind, iterations };
};
constexpr std::array<CsvColumn, 9> kIterationColumns{{{"plan", true},
                                                      {"stage", true},
                                                      {"iter_time_s", true},
                                                      {"iter_energy_j", true},
                                                      {"iter_time_med_s"},
                                                      {"iter_energy_med_j"},
                                                      {"load_total_s"},
                                                      {"kind"},
                                                      {"n_iters"}}};

model::Instruction instruction_of(CsvTable& table) {
  const auto value = model::instruction_named(table.field(OpColumn::instruction));
  if (value && !model::is_constant_time(*value)) return *value;
  table.fail(OpColumn::instruction, "forward, backward, input_gradient, weight_gradient, recompute, pure_backward");
  return model::Instruction::forward;
}

struct PlanRows {
  model::TracedPlan plan;
  std::vector<char> has_iterations;  ///< per stage
  std::optional<Seconds> whole;
  Seconds longest;
};
using Plans = std::map<int, PlanRows>;

Status read_ops(const NamedText& file, Plans& plans) {
  CsvTable table(file.text, file.name);
  if (Status header = table.read_header(kOpColumns, OtherColumns::ignored); !header) return header;
  Status rows = table.for_each_row([&]() -> Status {
    const int plan = table.integer(OpColumn::plan, 0, kMaxPlan);
    const auto stage = static_cast<std::size_t>(table.integer(OpColumn::stage, 0, kMaxStage));
    model::TracedComputation computation;
    computation.instruction = instruction_of(table);
    computation.microbatch = table.integer(OpColumn::microbatch, 0, kMaxMicrobatch);
    computation.clock = Megahertz(table.integer(OpColumn::clock, 1, kMaxFrequency_mhz));
    computation.time = Seconds(table.number(OpColumn::time, kLongTimes));
    if (const auto error = table.take_error()) return *error;
    auto& stages = plans[plan].plan.stages;
    if (stage >= stages.size()) stages.resize(stage + 1);
    const int expected = static_cast<int>(stages[stage].size());
    if (table.integer(OpColumn::op, 0, 1 << 30) != expected) {
      table.fail(OpColumn::op, fmt::format("{}, the next of plan {}, stage {}", expected, plan, stage));
    }
    if (const auto error = table.take_error()) return *error;
    stages[stage].push_back(computation);
    return Ok{};
  });
  if (!rows) return rows;
  if (plans.empty()) return table.no_rows("a row per computation");
  return Ok{};
}

/// One row of the iterations of that plan.
Status read_iteration(CsvTable& table, int id, PlanRows& rows) {
  const int num_stages = static_cast<int>(rows.plan.stages.size());
  const int stage = table.integer(IterationColumn::stage, -1, num_stages - 1);
  // Outliers of single iterations change the mean but not the median.
  const auto median_or_mean = [&](std::size_t median, std::size_t mean) {
    return table.field(median).empty() ? mean : median;
  };
  const Seconds time(table.number(median_or_mean(IterationColumn::median_time, IterationColumn::time), kLongTimes));
  const Joules energy(
      table.number(median_or_mean(IterationColumn::median_energy, IterationColumn::energy), kLargeEnergies));
  Seconds loading;
  if (!table.field(IterationColumn::loading).empty()) {
    loading = Seconds(table.number(IterationColumn::loading, kLoadTimes));
  }
  if (!table.field(IterationColumn::iterations).empty()) {
    rows.plan.iterations = table.integer(IterationColumn::iterations, 1, 1 << 30);
  }
  if (rows.plan.kind.empty()) rows.plan.kind = table.field(IterationColumn::kind);
  rows.plan.energy.resize(num_stages);
  rows.plan.loading.resize(num_stages);
  rows.has_iterations.resize(num_stages);
  if (const auto error = table.take_error()) return *error;
  if (stage < 0 ? rows.whole.has_value() : rows.has_iterations[stage] != 0) {
    table.fail(IterationColumn::stage, fmt::format("one row for each stage of plan {}", id));
    return *table.take_error();
  }
  if (stage < 0) {
    rows.whole = time;
    return Ok{};
  }
  rows.longest = std::max(rows.longest, time);
  rows.plan.energy[stage] = energy;
  rows.plan.loading[stage] = loading;
  rows.has_iterations[stage] = 1;
  return Ok{};
}

Status read_iterations(const NamedText& file, const std::string& ops_name, Plans& plans) {
  CsvTable table(file.text, file.name);
  if (Status header = table.read_header(kIterationColumns, OtherColumns::ignored); !header) return header;
  return table.for_each_row([&]() -> Status {
    const int id = table.integer(IterationColumn::plan, 0, kMaxPlan);
    const auto found = plans.find(id);
    if (found == plans.end()) table.fail(IterationColumn::plan, fmt::format("a plan of {}", ops_name));
    if (const auto error = table.take_error()) return *error;
    return read_iteration(table, id, found->second);
  });
}

}  // namespace

Result<model::RunTrace> parse_run_trace(const NamedText& ops, const NamedText& iterations) {
  Plans plans;
  if (Status status = read_ops(ops, plans); !status) return status.error();
  if (Status status = read_iterations(iterations, ops.name, plans); !status) return status.error();
  model::RunTrace trace;
  for (auto& [id, rows] : plans) {
    for (std::size_t stage = 0; stage < rows.plan.stages.size(); ++stage) {
      if (stage >= rows.has_iterations.size() || rows.has_iterations[stage] == 0)
        return Error{ErrorCode::invalid_input, fmt::format("{}: no row for plan {}, stage {}, which {} has",
                                                           iterations.name, id, stage, ops.name)};
    }
    rows.plan.id = id;
    rows.plan.iteration_time = rows.whole.value_or(rows.longest);
    trace.plans.push_back(std::move(rows.plan));
  }
  if (Status status = trace.validate(); !status)
    return Error{status.error().code, fmt::format("{}: {}", ops.name, status.error().message)};
  return trace;
}

Result<model::RunTrace> read_run_trace(const std::string& ops_path, const std::string& iterations_path) {
  const auto ops = read_file(ops_path);
  if (!ops) return ops.error();
  const auto iterations = read_file(iterations_path);
  if (!iterations) return iterations.error();
  return parse_run_trace({*ops, ops_path}, {*iterations, iterations_path});
}

}  // namespace perseus::formats
