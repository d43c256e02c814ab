#include "io/formats/profile_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "io/formats/csv_table.h"
#include "io/formats/file.h"
#include "io/formats/number.h"
#include "planning/model/instruction.h"

namespace perseus::formats {
namespace {

constexpr int kMaxSamples = 1'000'000;

struct ProfileColumn {
  enum : std::size_t {
    stage,
    instruction,
    frequency,
    time,
    energy,
    rank,
    dp_rank,
    tp_rank,
    time_stddev,
    energy_stddev,
    samples
  };
};
constexpr std::array<CsvColumn, 11> kProfileColumns{{{"stage", true, "", "pp_rank"},
                                                     {"instruction", true},
                                                     {"frequency", true, "frequency_mhz"},
                                                     {"time", true, "time_s"},
                                                     {"energy", true, "energy_j"},
                                                     {"rank"},
                                                     {"dp_rank"},
                                                     {"tp_rank"},
                                                     {"time_stddev", false, "time_stddev_s"},
                                                     {"energy_stddev", false, "energy_stddev_j"},
                                                     {"samples"}}};
constexpr CsvRange kTimeSpreads{true, kMaxTime_s, "a number >= 0 and <= 1e6 (seconds)"};
constexpr double kTooShortForCounters_s = 1e-3;
constexpr int kMaxRank = 1 << 30;

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

/// The instruction, with '-' read as '_'.
std::optional<model::Instruction> instruction_in(std::string_view field) {
  if (const auto known = model::instruction_named(field)) return known;
  std::string name(field.substr(0, 32));
  std::ranges::replace(name, '-', '_');
  return model::instruction_named(name);
}

std::string allowed_instructions() {
  std::vector<std::string_view> names;
  for (int i = 0; i < model::kNumInstructions; ++i) names.push_back(model::name_of(static_cast<model::Instruction>(i)));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// 0 without a value; data frames write the spread of a single sample as nan.
double spread_in(CsvTable& table, std::size_t column, const CsvRange& range) {
  const std::string_view text = table.field(column);
  return text.empty() || text == "nan" || text == "NaN" ? 0 : table.number(column, range);
}

/// A number that identifies the rank within its stage.
std::int64_t rank_in(CsvTable& table) {
  const auto part = [&](std::size_t column) -> std::int64_t {
    return table.has(column) ? table.integer(column, 0, kMaxRank) : 0;
  };
  if (table.has(ProfileColumn::rank)) return part(ProfileColumn::rank);
  return (part(ProfileColumn::dp_rank) << 31) + part(ProfileColumn::tp_rank);
}

Result<Row> read_row(CsvTable& table) {
  Row row;
  row.stage = table.integer(ProfileColumn::stage, 0, kMaxStage);
  if (const auto instruction = instruction_in(table.field(ProfileColumn::instruction))) {
    row.instruction = *instruction;
  } else {
    table.fail(ProfileColumn::instruction, allowed_instructions());
  }
  const bool constant = model::is_constant_time(row.instruction);
  if (!constant) { row.clock = table.integer(ProfileColumn::frequency, 1, kMaxFrequency_mhz); }
  row.time = table.number(ProfileColumn::time, kTimes);
  const bool may_be_free = constant || row.time <= kTooShortForCounters_s;
  row.energy = table.number(ProfileColumn::energy, may_be_free ? kEnergies : kSpentEnergies);
  row.time_stddev = spread_in(table, ProfileColumn::time_stddev, kTimeSpreads);
  row.energy_stddev = spread_in(table, ProfileColumn::energy_stddev, kEnergies);
  if (!table.field(ProfileColumn::samples).empty()) {
    row.samples = table.integer(ProfileColumn::samples, 1, kMaxSamples);
  }
  row.rank = rank_in(table);
  if (const auto error = table.take_error()) return *error;
  return row;
}

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

struct Rows {
  std::vector<Row> rows;
  /// First row of each instruction of a stage, counted from 1; 0: none.
  std::vector<std::array<int, model::kNumInstructions>> appearance;
};

Error invalid_file(const std::string& name, const std::string& what) {
  return {ErrorCode::invalid_input, fmt::format("{}: {}", name, what)};
}

Result<Rows> read_rows(std::string_view text, const std::string& name) {
  CsvTable table(text, name);
  if (Status header = table.read_header(kProfileColumns, OtherColumns::ignored); !header) return header.error();
  Rows read;
  Status rows = table.for_each_row([&]() -> Status {
    const Result<Row> row = read_row(table);
    if (!row) return row.error();
    if (row->stage >= static_cast<int>(read.appearance.size())) read.appearance.resize(row->stage + 1);
    int& first = read.appearance[row->stage][static_cast<std::size_t>(row->instruction)];
    read.rows.push_back(*row);
    if (first == 0) first = static_cast<int>(read.rows.size());
    return Ok{};
  });
  if (!rows) return rows.error();
  if (read.rows.empty()) return table.no_rows("at least a forward and a backward per stage");
  return read;
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
  auto read = read_rows(text, name);
  if (!read) return read.error();
  std::vector<Row>& rows = read->rows;
  std::ranges::stable_sort(rows, {}, [&](const Row& row) {
    return std::tuple(row.stage, read->appearance[row.stage][static_cast<std::size_t>(row.instruction)], -row.clock,
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

Result<model::Profile> read_profile_csv(const std::string& path) { return parsed_file(path, parse_profile_csv); }

std::string format_profile_csv(const model::Profile& profile) {
  const bool ranks = std::ranges::any_of(profile.accelerators, [](int count) { return count > 1; });
  const bool spread = std::ranges::any_of(profile.entries, [](const model::ProfileEntry& entry) {
    return std::ranges::any_of(entry.measurements, [](const model::Measurement& m) {
      return m.time_stddev > Seconds(0) || m.energy_stddev > Joules(0) || m.samples > 1;
    });
  });
  std::string csv = fmt::format("stage,instruction,frequency,time,energy{}{}\n", ranks ? ",rank" : "",
                                spread ? ",time_stddev,energy_stddev,samples" : "");
  int first_rank = 0;
  int stage = 0;
  for (const model::ProfileEntry& entry : profile.entries) {
    for (; stage < entry.stage; ++stage) first_rank += profile.accelerators[stage];
    const int count = profile.accelerators[stage];
    for (const model::Measurement& m : entry.measurements) {
      for (int rank = 0; rank < count; ++rank) {
        csv += fmt::format("{},{},{},{},{}", entry.stage, entry.instruction, m.clock.value(), m.time.value(),
                           m.energy.value() / count);
        if (ranks) csv += fmt::format(",{}", first_rank + rank);
        if (spread) {
          csv += fmt::format(",{},{},{}", m.time_stddev.value(), m.energy_stddev.value() / std::sqrt(count), m.samples);
        }
        csv += '\n';
      }
    }
  }
  return csv;
}

}  // namespace perseus::formats
