#include "io/formats/layers_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "io/formats/csv.h"
#include "io/formats/csv_table.h"
#include "io/formats/file.h"
#include "io/formats/number.h"

namespace perseus::formats {
namespace {

constexpr std::size_t kMaxCsvLayers = 100'000;

struct LayerColumn {
  enum : std::size_t { name, forward, kind, clock, backward, forward_energy, backward_energy };
};
constexpr std::array<CsvColumn, 7> kLayerColumns{
    {{"name", true}, {"forward_s", true}, {"kind"}, {"frequency_mhz"}, {"backward_s"}, {"forward_j"}, {"backward_j"}}};

/// Energies come in pairs and with the backward's time.
Status check_energy_columns(const CsvTable& table) {
  const bool has_energy = table.has(LayerColumn::forward_energy);
  if (has_energy != table.has(LayerColumn::backward_energy)) {
    return table.error_here("forward_j and backward_j: one without the other; allowed: both or neither");
  }
  if (has_energy && !table.has(LayerColumn::backward)) {
    return table.error_here("missing columns: backward_s, which energies need");
  }
  return Ok{};
}

struct LayerRow {
  std::string name;
  model::LayerKind kind = model::LayerKind::transformer;
  model::LayerCost cost;
};

Result<LayerRow> read_layer_row(CsvTable& table) {
  const auto time = [&](std::size_t column) { return Seconds(table.has(column) ? table.number(column, kTimes) : 0); };
  const auto energy = [&](std::size_t column) {
    return Joules(table.has(column) ? table.number(column, kEnergies) : 0);
  };
  LayerRow row;
  row.name = table.field(LayerColumn::name);
  if (row.name.empty() || row.name.size() > 64) table.fail(LayerColumn::name, "1 to 64 characters");
  if (const std::string_view name = table.field(LayerColumn::kind); !name.empty()) {
    const auto kind = model::layer_kind_named(name);
    if (!kind) table.fail(LayerColumn::kind, "embedding, transformer, mtp, head, other");
    row.kind = kind.value_or(model::LayerKind::other);
  }
  if (table.has(LayerColumn::clock)) {
    row.cost.clock = Megahertz(table.integer(LayerColumn::clock, 1, kMaxFrequency_mhz));
  }
  row.cost.forward = time(LayerColumn::forward);
  row.cost.backward = time(LayerColumn::backward);
  row.cost.forward_energy = energy(LayerColumn::forward_energy);
  row.cost.backward_energy = energy(LayerColumn::backward_energy);
  if (const auto error = table.take_error()) return *error;
  return row;
}

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
  CsvTable table(text, name);
  if (Status header = table.read_header(kLayerColumns, OtherColumns::refused); !header) return header.error();
  if (Status energies = check_energy_columns(table); !energies) return energies.error();
  const bool has_clocks = table.has(LayerColumn::clock);
  std::vector<model::Layer> layers;
  std::map<std::string, std::size_t> by_name;  // only layers with clocks
  Status rows = table.for_each_row([&]() -> Status {
    const auto row = read_layer_row(table);
    if (!row) return row.error();
    auto at = layers.size();
    if (has_clocks) at = by_name.emplace(row->name, at).first->second;
    if (at == layers.size()) {
      if (at == kMaxCsvLayers) {
        return table.error_here(fmt::format("more than the {} layers that are allowed", kMaxCsvLayers));
      }
      layers.push_back({row->name, row->kind, {}});
    }
    model::Layer& layer = layers[at];
    if (layer.kind != row->kind) {
      return table.error_here(fmt::format("kind: '{}'; layer '{}' is '{}' in another row", model::name_of(row->kind),
                                          layer.name, model::name_of(layer.kind)));
    }
    if (std::ranges::find(layer.costs, row->cost.clock, &model::LayerCost::clock) != layer.costs.end()) {
      return table.error_here(
          fmt::format("frequency_mhz: layer '{}' has {} MHz twice", layer.name, row->cost.clock.value()));
    }
    layer.costs.push_back(row->cost);
    return Ok{};
  });
  if (!rows) return rows.error();
  if (layers.empty()) return table.no_rows("a row per layer");
  if (const Status status = align_clocks(layers, name); !status) return status.error();
  return layers;
}

Result<std::vector<model::Layer>> read_layers_csv(const std::string& path) {
  return parsed_file(path, parse_layers_csv);
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
