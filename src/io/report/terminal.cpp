#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io/report/format.h"
#include "io/report/report.h"
#include "io/report/series_look.h"
#include "io/report/timeline.h"

namespace perseus::report {
namespace {

constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr const char* kWaitingCell = "·";
constexpr const char* kReset = "\x1b[0m";
constexpr const char* kUnderline = "\x1b[4m";
constexpr double kLeastBusy = 0.25;  // a cell with less work than this shows as waiting

/// Most terminals are dark, and the middle of the ramp is legible on dark and light.
std::string color_code(double position, TerminalColor color) {
  const Rgb c = power_color(position, Theme::dark);
  if (color == TerminalColor::truecolor) return fmt::format("\x1b[38;2;{};{};{}m", c.red, c.green, c.blue);
  const auto level = [](std::uint8_t v) { return (v * 5 + 127) / 255; };
  return fmt::format("\x1b[38;5;{}m", 16 + 36 * level(c.red) + 6 * level(c.green) + level(c.blue));
}

std::string row_of(const std::vector<TimelineColumn>& columns, const PowerRange& range, TerminalColor color) {
  std::string text, current;
  for (const TimelineColumn& column : columns) {
    const bool waits = column.busy < kLeastBusy;
    const double position = range.position(column.power);
    const int level = std::min(static_cast<int>(position * kBlocks.size()), static_cast<int>(kBlocks.size()) - 1);
    if (color != TerminalColor::none) {
      std::string code = kReset;
      if (!waits) code += color_code(position, color) + (column.critical ? kUnderline : "");
      if (code != current) text += code;
      current = code;
    }
    text += waits ? kWaitingCell : kBlocks[level];
  }
  return color == TerminalColor::none ? text : text + kReset;
}

std::string time_axis(const std::string& indent, Seconds makespan, int columns) {
  const std::string end = text_of(makespan);
  const int gap = columns - 1 - static_cast<int>(end.size());
  return indent + "0" + std::string(std::max(1, gap), ' ') + end + "\n";
}

std::string legend(const std::string& indent, const PowerRange& range, TerminalColor color) {
  std::string ramp;
  for (std::size_t level = 0; level < kBlocks.size(); ++level) {
    const double position = static_cast<double>(level) / (kBlocks.size() - 1);
    ramp += color == TerminalColor::none ? kBlocks[level] : color_code(position, color) + kBlocks[level] + "\x1b[0m";
  }
  return fmt::format("{}{} waits   {} {} {} to {}{}\n", indent, kWaitingCell, "power", ramp, text_of(range.low),
                     text_of(range.high),
                     color == TerminalColor::none ? "" : "   \x1b[4munderlined\x1b[0m: critical path");
}

}  // namespace

std::string terminal_timeline(const model::ComputationDag& dag, const DrawnPlan& plan, const TerminalStyle& style) {
  const Timeline timeline = timeline_of(dag, plan.plan);
  const PowerRange range = power_range_of(dag, timeline);
  const int label = static_cast<int>(std::to_string(std::max(0, dag.num_ranks() - 1)).size()) + 6;  // "rank 0 "
  const int columns = std::max(10, style.width - label);
  const std::string indent(label, ' ');

  std::string text = fmt::format("{}: {}, {}\n", plan.name, text_of(timeline.makespan), text_of(timeline.energy));
  const auto rows = columns_of(dag, timeline, timeline.makespan, columns);
  for (int r = 0; r < dag.num_ranks(); ++r) {
    text += fmt::format("rank {:>{}} {}\n", r, label - 6, row_of(rows[r], range, style.color));
  }
  return text + time_axis(indent, timeline.makespan, columns) + legend(indent, range, style.color);
}

}  // namespace perseus::report
