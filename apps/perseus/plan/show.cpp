// perseus show: draws one plan in the terminal or as a file.
#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdlib>
#include <memory>

#include "command_line/command.h"
#include "command_line/terminal_size.h"
#include "io/formats/file.h"
#include "io/report/report.h"
#include "io/report/summary.h"
#include "io/report/timeline.h"
#include "io/report/timeline_svg.h"
#include "plan/plan_output.h"
#include "plan/plan_source.h"
#include "plan/slowdown.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

struct ShowOptions {
  std::string plan;
  std::optional<int> point;
  bool compare = false;
  std::string out;
};

/// A plan and the frontier that it is a point of.
struct Shown {
  model::ComputationDag dag;
  model::Frontier frontier;
  int point = 0;
  std::string title;
  std::vector<report::ReportFact> facts;
  Seconds switch_latency;
  model::DefaultRule rule;
};

Result<Shown> shown_by(const ShowOptions& options) {
  Result<formats::PlanFile> file = read_plans(options.plan);
  if (!file) return file.error();
  const int last = static_cast<int>(file->frontier.points.size()) - 1;
  const Seconds t_max = report::t_max_of(file->dag, file->frontier);
  const model::DefaultRule rule = default_rule_of(*file);
  const int point = options.point.value_or(model::default_point(file->frontier, t_max, rule));
  if (point < 0 || point > last) {
    return Error{ErrorCode::usage,
                 fmt::format("--point: {} is not a point of {}, which has 0 (slowest) to {} (fastest)", point,
                             options.plan, last)};
  }
  const Seconds latency = noted_time(*file, kSwitchLatencyKey);
  Shown shown{std::move(file->dag), std::move(file->frontier), point, options.plan, {}, latency, rule};
  for (const auto& [name, value] : file->metadata) shown.facts.push_back({name, value});
  return shown;
}

report::TerminalStyle terminal_style() {
  report::TerminalStyle style;
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  if (const auto size = terminal_size(STDOUT_FILENO)) style.width = static_cast<int>(size->columns);
  const char* no_color = std::getenv("NO_COLOR");
  const char* depth = std::getenv("COLORTERM");
  const bool truecolor =
      depth != nullptr && (std::string_view(depth) == "truecolor" || std::string_view(depth) == "24bit");
  if (terminal && (no_color == nullptr || *no_color == '\0')) {
    style.color = truecolor ? report::TerminalColor::truecolor : report::TerminalColor::ansi256;
  }
  return style;
}

Result<std::string> picture_for(const std::string& out, const Shown& shown, const DrawnPlans& drawn) {
  std::string text;
  const report::Sink sink = [&](std::string_view piece) { text += piece; };
  const std::string extension = std::filesystem::path(out).extension().string();
  if (extension == ".svg") {
    report::write_timeline_svg(drawn.dag(), drawn.plans(), sink);
  } else if (extension == ".html") {
    report::write_html({shown.dag, shown.frontier, shown.title, shown.facts, {}, shown.rule, shown.switch_latency},
                       sink);
  } else if (extension == ".json") {
    report::write_trace(drawn.dag(), drawn.plans(), sink);
  } else {
    return Error{ErrorCode::usage,
                 fmt::format("--out: '{}' must end in .svg (timeline), .html (report) or .json (trace)", out)};
  }
  return text;
}

json::object json_timeline(const Shown& shown, const DrawnPlans& drawn) {
  const model::ComputationDag& dag = drawn.dag();
  const std::vector<report::DrawnPlan> plans = drawn.plans();
  const model::Plan& plan = plans.back().plan;
  const report::Timeline timeline = report::timeline_of(dag, plan);
  json::array bars;
  for (std::size_t i = 0; i < timeline.bars.size(); ++i) {
    const report::TimelineBar& bar = timeline.bars[i];
    const model::ComputationType& type = dag.type_of(static_cast<int>(i));
    bars.push_back(json::object{{"rank", dag.computations[i].rank},
                                {"stage", type.stage},
                                {"instruction", type.instruction},
                                {"microbatch", dag.computations[i].microbatch},
                                {"frequency_mhz", type.options[plan[i]].clock.value()},
                                {"start_s", bar.start.value()},
                                {"end_s", bar.end.value()},
                                {"energy_j", bar.energy.value()},
                                {"power_w", bar.power.value()},
                                {"critical", bar.critical}});
  }
  const model::FrontierPoint& point = shown.frontier.points[shown.point];
  return {
      {"point", shown.point},           {"time_s", timeline.makespan.value()}, {"energy_j", timeline.energy.value()},
      {"bound_j", point.bound.value()}, {"gap_pct", point.gap_pct()},          {"timeline", std::move(bars)}};
}

Result<int> run_show(const ShowOptions& options, bool as_json) {
  const Result<Shown> shown = shown_by(options);
  if (!shown) return shown.error();
  const model::Plan before = model::all_maximum_clock(shown->dag);
  const model::Plan& plan = shown->frontier.points[shown->point].plan;
  std::vector<report::DrawnPlan> chosen;
  if (options.compare) chosen.push_back({"everything at maximum clock", before});
  chosen.push_back({fmt::format("point {} of {}", shown->point, shown->title), plan});
  const DrawnPlans drawn(shown->dag, chosen, shown->switch_latency);

  if (!options.out.empty()) {
    const Result<std::string> picture = picture_for(options.out, *shown, drawn);
    if (!picture) return picture.error();
    if (Status written = formats::write_file(options.out, *picture); !written) return written.error();
  }
  if (as_json) {
    print_json(json_timeline(*shown, drawn));
  } else if (options.out.empty()) {
    const report::TerminalStyle style = terminal_style();
    for (const report::DrawnPlan& one : drawn.plans())
      print_drawing(report::terminal_timeline(drawn.dag(), one, style));
  } else {
    print(fmt::format("written to {}\n", options.out));
  }
  return 0;
}

}  // namespace

void add_show(CLI::App& app, Command& command) {
  auto* show = app.add_subcommand("show", "Draw one iteration under a plan, in the terminal or as a file");
  auto options = std::make_shared<ShowOptions>();
  show->add_option("PLAN", options->plan, "A directory that 'perseus plan --out' wrote, or its plans.json")->required();
  add_value(*show, "--point K", options->point, "Point of the frontier, 0 is the slowest (default: the default plan)",
            whole_number_within(0, 1000000));
  show->add_flag("--compare", options->compare, "Draw everything at maximum clock above the plan");
  add_value(*show, "--out FILE", options->out,
            "Write a file instead: .svg (timeline), .html (report) or .json (trace)");
  show->footer(help_footer(kFileErrors,
                           "  perseus show plans --point 0 --compare\n"
                           "  perseus show plans --out timeline.svg\n"));
  set_run(*show, command, options, run_show);
}

}  // namespace perseus::cli
