#include "plan/plan_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>
#include <memory>
#include <string_view>

#include "base/count_text.h"
#include "command_line/records.h"
#include "command_line/terminal_size.h"
#include "io/formats/frequency_plan.h"
#include "io/report/format.h"
#include "io/report/table.h"
#include "io/report/timeline_svg.h"
#include "planning/checker/plan_run.h"
#include "planning/model/make_schedule.h"
#include "planning/model/reference_plans.h"
#include "planning/model/schedule.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

bool is_part_of_a_plan(std::string_view name) {
  static const OutputDirectory::IsOurs files = one_of({"frontier.csv", "plans.json", "report.html", "frontier.svg",
                                                       "timeline.svg", "trace.json", "plans/freqs_pipeline_*.py"});
  return files(name);
}

constexpr int kRowsShown = 12;
constexpr double kLeastAdvised_pct = 0.05;  ///< a tolerance that saves less is not worth a line

int least_energy_point(const std::vector<PointFigures>& figures) {
  return static_cast<int>(std::ranges::min_element(figures, {}, &PointFigures::energy) - figures.begin());
}

/// "fastest, default"
std::string role_of(int point, const report::ReportSummary& summary, const std::vector<PointFigures>& figures) {
  std::vector<std::string_view> roles;
  const auto add = [&](bool has, std::string_view role) {
    if (has) roles.push_back(role);
  };
  add(point + 1 == static_cast<int>(figures.size()), "fastest");
  add(point == summary.default_point, "default");
  add(point == least_energy_point(figures), "least energy");
  return fmt::format("{}", fmt::join(roles, ", "));
}

/// Points evenly spread over time; those that have a role and the straggler's always.
std::vector<int> representative_points(const model::Frontier& frontier, const report::ReportSummary& summary,
                                       int least_energy) {
  const Seconds slowest = frontier.points.front().time;
  const Seconds fastest = frontier.points.back().time;
  std::vector<int> rows{0, static_cast<int>(frontier.points.size()) - 1, summary.default_point, least_energy};
  for (int row = 1; row + 1 < kRowsShown; ++row) {
    rows.push_back(report::point_for(frontier, slowest + (double(row) / (kRowsShown - 1)) * (fastest - slowest)));
  }
  if (summary.straggler) rows.push_back(summary.straggler->point);
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

/// Rounding may leave a gap of -1e-13 %: print it, and what rounds to -0.000 %, as 0.
std::string gap_text(double pct) { return fmt::format("{:.3f} %", std::abs(pct) < 0.0005 ? 0 : pct); }

/// The default plan, T_min beside it, and the saving for a little more time.
std::string default_text(const report::ReportSummary& s) {
  const auto slower = [&](Seconds time) {
    const double pct = 100 * ((time - s.all_max.time) / s.all_max.time);
    return std::abs(pct) < 0.0005
               ? std::string("as fast as maximum clock")
               : fmt::format("{:.3f} % {} than maximum clock", std::abs(pct), pct < 0 ? "faster" : "slower");
  };
  std::string text = fmt::format("default plan: point {}, {}, {}; saves {:.2f} %\n", s.default_point,
                                 report::text_of(s.default_plan.time), slower(s.default_plan.time), s.saving_pct);
  if (s.default_plan.time != s.fastest.time) {
    text += fmt::format("fastest plan: {}, {}; saves {:.2f} %\n", report::text_of(s.fastest.time),
                        slower(s.fastest.time), s.fastest_saving_pct);
  }
  for (const report::ToleranceAdvice& a : s.tolerances) {
    if (a.more_pct < kLeastAdvised_pct) continue;
    text +=
        fmt::format("with --slowdown {0:g}%: {0:g} % of time saves {1:.2f} points more\n", a.slowdown_pct, a.more_pct);
  }
  return text;
}

json::object json_of(const report::IterationCost& cost) {
  return {{"time_s", cost.time.value()},
          {"energy_j", cost.energy.value()},
          {"effective_energy_j", cost.effective_energy.value()}};
}

/// Times and energies are expected ones; beside them those of the means of a noisy profile.
json::object default_json(const report::ReportSummary& summary, const PointFigures& figures) {
  json::object plan = json_of(summary.default_plan);
  plan["time_of_means_s"] = (summary.default_plan.time - figures.lateness).value();
  plan["time_stddev_s"] = figures.error_bars.time_stddev.value();
  plan["energy_stddev_j"] = figures.error_bars.energy_stddev.value();
  plan["point"] = summary.default_point;
  plan["slowdown_pct"] = 100 * summary.rule.slowdown;
  plan["saving_pct"] = summary.saving_pct;
  return plan;
}

}  // namespace

bool is_plan_output(std::string_view name) {
  // Files of a search beside the folders of its configurations; it has a frontier.csv too.
  static const OutputDirectory::IsOurs of_a_search =
      one_of({"configurations.csv", "configurations.html", "configurations.svg"});
  if (is_part_of_a_plan(name) || of_a_search(name)) return true;
  const std::size_t slash = name.find('/');
  const std::string_view schedule = name.substr(0, name.find_first_of("+/"));
  return slash != std::string_view::npos &&
         std::ranges::find(model::schedule_names(), schedule) != model::schedule_names().end() &&
         is_part_of_a_plan(name.substr(slash + 1));
}

