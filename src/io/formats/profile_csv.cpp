#include "io/formats/profile_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "io/formats/csv.h"
#include "io/formats/file.h"
#include "io/formats/limits.h"
#include "io/formats/number.h"
#include "planning/model/instruction.h"

namespace perseus::formats {
namespace {

constexpr int kMaxSamples = 1'000'000;

/// Field index of each column in a record; -1: the file has no such column.
struct Columns {
  int stage = -1, instruction = -1, frequency = -1, time = -1, energy = -1;
  int rank = -1, dp_rank = -1, tp_rank = -1;
  int time_stddev = -1, energy_stddev = -1, samples = -1;
};

struct Row {
  int stage = 0;
  model::Instruction instruction = model::Instruction::forward;
  int clock = 0;
  std::int64_t rank = 0;
  double time = 0;
  double energy = 0;
  double time_stddev = 0;
  double energy_stddev = 0;
  int samples = 1;  ///< number of samples in the row's mean
};

struct ColumnName {
  const char* name;
  int Columns::*column;
};
constexpr std::array kColumnNames = {
    ColumnName{"stage", &Columns::stage},
    ColumnName{"instruction", &Columns::instruction},
    ColumnName{"frequency", &Columns::frequency},
    ColumnName{"frequency_mhz", &Columns::frequency},
    ColumnName{"time", &Columns::time},
    ColumnName{"time_s", &Columns::time},
    ColumnName{"energy", &Columns::energy},
    ColumnName{"energy_j", &Columns::energy},
    ColumnName{"rank", &Columns::rank},
    ColumnName{"dp_rank", &Columns::dp_rank},
    ColumnName{"tp_rank", &Columns::tp_rank},
    ColumnName{"time_stddev", &Columns::time_stddev},
    ColumnName{"time_stddev_s", &Columns::time_stddev},
    ColumnName{"energy_stddev", &Columns::energy_stddev},
    ColumnName{"energy_stddev_j", &Columns::energy_stddev},
    ColumnName{"samples", &Columns::samples},
};

Result<Columns> read_header(const CsvReader& csv) {
  Columns columns;
  int pp_rank = -1;
  const auto& fields = csv.fields();
  for (int i = 0; i < static_cast<int>(fields.size()); ++i) {
    if (fields[i] == "pp_rank") pp_rank = i;
    for (const ColumnName& known : kColumnNames) {
      if (fields[i] != known.name) continue;
      int& column = columns.*known.column;
      if (column != -1) {
        return csv.error(fmt::format("columns '{}' and '{}' have the same meaning; allowed: one of them",
                                     fields[column], fields[i]));
      }
      column = i;
    }
  }
  if (columns.stage == -1) columns.stage = pp_rank;
  std::string missing;
  const auto need = [&](int column, const char* name) {
    if (column == -1) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  };
  need(columns.stage, "stage (or pp_rank)");
  need(columns.instruction, "instruction");
  need(columns.frequency, "frequency");
  need(columns.time, "time");
  need(columns.energy, "energy");
  if (!missing.empty()) {
    return csv.error(fmt::format("missing columns: {}; found: {}", missing, fmt::join(fields, ", ")));
  }
  return columns;
}

/// The instruction, with '-' read as '_'.
std::optional<model::Instruction> instruction_in(std::string_view field) {
  if (const auto known = model::instruction_named(field)) return known;
  std::string name(field.substr(0, 32));
  std::ranges::replace(name, '-', '_');
  return model::instruction_named(name);
}

std::string allowed_instructions() {
  std::string names;
  for (int i = 0; i < model::kNumInstructions; ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", model::name_of(static_cast<model::Instruction>(i)));
  }
  return names;
}

/// Reads one record; keeps the first error.
class RowReader {
 public:
  RowReader(const CsvReader& csv, const Columns& columns) : csv_(csv), columns_(columns) {}

  Result<Row> read() {
    Row row;
    row.stage = integer(columns_.stage, "stage", 0, kMaxStage);
    const std::string_view name = field(columns_.instruction);
    if (const auto instruction = instruction_in(name)) {
      row.instruction = *instruction;
    } else {
      fail("instruction", name, allowed_instructions());
    }
    if (!model::is_constant_time(row.instruction)) {
      row.clock = integer(columns_.frequency, "frequency", 1, kMaxFrequency_mhz);
    }
    row.time = number(columns_.time, "time", 0, kMaxTime_s, "a number > 0 and <= 1e6 (seconds)");
    if (row.time == 0) fail("time", field(columns_.time), "a number > 0 and <= 1e6 (seconds)");
    row.energy = number(columns_.energy, "energy", 0, kMaxEnergy_j, "a number >= 0 and <= 1e15 (joules)");
    row.time_stddev = spread(columns_.time_stddev, "time_stddev", kMaxTime_s, "a number >= 0 and <= 1e6 (seconds)");
    row.energy_stddev =
        spread(columns_.energy_stddev, "energy_stddev", kMaxEnergy_j, "a number >= 0 and <= 1e15 (joules)");
    if (!field(columns_.samples).empty()) row.samples = integer(columns_.samples, "samples", 1, kMaxSamples);
    if (columns_.rank != -1) {
      row.rank = integer(columns_.rank, "rank", 0, 1 << 30);
    } else {
      if (columns_.dp_rank != -1) row.rank = integer(columns_.dp_rank, "dp_rank", 0, 1 << 30);
      if (columns_.tp_rank != -1) row.rank = (row.rank << 31) + integer(columns_.tp_rank, "tp_rank", 0, 1 << 30);
    }
    if (error_) return *error_;
    return row;
  }

