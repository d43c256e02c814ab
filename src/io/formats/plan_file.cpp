#include "io/formats/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/json_writer.h"
#include "base/split.h"
#include "io/formats/file.h"
#include "io/formats/json_reader.h"
#include "io/formats/number.h"

namespace perseus::formats {
namespace {

constexpr std::string_view kFormatName = "perseus-plans";
constexpr int kFormatVersion = 1;

/// The order in which a plan file lists options: along each rank, type by type, in execution order. Neighbors in it
/// mostly have the same option.
std::vector<int> encoding_order(const model::ComputationDag& dag) {
  std::vector<int> order;
  order.reserve(dag.computations.size());
  for (const auto& rank : dag.rank_order) {
    const auto first = order.insert(order.end(), rank.begin(), rank.end());
    std::stable_sort(first, order.end(),
                     [&](int a, int b) { return dag.computations[a].type < dag.computations[b].type; });
  }
  return order;
}

// ---- Writing.

/// A list of one number of each element.
template <class Range, class Element, class Number>
auto column(const Range& range, Number Element::*member) {
  return JsonList{range, [member](const Element& element) { return element.*member; }};
}

void write_dag(JsonWriter& f, const model::ComputationDag& dag) {
  f.always("blocking_power_w", dag.blocking_power);
  f.always("accelerators", dag.accelerators);
  f.always("types", JsonLines{dag.types, [](const model::ComputationType& type) {
                                return JsonObject{[&type](JsonWriter& t) {
                                  t.always("stage", type.stage);
                                  t.always("instruction", type.instruction);
                                  t.always("options", JsonList{type.options, [](const model::Measurement& m) {
                                                                 return std::tuple(m.clock, m.time, m.energy,
                                                                                   m.time_stddev, m.energy_stddev,
                                                                                   m.samples);
                                                               }});
                                }};
                              }});
  f.always("computations", JsonObject{[&](JsonWriter& computations) {
             computations.always("type", column(dag.computations, &model::Computation::type));
             computations.always("rank", column(dag.computations, &model::Computation::rank));
             computations.always("microbatch", column(dag.computations, &model::Computation::microbatch));
           }});
  f.always("dependencies", JsonObject{[&](JsonWriter& dependencies) {
             dependencies.always("before", column(dag.dependencies, &model::Dependency::before));
             dependencies.always("after", column(dag.dependencies, &model::Dependency::after));
             dependencies.always("latency_s", column(dag.dependencies, &model::Dependency::latency));
           }});
}

/// "0*96,3,7*2": option 0 96 times, option 3, option 7 twice.
std::string runs_of(const model::Plan& plan, const std::vector<int>& order) {
  std::string text;
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && plan[order[end]] == plan[order[i]]) ++end;
    if (i > 0) text += ',';
    text += std::to_string(plan[order[i]]);
    if (end - i > 1) text += "*" + std::to_string(end - i);
    i = end;
  }
  return text;
}

void write_noise(JsonWriter& f, std::string_view key, const model::ProfileNoise& noise) {
  if (noise == model::ProfileNoise{}) return;
  f.always(key, std::tuple(noise.lateness, noise.time_stddev, noise.energy_stddev, noise.saving_stddev));
}

// ---- Reading.

Result<std::vector<model::Measurement>> read_options(const JsonReader& options) {
  std::vector<model::Measurement> measurements;
  Status status = options.for_each([&](const JsonReader& option) -> Status {
    auto row = option.numbers();
    if (!row) return row.error();
    const auto& values = *row;
    if (values.size() != 6) return option.error("an array of frequency_mhz, time_s, energy_j, two spreads and samples");
    const auto integral = [](double x) { return x >= 0 && x <= 1e9 && x == std::floor(x); };
    if (!integral(values[0]) || !integral(values[5]))
      return option.error("whole numbers for frequency_mhz and samples");
    measurements.push_back({Megahertz(static_cast<int>(values[0])), Seconds(values[1]), Joules(values[2]),
                            Seconds(values[3]), Joules(values[4]), static_cast<int>(values[5])});
    return Ok{};
  });
  if (!status) return status.error();
  return measurements;
}

