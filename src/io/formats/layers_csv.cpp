#include "io/formats/layers_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "io/formats/csv.h"
#include "io/formats/file.h"
#include "io/formats/number.h"

namespace perseus::formats {
namespace {

constexpr std::size_t kMaxCsvLayers = 100'000;

/// Field index of each column in a record; -1: the file has no such column.
struct Columns {
  int name = -1, forward = -1, kind = -1, clock = -1, backward = -1, forward_energy = -1, backward_energy = -1;
};

struct ColumnName {
  const char* name;
  int Columns::*column;
};
constexpr std::array kColumnNames = {
    ColumnName{"name", &Columns::name},
    ColumnName{"forward_s", &Columns::forward},
    ColumnName{"kind", &Columns::kind},
    ColumnName{"frequency_mhz", &Columns::clock},
    ColumnName{"backward_s", &Columns::backward},
    ColumnName{"forward_j", &Columns::forward_energy},
    ColumnName{"backward_j", &Columns::backward_energy},
};

std::string known_columns() {
  std::string names;
  for (const ColumnName& known : kColumnNames) names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  return names;
}

Result<Columns> read_header(const CsvReader& csv) {
  Columns columns;
  const auto& fields = csv.fields();
  for (int i = 0; i < static_cast<int>(fields.size()); ++i) {
    const auto known = std::ranges::find(kColumnNames, fields[i], &ColumnName::name);
    if (known == kColumnNames.end()) {
      return csv.error(fmt::format("column '{}'; allowed: {}", fields[i].substr(0, 64), known_columns()));
    }
    int& column = columns.*known->column;
    if (column != -1) return csv.error(fmt::format("column '{}' appears twice", fields[i]));
    column = i;
  }
  if (columns.name == -1) return csv.error("missing column: name");
  if (columns.forward == -1) return csv.error("missing column: forward_s");
  if ((columns.forward_energy == -1) != (columns.backward_energy == -1)) {
    return csv.error("forward_j and backward_j: one without the other; allowed: both or neither");
  }
  if (columns.forward_energy != -1 && columns.backward == -1) return csv.error("missing column: backward_s");
  return columns;
}

struct Row {
  std::string name;
  model::LayerKind kind = model::LayerKind::transformer;
  model::LayerCost cost;
};

/// Reads one record; keeps the first error.
class RowReader {
 public:
  RowReader(const CsvReader& csv, const Columns& columns) : csv_(csv), columns_(columns) {}

  Result<Row> read() {
    if (csv_.fields().size() > kColumnNames.size()) return csv_.error("more fields than the header has columns");
    Row row;
    row.name = field(columns_.name);
    if (row.name.empty() || row.name.size() > 64) fail("name", row.name, "1 to 64 characters");
    if (columns_.kind != -1 && !field(columns_.kind).empty()) {
      const auto kind = model::layer_kind_named(field(columns_.kind));
      if (!kind) fail("kind", field(columns_.kind), "embedding, transformer, mtp, head, other");
      row.kind = kind.value_or(model::LayerKind::other);
    }
    if (columns_.clock != -1) row.cost.clock = Megahertz(clock());
    row.cost.forward = Seconds(time(columns_.forward, "forward_s"));
    row.cost.backward = Seconds(time(columns_.backward, "backward_s"));
    row.cost.forward_energy = Joules(energy(columns_.forward_energy, "forward_j"));
    row.cost.backward_energy = Joules(energy(columns_.backward_energy, "backward_j"));
    if (error_) return *error_;
    return row;
  }

 private:
  [[nodiscard]] std::string_view field(int column) const {
    const auto& fields = csv_.fields();
    return column < static_cast<int>(fields.size()) ? fields[column] : std::string_view();
  }

  void fail(const char* column, std::string_view value, const char* allowed) {
    if (error_) return;
    error_ = csv_.error(value.empty() ? fmt::format("{}: is missing; allowed: {}", column, allowed)
                                      : fmt::format("{}: '{}'; allowed: {}", column, value.substr(0, 64), allowed));
  }

  int clock() {
    const auto value = number_in<int>(field(columns_.clock));
    if (value && *value >= 1 && *value <= 1'000'000) return *value;
    fail("frequency_mhz", field(columns_.clock), "an integer from 1 to 1000000");
    return 1;
  }

  double time(int column, const char* name) {
    if (column == -1) return 0;
    const auto value = number_in<double>(field(column));
    if (value && *value > 0 && *value <= 1e6) return *value;
    fail(name, field(column), "a number > 0 and <= 1e6 (seconds)");
    return 1;
  }