std::vector<ResultFile> plan_pages(const report::ReportInput& report, const DrawnPlans& drawn) {
  using report::Sink;
  return {
      {"report.html", [&report](const Sink& sink) { report::write_html(report, sink); }},
      {"frontier.svg", [&report](const Sink& sink) { report::write_frontier_svg(report, sink); }},
      {"timeline.svg", [&drawn](const Sink& sink) { report::write_timeline_svg(drawn.dag(), drawn.plans(), sink); }},
      {"trace.json", [&drawn](const Sink& sink) { report::write_trace(drawn.dag(), drawn.plans(), sink); }},
  };
}

std::string plan_comment(int number, const model::FrontierPoint& point) {
  return fmt::format("Point {}: time {:.9g} s, energy {:.9g} J, lower bound {:.9g} J", number, point.time.value(),
                     point.energy.value(), point.bound.value());
}

Status check_plan_output(const std::filesystem::path& directory) { return check_output(directory, is_plan_output); }

std::vector<ResultFile> plan_files(const std::string& folder, const Pipeline& pipeline, const model::Frontier& frontier,
                                   const std::vector<PointFigures>& figures, std::optional<Seconds> straggler,
                                   const model::DefaultRule& rule, Seconds switch_latency,
                                   const formats::Metadata& metadata) {
  struct Shown {
    formats::FrequencyPlanWriter writer;
    report::ReportInput report;
    DrawnPlans drawn;
  };
  const model::ComputationDag& dag = pipeline.dag;
  const auto shown = std::make_shared<Shown>(
      Shown{formats::FrequencyPlanWriter(dag),
            {dag, frontier, pipeline.title, described_inputs(pipeline), straggler, rule, switch_latency},
            default_drawing(dag, frontier, rule, switch_latency)});
  std::vector<ResultFile> files;
  for (int i = 0; i < std::ssize(frontier.points); ++i) {
    files.emplace_back("plans/" + formats::frequency_plan_file_name(i), [=, &frontier](const report::Sink& sink) {
      sink(shown->writer.write(frontier.points[i].plan, plan_comment(i, frontier.points[i])));
    });
  }
  for (ResultFile& page : plan_pages(shown->report, shown->drawn)) {
    files.emplace_back(page.name, [shown, fill = std::move(page.fill)](const report::Sink& sink) { fill(sink); });
  }
  files.emplace_back("frontier.csv", points_of(figures).csv());
  formats::Metadata described = metadata;
  for (const report::ReportFact& fact : pipeline.origin) described[fact.name] = fact.value;
  files.emplace_back("plans.json", [=, &dag, &frontier](const report::Sink& sink) {
    sink(formats::format_plan_file(dag, frontier, described));
  });
  for (ResultFile& file : files) file.name = folder + file.name;
  return files;
}

std::string plan_text(const Pipeline& pipeline, const model::Frontier& frontier, const report::ReportSummary& summary,
                      const std::vector<PointFigures>& figures) {
  std::string text = lines_of(pipeline.facts);
  report::TextTable table({"point", "plan", "time", "slowdown", "energy", "saving", "gap", "power", "changes"}, 2);
  for (const int point : representative_points(frontier, summary, least_energy_point(figures))) {
    const PointFigures& f = figures[point];
    table.add({std::to_string(f.point), role_of(point, summary, figures), report::text_of(f.time),
               fmt::format("{:.2f} %", f.slowdown_pct), report::text_of(f.energy),
               fmt::format("{:.2f} %", f.saving_pct), gap_text(f.gap_pct), report::text_of(f.average_power),
               std::to_string(f.clock_changes)});
  }
  text += "\n" + table.to_string(output_columns()) + "\n";
  text += fmt::format("everything at maximum clock: {}, {} (the reference of 'saving')\n",
                      report::text_of(summary.all_max.time), report::text_of(summary.all_max.energy));
  text += default_text(summary);
  if (summary.straggler) {
    const Seconds fastest = figures.back().time;
    if (summary.straggler->deadline < fastest) {
      text += fmt::format("straggler at T' = {}: no plan is so fast, the fastest one needs {}; nothing waits for it\n",
                          report::text_of(summary.straggler->deadline), report::text_of(fastest));
    } else {
      text += fmt::format(
          "straggler at T' = {}: point {} needs {} while it waits for it, {:.2f} % less than everything at "
          "maximum clock\n",
          report::text_of(summary.straggler->deadline), summary.straggler->point,
          report::text_of(summary.straggler->energy), summary.straggler->saving_pct);
    }
  }
  if (const PointFigures& chosen = figures[summary.default_point]; chosen.error_bars.energy_stddev > Joules(0)) {
    text +=
        fmt::format("the default plan is known to +- {} and +- {}, by the spread of the profile's measurements\n",
                    report::text_of(chosen.error_bars.time_stddev), report::text_of(chosen.error_bars.energy_stddev));
  }
  if (const Seconds late = figures[summary.default_point].lateness; late != Seconds(0)) {
    text += fmt::format(
        "its time is the expected one; the means of the noisy profile alone would claim {}, {:.3f} % less\n",
        report::text_of(summary.default_plan.time - late), 100 * (late / summary.default_plan.time));
  }
  if (const auto dearest = std::ranges::max_element(figures, {}, &PointFigures::clock_limit_cost);
      dearest->clock_limit_cost > Joules(0)) {
    Joules sum;
    for (const PointFigures& f : figures) sum += f.clock_limit_cost;
    text +=
        fmt::format("slow clocks cost {} an iteration in the mean, {} ({:.2f} %) at point {}, where they cost most\n",
                    report::text_of(sum / double(figures.size())), report::text_of(dearest->clock_limit_cost),
                    100 * (dearest->clock_limit_cost / dearest->energy), dearest->point);
  }
  text +=
      fmt::format("{} from {} to {}; gap to the bound over all deadlines: mean {}, largest {}\n",
                  count_text(figures.size(), "point"), report::text_of(figures.back().time),
                  report::text_of(figures.front().time), gap_text(summary.gap_mean_pct), gap_text(summary.gap_max_pct));
  return text;
}

