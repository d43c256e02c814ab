#include <fmt/format.h>

#include <algorithm>

#include "io/report/bundle.h"
#include "io/report/format.h"
#include "io/report/report.h"
#include "io/report/report_data.h"

namespace perseus::report {
namespace {

std::string figure(std::string_view name, std::string_view value, std::string_view note) {
  return fmt::format("<div class=\"figure\"><dt>{}</dt><dd>{}<small>{}</small></dd></div>\n", escape_markup(name),
                     escape_markup(value), escape_markup(note));
}

/// The tolerance that the report recommends: the first one that saves a point more, else the one that saves most.
const ToleranceAdvice* advised(const ReportSummary& s) {
  if (s.tolerances.empty()) return nullptr;
  const auto enough = std::ranges::find_if(s.tolerances, [](const ToleranceAdvice& a) { return a.more_pct >= 1; });
  return enough == s.tolerances.end() ? &s.tolerances.back() : &*enough;
}

std::string key_figures(const ReportInput& input, const ReportSummary& s) {
  std::string html = "<dl class=\"figures\">\n";
  html += figure("Saved by the default plan", percent(s.saving_pct),
                 fmt::format("point {}, against everything at maximum clock", s.default_point));
  html += figure("Energy, default plan", text_of(s.default_plan.energy),
                 "everything at maximum clock: " + text_of(s.all_max.energy));
  html += figure("Iteration, default plan", text_of(s.default_plan.time),
                 "everything at maximum clock, T_max: " + text_of(s.all_max.time));
  html += figure("Fastest iteration, T_min", text_of(s.fastest.time),
                 percent(s.fastest_saving_pct) + " saved by the fastest plan");
  if (const ToleranceAdvice* advice = advised(s))
    html += figure(fmt::format("Saved with {:g} % more time", advice->slowdown_pct), percent(advice->saving_pct),
                   fmt::format("{:.2f} points more than the default plan, --slowdown {:g}%", advice->more_pct,
                               advice->slowdown_pct));
  const auto& points = input.frontier.points;
  const auto least = std::ranges::min_element(points, {}, &model::FrontierPoint::energy);
  html += figure("Least energy", text_of(least->energy),
                 fmt::format("point {}, {}", least - points.begin(), text_of(least->time)));
  html += figure("Gap to the lower bound", percent(s.gap_mean_pct),
                 fmt::format("mean over T; largest {}", percent(s.gap_max_pct)));
  html += figure("Points", fmt::format("{}", input.frontier.points.size()), "plans of real clocks, point 0 slowest");
  if (s.straggler)
    html += figure(
        "Straggler at T'", text_of(s.straggler->deadline),
        fmt::format("point {}: {} saved while waiting for it", s.straggler->point, percent(s.straggler->saving_pct)));
  return html + "</dl>\n";
}

std::string inputs(const std::vector<ReportFact>& facts) {
  std::string html = "<ul class=\"inputs\">\n";
  for (const ReportFact& fact : facts) html += fact_line(fact);
  return facts.empty() ? "" : html + "</ul>\n";
}

std::string rule_text(const model::DefaultRule& rule) {
  const std::string than = rule.fastest ? "the fastest plan" : "everything at maximum clock";
  if (rule.slowdown == 0) return "not slower than " + than;
  return fmt::format("at most {:g} % slower than {}", 100 * rule.slowdown, than);
}

std::string description(const ReportInput& input, const ReportSummary& s) {
  const model::FrontierPoint& slowest = input.frontier.points.front();
  std::string text = fmt::format(
      "One training iteration runs {} computations on {} ranks. With everything at maximum clock it takes {} and {}. "
      "The default plan, the slowest one that is {}, takes {} and {}, that is {} less energy; the fastest "
      "takes {} and {}, the slowest {} and {}. Plans slower than {} save nothing more, even while they wait for a "
      "straggler. No plan can need less energy than the lower bound; the plans are {} above it on average over T, and "
      "{} "
      "at most.",
      input.dag.computations.size(), input.dag.num_ranks(), text_of(s.all_max.time), text_of(s.all_max.energy),
      rule_text(s.rule), text_of(s.default_plan.time), text_of(s.default_plan.energy), percent(s.saving_pct),
      text_of(s.fastest.time), text_of(s.fastest.energy), text_of(slowest.time), text_of(slowest.energy),
      text_of(s.t_star), percent(s.gap_mean_pct), percent(s.gap_max_pct));
  if (input.switch_latency > Seconds(0))
    text += fmt::format(
        " The figures of the points and the timelines include that a clock takes effect {} after it was requested.",
        text_of(input.switch_latency));
  if (s.straggler)
    text += fmt::format(
        " With a straggler at T' = {}, point {} runs: until the straggler is done it needs {} where "
        "everything at maximum clock needs {}.",
        text_of(s.straggler->deadline), s.straggler->point, text_of(s.straggler->energy),
        text_of(s.straggler->all_max_energy));
  return text;
}

constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:";

}  // namespace

std::string fact_line(const ReportFact& fact) {
  return fmt::format("<li><span>{}</span> {}</li>\n", escape_markup(fact.name), escape_markup(fact.value));
}

void write_html(const ReportInput& input, const Sink& sink) {
  const ReportSummary s = summarize(input.dag, input.frontier, input.straggler, input.rule);
  sink(
      fmt::format("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{} - Perseus</title>\n<style>",
                  kPolicy, escape_markup(input.title)));
  sink(report_style());
  sink(fmt::format(
      "</style>\n</head>\n<body>\n<header>\n<p class=\"kicker\">Perseus report</p>\n<h1>{}</h1>\n{}</header>\n"
      "<main>\n<section aria-label=\"Key figures\">\n{}</section>\n"
      "<section id=\"frontier\" aria-labelledby=\"frontier-title\"></section>\n"
      "<section id=\"timeline\" aria-labelledby=\"timeline-title\"></section>\n"
      "<section id=\"points\" aria-labelledby=\"points-title\"></section>\n"
      "<section aria-labelledby=\"words-title\"><h2 id=\"words-title\">In words</h2><p>{}</p></section>\n"
      "</main>\n<noscript><p>The drawings need JavaScript; the figures above do not.</p></noscript>\n"
      "<script type=\"application/json\" id=\"perseus-data\">",
      escape_markup(input.title), inputs(input.inputs), key_figures(input, s), escape_markup(description(input, s))));
  write_report_data(input, s, sink);
  sink("</script>\n<script>");
  sink(charts_script());
  sink("</script>\n<script>");
  sink(report_script());
  sink("</script>\n</body>\n</html>\n");
}

}  // namespace perseus::report
