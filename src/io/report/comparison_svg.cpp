#include <fmt/format.h>

#include <string>

#include "io/report/comparison.h"
#include "io/report/format.h"
#include "io/report/line_chart.h"

namespace perseus::report {
namespace {

std::string description(const std::vector<ComparedMethod>& methods) {
  std::string text;
  for (const ComparedMethod& method : methods) {
    const model::FrontierPoint& fastest = method.frontier.points.back();
    const model::FrontierPoint& slowest = method.frontier.points.front();
    text += fmt::format("{}{}: {} at {}", text.empty() ? "" : " ", method.name, text_of(fastest.energy),
                        text_of(fastest.time));
    if (method.frontier.points.size() > 1) {
      text += fmt::format(" to {} at {}", text_of(slowest.energy), text_of(slowest.time));
    }
    text += ".";
  }
  return text;
}

}  // namespace

void write_comparison_svg(const ComparisonInput& input, const Sink& sink) {
  ChartPanel panel;
  for (const ComparedMethod& method : input.methods) {
    const int position = static_cast<int>(panel.series.size());
    ChartSeries series{method.name, look_of(method.name, position), SeriesKind::marked_line};
    for (const model::FrontierPoint& point : method.frontier.points) {
      series.points.push_back({point.time.value(), point.energy.value()});
    }
    panel.series.push_back(std::move(series));
  }
  sink(line_chart({"Time-energy frontiers: " + input.title, "iteration time [s]", "energy per iteration [J]",
                   description(input.methods)},
                  {panel}));
}

}  // namespace perseus::report
