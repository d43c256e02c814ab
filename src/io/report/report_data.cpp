#include "io/report/report_data.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "base/json_writer.h"

namespace perseus::report {
namespace {

constexpr std::size_t kMostBoundVertices = 3000;  // more than a screen is wide

double rounded(double value) { return with_digits(value, 8); }

void write_types(JsonWriter& f, const model::ComputationDag& dag) {
  using model::Measurement;
  f.always("types", JsonList{dag.types, [](const model::ComputationType& type) {
                               return JsonObject{[&type](JsonWriter& t) {
                                 const auto column = [&](auto Measurement::*member) {
                                   return JsonList{type.options, [member](const Measurement& m) { return m.*member; }};
                                 };
                                 t.always("stage", type.stage);
                                 t.always("instruction", type.instruction);
                                 t.always("clock_mhz", column(&Measurement::clock));
                                 t.always("time_s", column(&Measurement::time));
                                 t.always("energy_j", column(&Measurement::energy));
                               }};
                             }});
}

void write_computations(JsonWriter& f, const model::ComputationDag& dag) {
  const auto column = [&](int model::Computation::*member) {
    return JsonList{dag.computations, [member](const model::Computation& c) { return c.*member; }};
  };
  f.always("computations", JsonObject{[&](JsonWriter& c) {
             c.always("type", column(&model::Computation::type));
             c.always("rank", column(&model::Computation::rank));
             c.always("microbatch", column(&model::Computation::microbatch));
           }});
}

void write_dependencies(JsonWriter& f, const model::ComputationDag& dag) {
  std::vector<int> sent;
  std::set<Seconds> latencies;
  for (int e = 0; e < static_cast<int>(dag.dependencies.size()); ++e) {
    const model::Dependency& d = dag.dependencies[e];
    if (dag.computations[d.before].rank == dag.computations[d.after].rank && d.latency == Seconds(0)) continue;
    sent.push_back(e);
    latencies.insert(d.latency);
  }
  std::ranges::sort(sent, {}, [&](int e) { return std::pair(dag.dependencies[e].after, dag.dependencies[e].before); });
  f.always("dependencies", JsonObject{[&](JsonWriter& d) {
             int last = 0;
             d.always("after_step", JsonList{sent, [&](int e) {
                                               const int before = std::exchange(last, dag.dependencies[e].after);
                                               return last - before;
                                             }});
             d.always("before_back",
                      JsonList{sent, [&](int e) { return dag.dependencies[e].after - dag.dependencies[e].before; }});
             d.always("latencies_s", latencies);
             if (latencies.size() < 2) sent.clear();  // all equal: the reader assumes one latency
             d.always("latency", JsonList{sent, [&](int e) {
                                            return std::distance(latencies.begin(),
                                                                 latencies.find(dag.dependencies[e].latency));
                                          }});
           }});
}

void write_points(JsonWriter& f, const model::Frontier& frontier) {
  using model::FrontierPoint;
  const auto column = [&](auto FrontierPoint::*member) {
    return JsonList{frontier.points, [member](const FrontierPoint& p) { return rounded((p.*member).value()); }};
  };
  f.always("points", JsonObject{[&](JsonWriter& points) {
             points.always("time_s", column(&FrontierPoint::time));
             points.always("energy_j", column(&FrontierPoint::energy));
             points.always("effective_energy_j", column(&FrontierPoint::effective_energy));
             points.always("bound_j", column(&FrontierPoint::bound));
           }});
}

/// Every n-th vertex is enough to draw: the chords between them lie above the curve by less than a line's width.
void write_bound(JsonWriter& f, const model::LowerBound& bound) {
  std::vector<model::BoundVertex> drawn;
  const std::size_t every = 1 + bound.vertices.size() / kMostBoundVertices;
  for (std::size_t i = 0; i + 1 < bound.vertices.size(); i += every) drawn.push_back(bound.vertices[i]);
  drawn.push_back(bound.vertices.back());
  const auto column = [&](auto model::BoundVertex::*member) {
    return JsonList{drawn, [member](const model::BoundVertex& v) { return rounded((v.*member).value()); }};
  };
  f.always("bound", JsonObject{[&](JsonWriter& vertices) {
             vertices.always("time_s", column(&model::BoundVertex::time));
             vertices.always("effective_energy_j", column(&model::BoundVertex::effective_energy));
           }});
}

/// [count, option, count, option ...]
std::vector<int> runs_of(const model::Plan& plan, const std::vector<int>& order) {
  std::vector<int> runs;
  for (std::size_t i = 0; i < order.size();) {
    const std::size_t from = i;
    while (i < order.size() && plan[order[i]] == plan[order[from]]) ++i;
    runs.push_back(static_cast<int>(i - from));
    runs.push_back(plan[order[from]]);
  }
  return runs;
}

/// The computations in the order in which the data list plans.
std::vector<int> sent_order(const model::ComputationDag& dag) {
  std::vector<int> order(dag.computations.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int i) { return dag.computations[i].type; });
  return order;
}

void write_plans(JsonWriter& f, const ReportInput& input, const ReportSummary& summary) {
  const std::vector<int> order = sent_order(input.dag);
  const auto points = points_with_plan(static_cast<int>(input.frontier.points.size()), order.size(),
                                       {summary.default_point, summary.straggler ? summary.straggler->point : -1});
  f.always(
      "plans", JsonObject{[&](JsonWriter& plans) {
        plans.always("point", points);
        plans.always("runs", JsonList{points, [&](int p) { return runs_of(input.frontier.points[p].plan, order); }});
      }});
}

void write_summary(JsonWriter& f, const ReportSummary& s) {
  const auto cost = [](const IterationCost& c) {
    return JsonObject{[&c](JsonWriter& members) {
      members.always("time_s", c.time);
      members.always("energy_j", c.energy);
      members.always("effective_energy_j", c.effective_energy);
    }};
  };
  f.always("summary", JsonObject{[&](JsonWriter& summary) {
             summary.always("default_point", s.default_point);
             summary.always("fastest", cost(s.fastest));
             summary.always("all_max", cost(s.all_max));
             summary.always("min_energy", cost(s.min_energy));
             summary.always("t_min_s", s.t_min);
             summary.always("t_star_s", s.t_star);
             if (!s.straggler) return;
             summary.always("straggler", JsonObject{[&](JsonWriter& straggler) {
                              straggler.always("deadline_s", s.straggler->deadline);
                              straggler.always("point", s.straggler->point);
                              straggler.always("energy_j", s.straggler->energy);
                              straggler.always("all_max_energy_j", s.straggler->all_max_energy);
                            }});
           }});
}

void write_iteration(JsonWriter& f, const model::ComputationDag& dag) {
  f.always("accelerators", dag.accelerators);
  write_types(f, dag);
  write_computations(f, dag);
  write_dependencies(f, dag);
}

void write_curves(JsonWriter& f, const model::Frontier& frontier) {
  write_points(f, frontier);
  write_bound(f, frontier.bound);
}

}  // namespace