 private:
  std::string_view field(int column) const {
    const auto& fields = csv_.fields();
    return column >= 0 && column < static_cast<int>(fields.size()) ? fields[column] : std::string_view();
  }

  void fail(const char* column, std::string_view value, const std::string& allowed) {
    if (error_) return;
    const std::string_view shown = value.substr(0, 64);
    error_ = csv_.error(value.empty() ? fmt::format("{}: is missing; allowed: {}", column, allowed)
                                      : fmt::format("{}: '{}'; allowed: {}", column, shown, allowed));
  }

  double number(int column, const char* name, double least, double most, const char* allowed) {
    const std::string_view text = field(column);
    const auto value = number_in<double>(text);
    if (value && *value >= least && *value <= most) return *value;
    fail(name, text, allowed);
    return least;
  }

  /// 0 without a value; data frames write the spread of a single sample as nan.
  double spread(int column, const char* name, double most, const char* allowed) {
    const std::string_view text = field(column);
    if (text.empty() || text == "nan" || text == "NaN") return 0;
    return number(column, name, 0, most, allowed);
  }

  /// An integer, also in the form 1410.0 (as data frames write it).
  int integer(int column, const char* name, int least, int most) {
    const std::string_view text = field(column);
    if (const auto value = number_in<int>(text); value && *value >= least && *value <= most) return *value;
    const auto value = number_in<double>(text);
    if (value && *value >= least && *value <= most && *value == std::floor(*value)) return static_cast<int>(*value);
    fail(name, text, fmt::format("an integer from {} to {}", least, most));
    return least;
  }