  double energy(int column, const char* name) {
    if (column == -1) return 0;
    const auto value = number_in<double>(field(column));
    if (value && *value >= 0 && *value <= 1e15) return *value;
    fail(name, field(column), "a number >= 0 and <= 1e15 (joules)");
    return 0;
  }

  const CsvReader& csv_;
  const Columns& columns_;
  std::optional<Error> error_;
};

/// Sorts each layer's clocks; an error if a layer lacks a clock that another has.
Status align_clocks(std::vector<model::Layer>& layers, const std::string& name) {
  for (model::Layer& layer : layers) {
    std::ranges::sort(layer.costs, std::ranges::greater(), &model::LayerCost::clock);
    const auto& expected = layers.front().costs;
    const auto& found = layer.costs;
    const auto [one, other] =
        std::ranges::mismatch(expected, found, {}, &model::LayerCost::clock, &model::LayerCost::clock);
    if (one == expected.end() && other == found.end()) continue;
    const bool lacks = one != expected.end() && (other == found.end() || other->clock < one->clock);
    const int clock = lacks ? one->clock.value() : other->clock.value();
    return Error{
        ErrorCode::invalid_input,
        fmt::format("{}: layer '{}' {} {} MHz, which layer '{}' {}; all layers must have the same clocks", name,
                    layer.name, lacks ? "lacks" : "has", clock, layers.front().name, lacks ? "has" : "lacks")};
  }
  return Ok{};
}

}  // namespace

Result<std::vector<model::Layer>> parse_layers_csv(std::string_view text, const std::string& name) {
  CsvReader csv(text, name);
  std::optional<Columns> columns;
  std::vector<model::Layer> layers;
  std::map<std::string, std::size_t> by_name;  // only layers with clocks
  for (;;) {
    const auto more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    if (csv.blank()) continue;
    if (!columns) {
      const auto header = read_header(csv);
      if (!header) return header.error();
      columns = *header;
      continue;
    }
    auto row = RowReader(csv, *columns).read();
    if (!row) return row.error();
    auto at = layers.size();
    if (columns->clock != -1) at = by_name.emplace(row->name, at).first->second;
    if (at == layers.size()) {
      if (at == kMaxCsvLayers) return csv.error(fmt::format("more than the {} layers that are allowed", kMaxCsvLayers));
      layers.push_back({row->name, row->kind, {}});
    }
    model::Layer& layer = layers[at];
    if (layer.kind != row->kind) {
      return csv.error(fmt::format("kind: '{}'; layer '{}' is '{}' in another row", model::name_of(row->kind),
                                   layer.name, model::name_of(layer.kind)));
    }
    if (std::ranges::find(layer.costs, row->cost.clock, &model::LayerCost::clock) != layer.costs.end()) {
      return csv.error(fmt::format("frequency_mhz: layer '{}' has {} MHz twice", layer.name, row->cost.clock.value()));
    }
    layer.costs.push_back(row->cost);
  }
  if (layers.empty()) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: has no layers; expected a header and rows", name)};
  }
  if (const Status status = align_clocks(layers, name); !status) return status.error();
  return layers;
}

Result<std::vector<model::Layer>> read_layers_csv(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return text.error();
  return parse_layers_csv(*text, path);
}

std::string format_layers_csv(const std::vector<model::Layer>& layers) {
  const model::LayerCost& known = layers.front().costs.front();
  const bool clocks = known.clock != Megahertz(0);
  const bool backward = known.backward > Seconds(0);
  const bool energies = std::ranges::any_of(layers, [](const model::Layer& layer) {
    return std::ranges::any_of(
        layer.costs, [](const model::LayerCost& c) { return c.forward_energy + c.backward_energy > Joules(0); });
  });
  std::string csv = fmt::format("name,kind{},forward_s{}{}\n", clocks ? ",frequency_mhz" : "",
                                backward ? ",backward_s" : "", energies ? ",forward_j,backward_j" : "");
  for (const model::Layer& layer : layers) {
    for (const model::LayerCost& cost : layer.costs) {
      csv += fmt::format("{},{}", csv_field(layer.name), model::name_of(layer.kind));
      if (clocks) csv += fmt::format(",{}", cost.clock.value());
      csv += fmt::format(",{}", cost.forward.value());
      if (backward) csv += fmt::format(",{}", cost.backward.value());
      if (energies) csv += fmt::format(",{},{}", cost.forward_energy.value(), cost.backward_energy.value());
      csv += '\n';
    }
  }
  return csv;
}

}  // namespace perseus::formats