Result<model::ComputationDag> read_dag(const JsonReader& json) {
  model::ComputationDag dag;
  JsonFields fields(json);
  dag.blocking_power = Watts(fields.number("blocking_power_w"));
  dag.accelerators = fields.integers("accelerators");
  const JsonReader types = fields.value("types");
  const JsonReader computations_json = fields.value("computations");
  const JsonReader dependencies_json = fields.value("dependencies");
  if (fields.error()) return *fields.error();

  Status status = types.for_each([&](const JsonReader& item) -> Status {
    JsonFields type(item);
    model::ComputationType& added = dag.types.emplace_back();
    added.stage = type.integer("stage");
    added.instruction = type.string("instruction");
    const JsonReader options = type.value("options");
    if (type.error()) return *type.error();
    auto measurements = read_options(options);
    if (!measurements) return measurements.error();
    added.options = std::move(*measurements);
    return Ok{};
  });
  if (!status) return status.error();

  JsonFields computations(computations_json);
  const std::vector<int> type = computations.integers("type");
  const std::vector<int> rank = computations.integers("rank");
  const std::vector<int> microbatch = computations.integers("microbatch");
  if (computations.error()) return *computations.error();
  if (rank.size() != type.size() || microbatch.size() != type.size()) {
    return computations_json.error("type, rank and microbatch of equal lengths");
  }
  dag.rank_order.resize(dag.accelerators.size());
  for (std::size_t i = 0; i < type.size(); ++i) {
    if (rank[i] < 0 || rank[i] >= dag.num_ranks()) {
      return computations_json.error(fmt::format("ranks from 0 to {}, found {}", dag.num_ranks() - 1, rank[i]));
    }
    dag.computations.push_back({type[i], rank[i], microbatch[i]});
    dag.rank_order[rank[i]].push_back(static_cast<int>(i));  // indices rise along a rank
  }

  JsonFields dependencies(dependencies_json);
  const std::vector<int> before = dependencies.integers("before");
  const std::vector<int> after = dependencies.integers("after");
  const std::vector<double> latency = dependencies.numbers("latency_s");
  if (dependencies.error()) return *dependencies.error();
  if (after.size() != before.size() || latency.size() != before.size()) {
    return dependencies_json.error("before, after and latency_s of equal lengths");
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    dag.dependencies.push_back({before[i], after[i], Seconds(latency[i])});
  }
  if (status = dag.validate(); !status) return json.error("a valid DAG, but " + status.error().message);
  return dag;
}

Result<model::Plan> read_plan(const JsonReader& json, std::string_view text, const model::ComputationDag& dag,
                              const std::vector<int>& order) {
  model::Plan plan(order.size());
  std::size_t next = 0;
  for (const std::string_view run : split(text, ',')) {
    const std::size_t star = std::min(run.find('*'), run.size());
    const auto option = number_in<std::uint16_t>(run.substr(0, star));
    const auto count =
        star == run.size() ? std::optional<std::size_t>(1) : number_in<std::size_t>(run.substr(star + 1));
    if (!option || !count || *count == 0 || *count > order.size() - next) {
      return json.error(fmt::format("runs OPTION or OPTION*COUNT for {} computations, found '{}' after {}",
                                    order.size(), run.substr(0, 32), next));
    }
    for (std::size_t i = 0; i < *count; ++i) {
      const int computation = order[next++];
      if (*option >= dag.type_of(computation).options.size()) {
        return json.error(fmt::format("options below {} for computation {}, found {}",
                                      dag.type_of(computation).options.size(), computation, *option));
      }
      plan[computation] = *option;
    }
  }
  if (next != order.size()) return json.error(fmt::format("{} options, found {}", order.size(), next));
  return plan;
}

Result<model::LowerBound> read_bound(const JsonReader& json) {
  model::LowerBound bound;
  Status status = json.for_each([&](const JsonReader& vertex) -> Status {
    auto values = vertex.numbers();
    if (!values) return values.error();
    if (values->size() != 2) return vertex.error("an array of time_s and effective_energy_j");
    const model::BoundVertex next{Seconds((*values)[0]), Joules((*values)[1])};
    if (!bound.vertices.empty() && next.time <= bound.vertices.back().time) return vertex.error("times that increase");
    bound.vertices.push_back(next);
    return Ok{};
  });
  if (!status) return status.error();
  if (bound.vertices.empty()) return json.error("at least one vertex");
  return bound;
}

/// Lateness, and standard deviations of time, energy and saving; all 0 if the profile counts as exact. Earlier versions
/// wrote no standard deviation of the saving.
Result<model::ProfileNoise> read_noise(JsonFields& fields, std::string_view key) {
  const std::optional<JsonReader> json = fields.optional(key);
  if (!json) return model::ProfileNoise{};
  const auto values = json->numbers();
  if (!values) return values.error();
  const std::size_t count = values->size();
  if (count < 3 || count > 4 || std::any_of(values->begin() + 1, values->end(), [](double v) { return v < 0; })) {
    return json->error("an array of lateness_s, and of time_stddev_s, energy_stddev_j and saving_stddev >= 0");
  }
  return model::ProfileNoise{Seconds((*values)[0]), Seconds((*values)[1]), Joules((*values)[2]),
                             count > 3 ? (*values)[3] : 0};
}