json::object plan_json(const Pipeline& pipeline, const report::ReportSummary& summary,
                       const std::vector<PointFigures>& figures) {
  json::object fastest = json_of(summary.fastest);
  fastest["saving_pct"] = summary.fastest_saving_pct;
  json::array tolerances;
  for (const report::ToleranceAdvice& a : summary.tolerances) {
    tolerances.push_back(json::object{
        {"slowdown_pct", a.slowdown_pct}, {"point", a.point}, {"saving_pct", a.saving_pct}, {"more_pct", a.more_pct}});
  }
  json::object all{{"inputs", object_of(pipeline.facts)},
                   {"blocking_power_w", pipeline.dag.blocking_power.value()},
                   {"blocking_power_is_a_guess", pipeline.default_blocking},
                   {"least_energy_point", least_energy_point(figures)},
                   {"t_min_s", summary.t_min.value()},
                   {"t_star_s", summary.t_star.value()},
                   {"gap_mean_pct", summary.gap_mean_pct},
                   {"gap_max_pct", summary.gap_max_pct},
                   {"saving_pct", summary.saving_pct},
                   {"t_max_s", summary.all_max.time.value()},
                   {"default_plan", default_json(summary, figures[summary.default_point])},
                   {"fastest_plan", std::move(fastest)},
                   {"tolerances", std::move(tolerances)},
                   {"all_maximum_clock", json_of(summary.all_max)},
                   {"minimum_energy", json_of(summary.min_energy)},
                   {"points", points_of(figures).json()}};
  if (summary.straggler) {
    all["straggler"] = json::object{{"deadline_s", summary.straggler->deadline.value()},
                                    {"point", summary.straggler->point},
                                    {"energy_j", summary.straggler->energy.value()},
                                    {"all_maximum_clock_energy_j", summary.straggler->all_max_energy.value()},
                                    {"saving_pct", summary.straggler->saving_pct}};
  }
  return all;
}

DrawnPlans::DrawnPlans(const model::ComputationDag& dag, const std::vector<report::DrawnPlan>& plans,
                       Seconds switch_latency)
    : dag_(dag) {
  for (const report::DrawnPlan& plan : plans) plans_.emplace_back(plan.name, plan.plan);
  if (switch_latency == Seconds(0)) return;
  const std::size_t count = dag.computations.size();
  dag_.types.assign(count, {});
  checker::PlanRunner runner(dag);
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const checker::PlanRun run = runner.run(plans[p].plan, {switch_latency});
    for (std::size_t i = 0; i < count; ++i) {
      const model::ComputationType& type = dag.type_of(static_cast<int>(i));
      model::ComputationType& own = dag_.types[i];
      own.stage = type.stage;
      own.instruction = type.instruction;
      model::Measurement& drawn = own.options.emplace_back();
      drawn.clock = type.options[plans[p].plan[i]].clock;
      drawn.time = run.end[i] - run.start[i];
      drawn.energy = run.energy_of[i];
      dag_.computations[i].type = static_cast<int>(i);
    }
    plans_[p].second.assign(count, static_cast<std::uint16_t>(p));
  }
}

std::vector<report::DrawnPlan> DrawnPlans::plans() const {
  std::vector<report::DrawnPlan> all;
  for (const auto& [name, plan] : plans_) all.push_back({name, plan});
  return all;
}

DrawnPlans default_drawing(const model::ComputationDag& dag, const model::Frontier& frontier,
                           const model::DefaultRule& rule, Seconds switch_latency) {
  const int chosen = model::default_point(frontier, report::t_max_of(dag, frontier), rule);
  const model::Plan before = model::all_maximum_clock(dag);
  return {dag,
          {{"everything at maximum clock", before}, {"the default plan", frontier.points[chosen].plan}},
          switch_latency};
}

}  // namespace perseus::cli
