#include "io/formats/dag_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "io/formats/file.h"
#include "io/formats/json_reader.h"
#include "io/formats/number.h"
#include "planning/model/topological_order.h"

namespace perseus::formats {
namespace {

/// Names in the order of their indices, and indices by name.
class Names {
 public:
  /// The index of a new name; an Error if the name exists.
  Status add(const JsonReader& json, std::string_view name) {
    if (name.empty()) return json.error("a name that is not empty");
    if (!numbers_.emplace(name, static_cast<int>(names_.size())).second)
      return json.error("a name that is not yet taken");
    names_.emplace_back(name);
    return Ok{};
  }
  [[nodiscard]] Result<int> find(const JsonReader& json) const {
    const auto name = json.string();
    if (!name) return name.error();
    const auto found = numbers_.find(std::string(*name));
    if (found == numbers_.end()) return json.error(fmt::format("the name of one of the {}", plural_));
    return found->second;
  }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  explicit Names(const char* plural) : plural_(plural) {}

 private:
  const char* plural_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int> numbers_;
};

Result<double> number_in_range(JsonFields& fields, std::string_view key, bool positive, double most) {
  const JsonReader json = fields.value(key);
  if (fields.error()) return *fields.error();
  auto value = json.number();
  if (!value) return value.error();
  if (*value > most || *value < 0 || (positive && *value == 0)) {
    return json.error(fmt::format("a number {} 0 and <= {}", positive ? ">" : ">=", most));
  }
  return *value;
}

struct Edge {
  int before = 0;
  int after = 0;
  Seconds latency;
};

/// Reads the parts one after another; each refers to names that earlier parts define.
class DagReader {
 public:
  Result<NamedDag> read(const JsonReader& root) {
    JsonFields fields(root);
    auto blocking = number_in_range(fields, "blocking_power_w", false, 1e9);
    if (!blocking) return blocking.error();
    const JsonReader machines = fields.value("machines");
    const JsonReader types = fields.value("types");
    const JsonReader computations = fields.value("computations");
    const auto dependencies = fields.optional("dependencies");
    fields.optional("comment");
    fields.reject_others();
    if (fields.error()) return *fields.error();
    dag_.blocking_power = Watts(*blocking);

    Status status = machines.for_each([&](const JsonReader& json) { return read_machine(json); });
    if (status) status = types.for_each([&](const JsonReader& json) { return read_type(json); });
    if (status) status = computations.for_each([&](const JsonReader& json) { return read_computation(json); });
    if (status && computations_.empty()) status = computations.error("at least one computation");
    if (status) status = read_orders();
    if (status && dependencies) {
      status = dependencies->for_each([&](const JsonReader& json) { return read_dependency(json); });
    }
    if (!status) return status.error();
    return number_topologically(root);
  }

 private:
  Status read_machine(const JsonReader& json) {
    int accelerators = 1;
    orders_.emplace_back();
    if (json.is_string()) {
      if (Status status = machines_.add(json, *json.string()); !status) return status;
    } else {
      JsonFields fields(json);
      const JsonReader name_json = fields.value("name");
      const std::string_view name = fields.string("name");
      const auto count = fields.optional("accelerators");
      const auto order = fields.optional("order");
      fields.reject_others();
      if (fields.error()) return *fields.error();
      if (Status status = machines_.add(name_json, name); !status) return status;
      if (count) {
        auto value = count->integer();
        if (!value) return value.error();
        if (*value < 1 || *value > 1'000'000) return count->error("an integer from 1 to 1000000");
        accelerators = *value;
      }
      orders_.back() = order;
    }
    dag_.accelerators.push_back(accelerators);
    return Ok{};
  }

  Status read_type(const JsonReader& json) {
    JsonFields fields(json);
    const JsonReader name_json = fields.value("name");
    const std::string_view name = fields.string("name");
    const JsonReader options = fields.value("options");
    fields.reject_others();
    if (fields.error()) return *fields.error();
    if (Status status = types_.add(name_json, name); !status) return status;
    model::ComputationType& type = dag_.types.emplace_back();
    type.stage = -1;
    type.instruction = name;
    Status status = options.for_each([&](const JsonReader& option) { return read_option(option, type.options); });
    if (!status) return status;
    if (type.options.empty() || type.options.size() > 65535) return options.error("1 to 65535 options");
    std::ranges::stable_sort(type.options, std::ranges::greater(), &model::Measurement::clock);
    const auto twice = std::ranges::adjacent_find(type.options, {}, &model::Measurement::clock);
    if (twice != type.options.end()) {
      return options.error(fmt::format("one option per frequency_mhz, {} is there twice", twice->clock.value()));
    }
    return Ok{};
  }

  static Status read_option(const JsonReader& json, std::vector<model::Measurement>& options) {
    JsonFields fields(json);
    const JsonReader clock_json = fields.value("frequency_mhz");
    const int clock = fields.integer("frequency_mhz");
    if (fields.error()) return *fields.error();
    if (clock < 0 || clock > kMaxFrequency_mhz) {
      return clock_json.error(fmt::format("an integer from 0 (no clock) to {}", kMaxFrequency_mhz));
    }
    auto time = number_in_range(fields, "time_s", true, kMaxTime_s);
    if (!time) return time.error();
    auto energy = number_in_range(fields, "energy_j", false, kMaxEnergy_j);
    if (!energy) return energy.error();
    fields.reject_others();
    if (fields.error()) return *fields.error();
    options.push_back({Megahertz(clock), Seconds(*time), Joules(*energy), Seconds(), Joules(), 1});
    return Ok{};
  }

