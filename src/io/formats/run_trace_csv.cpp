#include "io/formats/run_trace_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "io/formats/csv.h"
#include "io/formats/file.h"
#include "io/formats/limits.h"
#include "io/formats/number.h"

namespace perseus::formats {
namespace {

constexpr int kMaxPlan = 999'999;
constexpr double kMaxSeconds = 1e9;
constexpr double kMaxJoules = 1e18;

/// The records of a file with a header, field by name. error() is the first error.
class Table {
 public:
  explicit Table(const NamedText& file) : name_(file.name), csv_(file.text, file.name) {}

  /// Reads the header; it must contain the `needed` columns.
  Status open(const std::vector<std::string_view>& needed) {
    for (;;) {
      const auto more = csv_.next();
      if (!more) return more.error();
      if (!*more)
        return Error{ErrorCode::invalid_input,
                     fmt::format("{}: empty; a header line with {} is needed", name_, fmt::join(needed, ", "))};
      if (!csv_.blank()) break;
    }
    for (int i = 0; i < static_cast<int>(csv_.fields().size()); ++i) columns_.emplace(csv_.fields()[i], i);
    std::vector<std::string_view> missing;
    for (const std::string_view column : needed) {
      if (!columns_.contains(column)) missing.push_back(column);
    }
    if (!missing.empty())
      return csv_.error(
          fmt::format("missing columns: {}; found: {}", fmt::join(missing, ", "), fmt::join(csv_.fields(), ", ")));
    return Ok{};
  }

  /// The next record that is not blank; false at the end.
  Result<bool> next() {
    do {
      auto more = csv_.next();
      if (!more || !*more) return more;
    } while (csv_.blank());
    return true;
  }

  [[nodiscard]] std::string_view field(std::string_view column) const {
    const auto found = columns_.find(column);
    if (found == columns_.end() || found->second >= static_cast<int>(csv_.fields().size())) return {};
    return csv_.fields()[found->second];
  }
  int integer(std::string_view column, int least, int most) {
    const auto value = number_in<double>(field(column));
    if (value && *value >= least && *value <= most && *value == std::floor(*value)) return static_cast<int>(*value);
    fail(column, fmt::format("an integer from {} to {}", least, most));
    return least;
  }
  /// > 0, or >= 0 if zero is allowed.
  double number(std::string_view column, double most, bool zero_allowed) {
    const auto value = number_in<double>(field(column));
    if (value && *value <= most && (*value > 0 || (zero_allowed && *value == 0))) return *value;
    fail(column, fmt::format("a number {} 0 and <= {:g}", zero_allowed ? ">=" : ">", most));
    return 1;
  }
  model::Instruction instruction() {
    const auto value = model::instruction_named(field("instruction"));
    if (value && !model::is_constant_time(*value)) return *value;
    fail("instruction", "forward, backward, input_gradient, weight_gradient, recompute, pure_backward");
    return model::Instruction::forward;
  }
  void fail(std::string_view column, const std::string& allowed) {
    if (error_) return;
    const std::string_view value = field(column);
    error_ = csv_.error(value.empty() ? fmt::format("{}: is missing; allowed: {}", column, allowed)
                                      : fmt::format("{}: '{}'; allowed: {}", column, value.substr(0, 64), allowed));
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
  CsvReader csv_;
  std::map<std::string, int, std::less<>> columns_;
  std::optional<Error> error_;
};

struct PlanRows {
  model::TracedPlan plan;
  std::vector<char> has_iterations;  ///< per stage
  std::optional<Seconds> whole;
  Seconds longest;
};
using Plans = std::map<int, PlanRows>;

Status read_ops(const NamedText& file, Plans& plans) {
  Table table(file);
  if (Status status = table.open({"plan", "stage", "op", "instruction", "microbatch", "frequency_mhz", "time_s"});
      !status)
    return status;
  for (;;) {
    const auto more = table.next();
    if (!more) return more.error();
    if (!*more) break;
    const int plan = table.integer("plan", 0, kMaxPlan);
    const auto stage = static_cast<std::size_t>(table.integer("stage", 0, kMaxStage));
    model::TracedComputation computation;
    computation.instruction = table.instruction();
    computation.microbatch = table.integer("microbatch", 0, kMaxMicrobatch);
    computation.clock = Megahertz(table.integer("frequency_mhz", 1, kMaxFrequency_mhz));
    computation.time = Seconds(table.number("time_s", kMaxSeconds, false));
    if (table.error()) return *table.error();
    auto& stages = plans[plan].plan.stages;
    if (stage >= stages.size()) stages.resize(stage + 1);
    const int expected = static_cast<int>(stages[stage].size());
    if (table.integer("op", 0, 1 << 30) != expected)
      table.fail("op", fmt::format("{}, the next of plan {}, stage {}", expected, plan, stage));
    if (table.error()) return *table.error();
    stages[stage].push_back(computation);
  }
  if (plans.empty()) return Error{ErrorCode::invalid_input, fmt::format("{}: a header but no rows", table.name())};
  return Ok{};
}

Status read_iterations(const NamedText& file, const std::string& ops_name, Plans& plans) {
  Table table(file);
  if (Status status = table.open({"plan", "stage", "iter_time_s", "iter_energy_j"}); !status) return status;
  for (;;) {
    const auto more = table.next();
    if (!more) return more.error();
    if (!*more) break;
    const int id = table.integer("plan", 0, kMaxPlan);
    if (table.error()) return *table.error();
    const auto found = plans.find(id);
    if (found == plans.end()) {
      table.fail("plan", fmt::format("a plan of {}", ops_name));
      return *table.error();
    }
    PlanRows& rows = found->second;
    const int num_stages = static_cast<int>(rows.plan.stages.size());
    const int stage = table.integer("stage", -1, num_stages - 1);
    // Outliers of single iterations change the mean but not the median.
    const auto median_or_mean = [&](std::string_view mean, std::string_view median) {
      return table.field(median).empty() ? mean : median;
    };
    const Seconds time(table.number(median_or_mean("iter_time_s", "iter_time_med_s"), kMaxSeconds, false));
    const Joules energy(table.number(median_or_mean("iter_energy_j", "iter_energy_med_j"), kMaxJoules, false));
    Seconds loading;
    if (!table.field("load_total_s").empty()) loading = Seconds(table.number("load_total_s", kMaxSeconds, true));
    if (!table.field("n_iters").empty()) rows.plan.iterations = table.integer("n_iters", 1, 1 << 30);
    if (rows.plan.kind.empty()) rows.plan.kind = table.field("kind");
    rows.plan.energy.resize(num_stages);
    rows.plan.loading.resize(num_stages);
    rows.has_iterations.resize(num_stages);
    const bool again = stage < 0 ? rows.whole.has_value() : !table.error() && rows.has_iterations[stage] != 0;
    if (again) table.fail("stage", fmt::format("one row for each stage of plan {}", id));
    if (table.error()) return *table.error();
    if (stage < 0) {
      rows.whole = time;
      continue;
    }
    rows.longest = std::max(rows.longest, time);
    rows.plan.energy[stage] = energy;
    rows.plan.loading[stage] = loading;
    rows.has_iterations[stage] = 1;
  }
  return Ok{};
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