std::vector<int> points_with_plan(int points, std::size_t computations, const std::vector<int>& wanted) {
  const int most = static_cast<int>(std::clamp<std::size_t>(600'000 / std::max<std::size_t>(1, computations), 12, 250));
  std::set<int> chosen;
  for (const int point : wanted) {
    if (point >= 0 && point < points) chosen.insert(point);
  }
  const int spread = std::min(points, most);
  for (int k = 0; k < spread; ++k)
    chosen.insert(spread == 1 ? 0
                              : static_cast<int>(std::lround(static_cast<double>(k) * (points - 1) / (spread - 1))));
  return {chosen.begin(), chosen.end()};
}

void write_report_data(const ReportInput& input, const ReportSummary& summary, const Sink& sink) {
  const model::ComputationDag& dag = input.dag;
  sink(json_object([&](JsonWriter& f) {
    f.always("format", 1);
    f.always("title", input.title);
    f.always("blocking_power_w", dag.blocking_power);
    f("switch_latency_s", input.switch_latency);
    write_iteration(f, dag);
    write_curves(f, input.frontier);
    write_plans(f, input, summary);
    write_summary(f, summary);
  }));
}

void write_frontier_data(const model::ComputationDag& dag, const model::Frontier& frontier, const Sink& sink) {
  sink(json_object([&](JsonWriter& f) {
    f.always("format", 1);
    f.always("waiting_w", dag.total_blocking_power());
    write_curves(f, frontier);
    write_summary(f, summarize(dag, frontier, {}));
  }));
}

void write_timeline_data(const model::ComputationDag& dag, const model::Plan& plan, Seconds switch_latency,
                         const Sink& sink) {
  sink(json_object([&](JsonWriter& f) {
    f.always("format", 1);
    f.always("blocking_power_w", dag.blocking_power);
    f("switch_latency_s", switch_latency);
    write_iteration(f, dag);
    f.always("runs", runs_of(plan, sent_order(dag)));
  }));
}

}  // namespace perseus::report