  const CsvReader& csv_;
  const Columns& columns_;
  std::optional<Error> error_;
};

struct Spread {
  double mean = 0;
  double stddev = 0;
};

/// Mean and spread of all samples behind the rows' means.
Spread spread_of(std::span<const Row> rows, double Row::*quantity, double Row::*stddev) {
  if (rows.size() == 1) return {rows.front().*quantity, rows.front().*stddev};
  Spread spread;
  double count = 0;
  for (const Row& row : rows) {
    spread.mean += row.samples * (row.*quantity);
    count += row.samples;
  }
  spread.mean /= count;
  double squares = 0;
  for (const Row& row : rows) {
    const double off = row.*quantity - spread.mean;
    // For a row with one sample, its spread is its uncertainty.
    squares += row.samples * off * off + std::max(row.samples - 1, 1) * (row.*stddev) * (row.*stddev);
  }
  spread.stddev = std::sqrt(squares / (count - 1));
  return spread;
}

/// Splits sorted rows into runs that agree on `key`.
template <class Key, class Visit>
void for_each_run(std::span<const Row> rows, Key key, Visit visit) {
  while (!rows.empty()) {
    std::size_t end = 1;
    while (end < rows.size() && std::invoke(key, rows[end]) == std::invoke(key, rows.front())) ++end;
    visit(rows.first(end));
    rows = rows.subspan(end);
  }
}

/// One clock of one instruction: samples averaged, ranks merged.
model::Measurement merge(std::span<const Row> rows) {
  model::Measurement merged;
  merged.clock = Megahertz(rows.front().clock);
  merged.samples = 0;
  double energy_variance = 0;
  for_each_run(
      rows, [](const Row& row) { return row.rank; },
      [&](std::span<const Row> samples) {
        const Spread time = spread_of(samples, &Row::time, &Row::time_stddev);
        const Spread energy = spread_of(samples, &Row::energy, &Row::energy_stddev);
        if (Seconds(time.mean) > merged.time) {
          merged.time = Seconds(time.mean);
          merged.time_stddev = Seconds(time.stddev);
        }
        merged.energy += Joules(energy.mean);
        energy_variance += energy.stddev * energy.stddev;
        int count = 0;
        for (const Row& row : samples) count += row.samples;
        merged.samples = merged.samples == 0 ? count : std::min(merged.samples, count);
      });
  merged.energy_stddev = Joules(std::sqrt(energy_variance));
  return merged;
}

int ranks_in(std::span<const Row> rows_of_one_clock) {
  int count = 0;
  for_each_run(
      rows_of_one_clock, [](const Row& row) { return row.rank; }, [&](std::span<const Row>) { ++count; });
  return count;
}

int distinct_ranks(std::span<const Row> rows) {
  std::vector<std::int64_t> ranks;
  for (const Row& row : rows) ranks.push_back(row.rank);
  std::ranges::sort(ranks);
  return static_cast<int>(std::unique(ranks.begin(), ranks.end()) - ranks.begin());
}

struct Table {
  std::vector<Row> rows;
  /// First row of each instruction of a stage, counted from 1; 0: none.
  std::vector<std::array<int, model::kNumInstructions>> appearance;
};

Error invalid_file(const std::string& name, const std::string& what) {
  return {ErrorCode::invalid_input, fmt::format("{}: {}", name, what)};
}

/// A row with more cells than the header has, as decimal commas make them, would be read wrongly.
Status check_width(const CsvReader& csv, std::size_t num_columns) {
  const auto& fields = csv.fields();
  for (std::size_t i = num_columns; i < fields.size(); ++i) {
    if (fields[i].empty()) continue;
    return csv.error(fmt::format("{} cells; allowed: {}, as in the header (decimals take a point, not a comma)",
                                 fields.size(), num_columns));
  }
  return Ok{};
}

Result<Table> read_table(std::string_view text, const std::string& name) {
  CsvReader csv(text, name);
  std::optional<Columns> columns;
  std::size_t num_columns = 0;
  Table table;
  for (;;) {
    const auto more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    if (csv.blank()) continue;
    if (!columns) {
      auto header = read_header(csv);
      if (!header) return header.error();
      columns = *header;
      num_columns = csv.fields().size();
      continue;
    }
    if (Status fits = check_width(csv, num_columns); !fits) return fits.error();
    auto row = RowReader(csv, *columns).read();
    if (!row) return row.error();
    if (row->stage >= static_cast<int>(table.appearance.size())) table.appearance.resize(row->stage + 1);
    int& first = table.appearance[row->stage][static_cast<std::size_t>(row->instruction)];
    table.rows.push_back(*row);
    if (first == 0) first = static_cast<int>(table.rows.size());
  }
  if (!columns) {
    return invalid_file(name, "empty; a header line with stage, instruction, frequency, time, energy is needed");
  }
  if (table.rows.empty()) {
    return invalid_file(name, "a header but no rows; at least a forward and a backward per stage are needed");
  }
  return table;
}

/// Adds a stage. Fails if no clock of an instruction was measured by all its ranks.
Status add_stage(model::Profile& profile, std::span<const Row> of_stage) {
  const int stage = of_stage.front().stage, num_ranks = distinct_ranks(of_stage);
  profile.accelerators.push_back(num_ranks);
  Status status = Ok{};
  for_each_run(of_stage, &Row::instruction, [&](std::span<const Row> of_entry) {
    model::ProfileEntry entry{stage, std::string(model::name_of(of_entry.front().instruction)), {}};
    for_each_run(of_entry, &Row::clock, [&](std::span<const Row> of_clock) {
      if (ranks_in(of_clock) == num_ranks) entry.measurements.push_back(merge(of_clock));
    });
    if (entry.measurements.empty() && status) {
      status = Error{ErrorCode::invalid_input, fmt::format("stage {}, {}: no clock was measured by all {} ranks of the "
                                                           "stage",
                                                           stage, entry.instruction, num_ranks)};
    }
    profile.entries.push_back(std::move(entry));
  });
  return status;
}

}  // namespace

Result<model::Profile> parse_profile_csv(std::string_view text, const std::string& name) {
  if (text.size() > kMaxFileBytes) return invalid_file(name, "larger than the 256 MiB that are allowed");
  auto table = read_table(text, name);
  if (!table) return table.error();
  std::vector<Row>& rows = table->rows;
  std::ranges::stable_sort(rows, {}, [&](const Row& row) {
    return std::tuple(row.stage, table->appearance[row.stage][static_cast<std::size_t>(row.instruction)], -row.clock,
                      row.rank);
  });
  model::Profile profile;
  Status status = Ok{};
  for_each_run(rows, &Row::stage, [&](std::span<const Row> of_stage) {
    if (!status) return;
    if (profile.num_stages() < of_stage.front().stage) {
      status = Error{ErrorCode::invalid_input, fmt::format("stages 0..{} expected, stage {} has no rows",
                                                           rows.back().stage, profile.num_stages())};
      return;
    }
    status = add_stage(profile, of_stage);
  });
  if (status) status = profile.validate();
  if (!status) return invalid_file(name, status.error().message);
  return profile;
}

Result<model::Profile> read_profile_csv(const std::string& path) {
  auto text = read_file(path);
  if (!text) return text.error();
  return parse_profile_csv(*text, path);
}

}  // namespace perseus::formats
