#include "io/report/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>

#include "io/report/escape.h"
#include "io/report/pieces.h"

namespace perseus::report {
namespace {

constexpr std::size_t kMostBoundVertices = 3000;  // more than a screen is wide

/// "name":[...]; `text_of_item` writes each item, which may be any JSON.
template <class Items, class TextOf>
void column(Pieces& out, std::string_view name, const Items& items, TextOf text_of_item) {
  out << "\"" << name << "\":[";
  bool first = true;
  for (const auto& item : items) {
    if (!first) out << ",";
    first = false;
    out << text_of_item(item);
  }
  out << "]";
}

std::string precise(double value) { return fmt::format("{}", value); }
std::string rounded(double value) { return fmt::format("{:.8g}", value); }
std::string whole(long value) { return std::to_string(value); }

void write_types(Pieces& out, const model::ComputationDag& dag) {
  column(out, "types", dag.types, [](const model::ComputationType& type) {
    std::string json;
    const Sink append = [&json](std::string_view text) { json += text; };
    Pieces inner(append);
    inner << fmt::format("{{\"stage\":{},\"instruction\":{},", type.stage, json_string(type.instruction));
    column(inner, "clock_mhz", type.options, [](const model::Measurement& m) { return whole(m.clock.value()); });
    inner << ",";
    column(inner, "time_s", type.options, [](const model::Measurement& m) { return precise(m.time.value()); });
    inner << ",";
    column(inner, "energy_j", type.options, [](const model::Measurement& m) { return precise(m.energy.value()); });
    inner << "}";
    inner.flush();
    return json;
  });
}

void write_computations(Pieces& out, const model::ComputationDag& dag) {
  out << "\"computations\":{";
  column(out, "type", dag.computations, [](const model::Computation& c) { return whole(c.type); });
  out << ",";
  column(out, "rank", dag.computations, [](const model::Computation& c) { return whole(c.rank); });
  out << ",";
  column(out, "microbatch", dag.computations, [](const model::Computation& c) { return whole(c.microbatch); });
  out << "}";
}

void write_dependencies(Pieces& out, const model::ComputationDag& dag) {
  std::vector<int> sent;
  std::set<Seconds> latencies;
  for (int e = 0; e < static_cast<int>(dag.dependencies.size()); ++e) {
    const model::Dependency& d = dag.dependencies[e];
    if (dag.computations[d.before].rank == dag.computations[d.after].rank && d.latency == Seconds(0)) continue;
    sent.push_back(e);
    latencies.insert(d.latency);
  }
  std::ranges::sort(sent, {}, [&](int e) { return std::pair(dag.dependencies[e].after, dag.dependencies[e].before); });
  out << "\"dependencies\":{";
  int last = 0;
  column(out, "after_step", sent, [&](int e) {
    const int step = dag.dependencies[e].after - last;
    last = dag.dependencies[e].after;
    return whole(step);
  });
  out << ",";
  column(out, "before_back", sent,
         [&](int e) { return whole(dag.dependencies[e].after - dag.dependencies[e].before); });
  out << ",";
  column(out, "latencies_s", latencies, [](Seconds latency) { return precise(latency.value()); });
  out << ",";
  if (latencies.size() < 2) sent.clear();  // all equal: the reader assumes one latency
  column(out, "latency", sent,
         [&](int e) { return whole(std::distance(latencies.begin(), latencies.find(dag.dependencies[e].latency))); });
  out << "}";
}

void write_points(Pieces& out, const model::Frontier& frontier) {
  out << "\"points\":{";
  column(out, "time_s", frontier.points, [](const model::FrontierPoint& p) { return rounded(p.time.value()); });
  out << ",";
  column(out, "energy_j", frontier.points, [](const model::FrontierPoint& p) { return rounded(p.energy.value()); });
  out << ",";
  column(out, "effective_energy_j", frontier.points,
         [](const model::FrontierPoint& p) { return rounded(p.effective_energy.value()); });
  out << ",";
  column(out, "bound_j", frontier.points, [](const model::FrontierPoint& p) { return rounded(p.bound.value()); });
  out << "}";
}

/// Every n-th vertex is enough to draw: the chords between them lie above the curve by less than a line's width.
void write_bound(Pieces& out, const model::LowerBound& bound) {
  std::vector<model::BoundVertex> drawn;
  const std::size_t every = 1 + bound.vertices.size() / kMostBoundVertices;
  for (std::size_t i = 0; i + 1 < bound.vertices.size(); i += every) drawn.push_back(bound.vertices[i]);
  drawn.push_back(bound.vertices.back());
  out << "\"bound\":{";
  column(out, "time_s", drawn, [](const model::BoundVertex& v) { return rounded(v.time.value()); });
  out << ",";
  column(out, "effective_energy_j", drawn,
         [](const model::BoundVertex& v) { return rounded(v.effective_energy.value()); });
  out << "}";
}

std::string runs_of(const model::Plan& plan, const std::vector<int>& order) {
  std::string json = "[";
  for (std::size_t i = 0; i < order.size();) {
    const std::size_t from = i;
    while (i < order.size() && plan[order[i]] == plan[order[from]]) ++i;
    json += fmt::format("{}{},{}", from == 0 ? "" : ",", i - from, plan[order[from]]);
  }
  return json += "]";
}

/// The computations in the order in which the data list plans.
std::vector<int> sent_order(const model::ComputationDag& dag) {
  std::vector<int> order(dag.computations.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int i) { return dag.computations[i].type; });
  return order;
}

void write_plans(Pieces& out, const ReportInput& input, const ReportSummary& summary) {
  const std::vector<int> order = sent_order(input.dag);
  const auto points = points_with_plan(static_cast<int>(input.frontier.points.size()), order.size(),
                                       {summary.default_point, summary.straggler ? summary.straggler->point : -1});
  out << "\"plans\":{";
  column(out, "point", points, whole);
  out << ",";
  column(out, "runs", points, [&](int p) { return runs_of(input.frontier.points[p].plan, order); });
  out << "}";
}

std::string cost_json(const IterationCost& c) {
  return fmt::format(R"({{"time_s":{},"energy_j":{},"effective_energy_j":{}}})", precise(c.time.value()),
                     precise(c.energy.value()), precise(c.effective_energy.value()));
}

void write_summary(Pieces& out, const ReportSummary& s) {
  out << fmt::format(
      R"("summary":{{"default_point":{},"fastest":{},"all_max":{},"min_energy":{},"t_min_s":{},"t_star_s":{})",
      s.default_point, cost_json(s.fastest), cost_json(s.all_max), cost_json(s.min_energy), precise(s.t_min.value()),
      precise(s.t_star.value()));
  if (s.straggler)
    out << fmt::format(R"(,"straggler":{{"deadline_s":{},"point":{},"energy_j":{},"all_max_energy_j":{}}})",
                       precise(s.straggler->deadline.value()), s.straggler->point, precise(s.straggler->energy.value()),
                       precise(s.straggler->all_max_energy.value()));
  out << "}";
}

void write_iteration(Pieces& out, const model::ComputationDag& dag) {
  column(out, "accelerators", dag.accelerators, whole);
  out << ",\n";
  write_types(out, dag);
  out << ",\n";
  write_computations(out, dag);
  out << ",\n";
  write_dependencies(out, dag);
  out << ",\n";
}

void write_curves(Pieces& out, const model::Frontier& frontier) {
  write_points(out, frontier);
  out << ",\n";
  write_bound(out, frontier.bound);
  out << ",\n";
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
  Pieces out(sink);
  out << fmt::format("{{\"format\":1,\"title\":{},\"blocking_power_w\":{},", json_string(input.title),
                     precise(dag.blocking_power.value()));
  write_iteration(out, dag);
  write_curves(out, input.frontier);
  write_plans(out, input, summary);
  out << ",\n";
  write_summary(out, summary);
  out << "}";
}

void write_frontier_data(const model::ComputationDag& dag, const model::Frontier& frontier, const Sink& sink) {
  Pieces out(sink);
  out << fmt::format("{{\"format\":1,\"waiting_w\":{},\n", precise(dag.total_blocking_power().value()));
  write_curves(out, frontier);
  write_summary(out, summarize(dag, frontier, {}));
  out << "}";
}

void write_timeline_data(const model::ComputationDag& dag, const model::Plan& plan, const Sink& sink) {
  Pieces out(sink);
  out << fmt::format("{{\"format\":1,\"blocking_power_w\":{},", precise(dag.blocking_power.value()));
  write_iteration(out, dag);
  out << "\"runs\":" << runs_of(plan, sent_order(dag)) << "}";
}

}  // namespace perseus::report
