#include "io/formats/memory_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "io/formats/csv.h"
#include "io/formats/file.h"
#include "io/formats/number.h"

namespace perseus::formats {
namespace {

constexpr int kMaxStages = 65536;
constexpr double kMostGib = 1e6;
constexpr std::array<std::string_view, 5> kMemoryColumns{"stage", "weights_gib", "activations_gib", "checkpoint_gib",
                                                         "recompute_gib"};
constexpr std::size_t kRequired = 3;  // the first columns

using ColumnAt = std::array<int, kMemoryColumns.size()>;

Result<ColumnAt> memory_columns(const CsvReader& csv) {
  ColumnAt at;
  at.fill(-1);
  for (std::size_t i = 0; i < csv.fields().size(); ++i) {
    const auto known = std::ranges::find(kMemoryColumns, csv.fields()[i]);
    if (known == kMemoryColumns.end()) {
      return csv.error(
          fmt::format("column '{}'; allowed: stage, weights_gib, activations_gib, checkpoint_gib, "
                      "recompute_gib",
                      csv.fields()[i].substr(0, 64)));
    }
    int& column = at[known - kMemoryColumns.begin()];
    if (column != -1) return csv.error(fmt::format("column '{}' appears twice", csv.fields()[i]));
    column = static_cast<int>(i);
  }
  for (std::size_t k = 0; k < kRequired; ++k) {
    if (at[k] == -1) return csv.error(fmt::format("missing column: {}", kMemoryColumns[k]));
  }
  return at;
}

}  // namespace

Result<std::vector<model::StageMemory>> parse_memory_csv(std::string_view text, const std::string& name) {
  CsvReader csv(text, name);
  std::optional<ColumnAt> at;
  std::vector<std::optional<model::StageMemory>> stages;
  for (;;) {
    const Result<bool> more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    if (csv.blank()) continue;
    if (!at) {
      const Result<ColumnAt> header = memory_columns(csv);
      if (!header) return header.error();
      at = *header;
      continue;
    }
    if (csv.fields().size() > kMemoryColumns.size()) return csv.error("more fields than the header has columns");
    const auto field = [&](std::size_t k) {
      const int column = (*at)[k];
      return column >= 0 && column < static_cast<int>(csv.fields().size()) ? csv.fields()[column] : std::string_view();
    };
    const auto stage = number_in<int>(field(0));
    if (!stage || *stage < 0 || *stage >= kMaxStages) {
      return csv.error(fmt::format("stage: '{}'; allowed: 0 to {}", field(0).substr(0, 64), kMaxStages - 1));
    }
    std::array<std::optional<double>, kMemoryColumns.size()> gib;
    for (std::size_t k = 1; k < kMemoryColumns.size(); ++k) {
      if (field(k).empty() && k >= kRequired) continue;
      gib[k] = number_in<double>(field(k));
      if (!gib[k] || !(*gib[k] >= 0 && *gib[k] <= kMostGib)) {
        return csv.error(
            fmt::format("{}: '{}'; allowed: 0 to {:g} GiB", kMemoryColumns[k], field(k).substr(0, 64), kMostGib));
      }
    }
    if (*stage >= static_cast<int>(stages.size())) stages.resize(*stage + 1);
    if (stages[*stage]) return csv.error(fmt::format("stage: {} appears twice; allowed: one row per stage", *stage));
    stages[*stage] = model::StageMemory{*gib[1], *gib[2], gib[3].value_or(0), gib[4]};
  }
  std::vector<model::StageMemory> memory;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (!stages[s]) {
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}: stage {} has no row; stages are 0..N-1 without gaps", name, s)};
    }
    memory.push_back(*stages[s]);
  }
  if (memory.empty())
    return Error{ErrorCode::invalid_input, fmt::format("{}: no stages; a row per stage is needed", name)};
  return memory;
}

Result<std::vector<model::StageMemory>> read_memory_csv(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  return parse_memory_csv(*text, path);
}

}  // namespace perseus::formats