  Status read_computation(const JsonReader& json) {
    JsonFields fields(json);
    const JsonReader id_json = fields.value("id");
    const std::string_view id = fields.string("id");
    const JsonReader type_json = fields.value("type");
    const JsonReader machine_json = fields.value("machine");
    fields.reject_others();
    if (fields.error()) return *fields.error();
    if (Status status = ids_.add(id_json, id); !status) return status;
    const auto type = types_.find(type_json);
    if (!type) return type.error();
    const auto machine = machines_.find(machine_json);
    if (!machine) return machine.error();
    computations_.push_back({*type, *machine, -1});
    return Ok{};
  }

  /// The computations, machine by machine: in the machine's own order, or as listed.
  Status read_orders() {
    dag_.rank_order.resize(orders_.size());
    std::vector<std::vector<int>> listed(orders_.size());
    for (std::size_t i = 0; i < computations_.size(); ++i) listed[computations_[i].rank].push_back(static_cast<int>(i));
    for (std::size_t machine = 0; machine < orders_.size(); ++machine) {
      auto& order = dag_.rank_order[machine];
      if (!orders_[machine]) {
        order = listed[machine];
      } else {
        std::vector<char> placed(computations_.size());
        Status status = orders_[machine]->for_each([&](const JsonReader& json) -> Status {
          const auto computation = ids_.find(json);
          if (!computation) return computation.error();
          if (computations_[*computation].rank != static_cast<int>(machine)) {
            return json.error(fmt::format("a computation of machine {}", machines_.names()[machine]));
          }
          if (placed[*computation] != 0) return json.error("each computation once");
          placed[*computation] = 1;
          order.push_back(*computation);
          return Ok{};
        });
        if (!status) return status;
        if (order.size() != listed[machine].size()) {
          const auto missing = std::ranges::find_if(listed[machine], [&](int i) { return placed[i] == 0; });
          return orders_[machine]->error(fmt::format("all computations of machine {}, but {} is not there",
                                                     machines_.names()[machine], ids_.names()[*missing]));
        }
      }
      for (std::size_t i = 1; i < order.size(); ++i) edges_.push_back({order[i - 1], order[i], Seconds()});
    }
    return Ok{};
  }

  Status read_dependency(const JsonReader& json) {
    JsonFields fields(json);
    const JsonReader before_json = fields.value("before");
    const JsonReader after_json = fields.value("after");
    Edge edge;
    if (fields.optional("latency_s")) {
      auto latency = number_in_range(fields, "latency_s", false, kMaxTime_s);
      if (!latency) return latency.error();
      edge.latency = Seconds(*latency);
    }
    fields.reject_others();
    if (fields.error()) return *fields.error();
    const auto before = ids_.find(before_json);
    if (!before) return before.error();
    const auto after = ids_.find(after_json);
    if (!after) return after.error();
    edge.before = *before;
    edge.after = *after;
    edges_.push_back(edge);
    return Ok{};
  }

  Result<NamedDag> number_topologically(const JsonReader& root) {
    std::vector<std::pair<int, int>> pairs;
    pairs.reserve(edges_.size());
    for (const Edge& edge : edges_) pairs.emplace_back(edge.before, edge.after);
    const model::TopologicalOrder sorted = model::topological_order(static_cast<int>(computations_.size()), pairs);
    if (!sorted.cycle.empty())
      return root.error("dependencies and machine orders without a cycle, but " + text_of(sorted.cycle));

    NamedDag named;
    std::vector<int> number(computations_.size());
    for (std::size_t i = 0; i < sorted.order.size(); ++i) {
      number[sorted.order[i]] = static_cast<int>(i);
      dag_.computations.push_back(computations_[sorted.order[i]]);
      named.computation_ids.push_back(ids_.names()[sorted.order[i]]);
    }
    for (auto& order : dag_.rank_order) {
      for (int& computation : order) computation = number[computation];
    }
    for (const Edge& edge : edges_)
      dag_.dependencies.push_back({number[edge.before], number[edge.after], edge.latency});
    keep_one_per_pair(dag_.dependencies);
    named.machine_names = machines_.names();
    named.dag = std::move(dag_);
    return named;
  }

  /// Of several dependencies between one pair, the one with the longest latency implies the others.
  static void keep_one_per_pair(std::vector<model::Dependency>& dependencies) {
    std::ranges::sort(dependencies, [](const model::Dependency& a, const model::Dependency& b) {
      return std::tuple(a.after, a.before, b.latency) < std::tuple(b.after, b.before, a.latency);
    });
    const auto same_pair = [](const model::Dependency& a, const model::Dependency& b) {
      return a.before == b.before && a.after == b.after;
    };
    dependencies.erase(std::unique(dependencies.begin(), dependencies.end(), same_pair), dependencies.end());
  }

  [[nodiscard]] std::string text_of(const std::vector<int>& cycle) const {
    constexpr std::size_t shown = 12;
    std::string text;
    for (std::size_t i = 0; i < cycle.size() && i < shown; ++i) text += ids_.names()[cycle[i]] + " before ";
    if (cycle.size() > shown) text += fmt::format("... {} more before ", cycle.size() - shown);
    return text + ids_.names()[cycle.front()];
  }

  model::ComputationDag dag_;
  Names machines_{"machines"};
  Names types_{"types"};
  Names ids_{"computations"};
  std::vector<std::optional<JsonReader>> orders_;  ///< per machine
  std::vector<model::Computation> computations_;   ///< as listed
  std::vector<Edge> edges_;
};

}  // namespace

Result<NamedDag> parse_dag_json(std::string_view text, const std::string& name) {
  auto document = parse_json(text, name);
  if (!document) return document.error();
  return DagReader().read(document->root());
}

Result<NamedDag> read_dag_json(const std::string& path) { return parsed_file(path, parse_dag_json); }

}  // namespace perseus::formats
