#include "io/formats/memory_csv.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "io/formats/csv_table.h"
#include "io/formats/file.h"
#include "io/formats/number.h"

namespace perseus::formats {
namespace {

struct MemoryColumn {
  enum : std::size_t { stage, weights, activations, checkpoint, recompute };
};
constexpr std::array<CsvColumn, 5> kMemoryColumns{
    {{"stage", true}, {"weights_gib", true}, {"activations_gib", true}, {"checkpoint_gib"}, {"recompute_gib"}}};
constexpr CsvRange kGibibytes{true, 1e6, "a number >= 0 and <= 1e6 (GiB)"};

}  // namespace

Result<std::vector<model::StageMemory>> parse_memory_csv(std::string_view text, const std::string& name) {
  CsvTable table(text, name);
  if (Status header = table.read_header(kMemoryColumns, OtherColumns::refused); !header) return header.error();
  std::vector<std::optional<model::StageMemory>> stages;
  Status rows = table.for_each_row([&]() -> Status {
    const auto gib = [&](std::size_t column) { return table.number(column, kGibibytes); };
    const auto stage = static_cast<std::size_t>(table.integer(MemoryColumn::stage, 0, kMaxStage));
    model::StageMemory memory{gib(MemoryColumn::weights), gib(MemoryColumn::activations), 0, std::nullopt};
    if (!table.field(MemoryColumn::checkpoint).empty()) memory.checkpoint_gib = gib(MemoryColumn::checkpoint);
    if (!table.field(MemoryColumn::recompute).empty()) memory.recompute_gib = gib(MemoryColumn::recompute);
    if (stage >= stages.size()) stages.resize(stage + 1);
    if (stages[stage]) table.fail(MemoryColumn::stage, "one row per stage");
    if (const auto error = table.take_error()) return *error;
    stages[stage] = memory;
    return Ok{};
  });
  if (!rows) return rows.error();
  if (stages.empty()) return table.no_rows("a row per stage");
  std::vector<model::StageMemory> memory;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (!stages[s]) {
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}: stage {} has no row; stages are 0..N-1 without gaps", name, s)};
    }
    memory.push_back(*stages[s]);
  }
  return memory;
}

Result<std::vector<model::StageMemory>> read_memory_csv(const std::string& path) {
  return parsed_file(path, parse_memory_csv);
}

}  // namespace perseus::formats