Result<std::vector<model::FrontierPoint>> read_points(const JsonReader& json, const model::ComputationDag& dag) {
  const std::vector<int> order = encoding_order(dag);
  std::vector<model::FrontierPoint> points;
  Status status = json.for_each([&](const JsonReader& item) -> Status {
    JsonFields fields(item);
    model::FrontierPoint point;
    point.time = Seconds(fields.number("time_s"));
    point.energy = Joules(fields.number("energy_j"));
    point.effective_energy = Joules(fields.number("effective_energy_j"));
    point.bound = Joules(fields.number("bound_j"));
    const JsonReader plan_json = fields.value("plan");
    const std::string_view text = fields.string("plan");
    const auto noise = read_noise(fields, "noise");
    const std::optional<JsonReader> clock_limit_cost = fields.optional("clock_limit_cost_j");
    if (fields.error()) return *fields.error();
    if (!noise) return noise.error();
    if (clock_limit_cost) {
      const auto cost_j = clock_limit_cost->number();
      if (!cost_j) return cost_j.error();
      point.clock_limit_cost = Joules(*cost_j);
    }
    point.noise = *noise;
    auto plan = read_plan(plan_json, text, dag, order);
    if (!plan) return plan.error();
    point.plan = std::move(*plan);
    if (!points.empty() &&
        (point.time >= points.back().time || point.effective_energy <= points.back().effective_energy)) {
      return item.error("points that get faster and need more effective energy");
    }
    points.push_back(std::move(point));
    return Ok{};
  });
  if (!status) return status.error();
  if (points.empty()) return json.error("at least one point");
  return points;
}

Result<PlanFile> read_document(const JsonReader& root) {
  JsonFields fields(root);
  const std::string_view format = fields.string("format");
  const int version = fields.integer("version");
  if (fields.error()) return *fields.error();
  if (format != kFormatName) return fields.value("format").error(fmt::format("\"{}\"", kFormatName));
  if (version != kFormatVersion) return fields.value("version").error(fmt::format("{}", kFormatVersion));
  const JsonReader metadata = fields.value("metadata");
  const JsonReader dag_json = fields.value("dag");
  const JsonReader bound_json = fields.value("bound");
  const JsonReader points_json = fields.value("points");
  const auto maximum_clock_noise = read_noise(fields, "maximum_clock_noise");
  if (fields.error()) return *fields.error();
  if (!maximum_clock_noise) return maximum_clock_noise.error();

  PlanFile file;
  file.frontier.maximum_clock_noise = *maximum_clock_noise;
  Status status = metadata.for_each_member([&](std::string_view key, const JsonReader& value) -> Status {
    const auto text = value.string();
    if (!text) return text.error();
    file.metadata.emplace(key, *text);
    return Ok{};
  });
  if (!status) return status.error();
  auto dag = read_dag(dag_json);
  if (!dag) return dag.error();
  file.dag = std::move(*dag);
  auto bound = read_bound(bound_json);
  if (!bound) return bound.error();
  file.frontier.bound = std::move(*bound);
  auto points = read_points(points_json, file.dag);
  if (!points) return points.error();
  file.frontier.points = std::move(*points);
  return file;
}

}  // namespace

std::string format_plan_file(const model::ComputationDag& dag, const model::Frontier& frontier,
                             const Metadata& metadata) {
  const std::vector<int> order = encoding_order(dag);
  const auto members = [&](JsonWriter& f) {
    f.always("format", kFormatName);
    f.always("version", kFormatVersion);
    f.always("metadata", JsonObject{[&](JsonWriter& facts) {
               for (const auto& [key, value] : metadata) facts.always(key, value);
             }});
    f.always("dag", JsonObject{[&](JsonWriter& d) { write_dag(d, dag); }});
    f.always("bound", JsonList{frontier.bound.vertices, [](const model::BoundVertex& vertex) {
                                 return std::pair(vertex.time, vertex.effective_energy);
                               }});
    f.always("points", JsonLines{frontier.points, [&order](const model::FrontierPoint& point) {
                                   return JsonObject{[&](JsonWriter& p) {
                                     p.always("time_s", point.time);
                                     p.always("energy_j", point.energy);
                                     p.always("effective_energy_j", point.effective_energy);
                                     p.always("bound_j", point.bound);
                                     p.always("plan", runs_of(point.plan, order));
                                     p("clock_limit_cost_j", point.clock_limit_cost);
                                     write_noise(p, "noise", point.noise);
                                   }};
                                 }});
    write_noise(f, "maximum_clock_noise", frontier.maximum_clock_noise);
  };
  return json_object(members) + "\n";
}

Result<PlanFile> parse_plan_file(std::string_view text, const std::string& name) {
  auto document = parse_json(text, name);
  if (!document) return document.error();
  return read_document(document->root());
}

Result<PlanFile> read_plan_file(const std::string& path) { return parsed_file(path, parse_plan_file); }

}  // namespace perseus::formats
