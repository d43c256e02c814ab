#include "io/report/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "io/report/format.h"
#include "io/report/svg_page.h"

namespace perseus::report {
namespace {

constexpr double kWidth = 1280, kLeft = 72, kRight = 24, kHead = 84, kBlockHead = 30, kBlockFoot = 40;
constexpr double kDrawnWidth = kWidth - kLeft - kRight;
constexpr int kMostSingleBars = 4000;  // with more computations than this, bars are merged into columns
constexpr int kColumnWidth = 2;
constexpr const char* kSlowLinkClass = "q5";
constexpr int kColumns = static_cast<int>(kDrawnWidth) / kColumnWidth;

struct Block {
  const model::ComputationDag& dag;
  const Timeline& timeline;
  PowerRange range;
  Seconds span;  ///< of the whole width
  double top;    ///< of the first row
  double row;    ///< height of a row
  const std::vector<SlowLink>& slow_links;
  [[nodiscard]] double x(Seconds t) const { return kLeft + t / span * kDrawnWidth; }
  [[nodiscard]] double y(int rank) const { return top + rank * row; }
  [[nodiscard]] double bar_height() const { return row >= 8 ? row - 2 : row * 0.9; }
  [[nodiscard]] int power_class(Watts power) const {
    return static_cast<int>(std::lround(range.position(power) * (kSvgPowerClasses - 1)));
  }
};

double row_height(int ranks) { return std::clamp(420.0 / std::max(1, ranks), 5.0, 24.0); }

void write_single_bars(const Block& b, const Sink& sink) {
  for (int i = 0; i < static_cast<int>(b.timeline.bars.size()); ++i) {
    const TimelineBar& bar = b.timeline.bars[i];
    const int rank = b.dag.computations[i].rank;
    const double x = b.x(bar.start), w = std::max(0.2, b.x(bar.end) - x - 1);
    const int power = b.power_class(bar.power);
    std::string svg =
        svg_box(fmt::format("b p{}", power), {x, b.y(rank), w, b.bar_height()},
                fmt::format("{}: {} to {}, {}, {}{}", long_name(b.dag, i), text_of(bar.start), text_of(bar.end),
                            text_of(bar.energy), text_of(bar.power), bar.critical ? ", critical" : ""));
    const std::string name = short_name(b.dag, i);
    if (b.row >= 14 && w > 7.0 * static_cast<double>(name.size()) + 2)
      svg += svg_text(x + w / 2, b.y(rank) + b.bar_height() / 2 + 3.5, "middle", fmt::format("s t{}", power), name);
    sink(svg);
  }
}

/// One path per rank, power class and share of busy time; neighboring columns of equal style share one stroke.
void write_columns(const Block& b, const Sink& sink) {
  constexpr int shares = 4;
  const auto rows = columns_of(b.dag, b.timeline, b.span, kColumns);
  const auto look_of = [&](const TimelineColumn& column) {
    const int share = static_cast<int>(std::lround(column.busy * shares));
    return share == 0 ? -1 : b.power_class(column.power) * shares + share - 1;
  };
  for (int r = 0; r < b.dag.num_ranks(); ++r) {
    std::array<std::string, kSvgPowerClasses * shares> paths;
    const double y = b.y(r) + b.bar_height() / 2;
    for (int c = 0; c < kColumns;) {
      const int from = c;
      const int look = look_of(rows[r][c]);
      while (c < kColumns && look_of(rows[r][c]) == look) ++c;
      if (look >= 0)
        paths[look] += fmt::format("M{} {:.1f}h{}", kLeft + from * kColumnWidth, y, (c - from) * kColumnWidth);
    }
    for (int look = 0; look < static_cast<int>(paths.size()); ++look) {
      if (paths[look].empty()) continue;
      sink(fmt::format("<path class=\"p{}\" stroke-opacity=\"{:g}\" stroke-width=\"{:.1f}\" d=\"{}\"/>\n",
                       look / shares, (look % shares + 1.0) / shares, b.bar_height(), paths[look]));
    }
  }
}

/// Draws the transfers over slow links as lines from the sender's row to the receiver's.
void write_slow_links(const Block& b, const Sink& sink) {
  const auto middle = [&](int rank) { return b.y(rank) + b.bar_height() / 2; };
  for (const SlowLink& link : b.slow_links) {
    std::string d;
    for (const model::Dependency& transfer : link.transfers) {
      const Seconds sent = b.timeline.bars[transfer.before].end;
      d += fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", b.x(sent), middle(link.from), b.x(sent + transfer.latency),
                       middle(link.to));
    }
    sink(
        fmt::format("<path class=\"{} qn\" stroke-width=\"1.3\" d=\"{}\"><title>transfers from rank {} to rank {}: {}"
                    "</title></path>\n",
                    kSlowLinkClass, d, link.from, link.to, text_of(link.latency)));
  }
}

/// Draws the critical path along the bottom of its bars, with lines between ranks; omits points closer than a unit.
void write_critical_path(const Block& b, const Sink& sink) {
  if (b.timeline.critical_path.empty()) return;
  std::string d;
  double last_x = -1;
  int last_rank = -1;
  const std::vector<int>& path = b.timeline.critical_path;
  for (std::size_t k = 0; k < path.size(); ++k) {
    const TimelineBar& bar = b.timeline.bars[path[k]];
    const int rank = b.dag.computations[path[k]].rank;
    const double y = b.y(rank) + b.bar_height() - 1, x = b.x(bar.start), end = b.x(bar.end);
    if (rank == last_rank && end - last_x < 1 && k + 1 < path.size()) continue;
    d += fmt::format("{}{:.1f} {:.1f}H{:.1f}", d.empty() ? "M" : "L", x, y, end);
    last_x = end;
    last_rank = rank;
  }
  const double wide = b.row >= 10 ? 2.2 : 1.2;
  sink(fmt::format("<path class=\"halo n\" stroke-width=\"{0:g}\" stroke-linejoin=\"round\" d=\"{1}\"/>\n", wide + 1.4,
                   d));
  sink(fmt::format("<path class=\"critical n\" stroke-width=\"{0:g}\" stroke-linejoin=\"round\" d=\"{1}\"/>\n", wide,
                   d));
}

void write_block(const Block& b, const std::string& name, const Sink& sink) {
  const int ranks = b.dag.num_ranks();
  sink(svg_text(kLeft, b.top - 10, "start", "fg",
                fmt::format("{}: {}, {}", name, text_of(b.timeline.makespan), text_of(b.timeline.energy))));
  std::string svg;
  const int label_every = std::max(1, static_cast<int>(std::ceil(13 / b.row)));
  for (int r = 0; r < ranks; ++r) {
    svg += svg_box("wait", {kLeft, b.y(r), b.x(b.timeline.makespan) - kLeft, b.bar_height()});
    if (r % label_every == 0)
      svg += svg_text(kLeft - 8, b.y(r) + b.bar_height() / 2 + 4, "end", "dim s", fmt::format("rank {}", r));
  }
  const double foot = b.y(ranks);
  const std::vector<double> ticks = ticks_within(0, b.span.value(), 10);
  for (const double t : ticks) {
    svg += fmt::format("<path class=\"grid n\" d=\"M{0:.1f} {1:.1f}v5\"/>\n", b.x(Seconds(t)), foot);
    svg += svg_text(b.x(Seconds(t)), foot + 18, "middle", "dim s", tick_label(t, ticks) + " s");
  }
  sink(svg);
  if (static_cast<int>(b.timeline.bars.size()) <= kMostSingleBars)
    write_single_bars(b, sink);
  else
    write_columns(b, sink);
  write_slow_links(b, sink);
  write_critical_path(b, sink);
}

std::string legend(const PowerRange& range, bool critical_path, bool slow_links) {
  const double step = 9, from = kWidth - kRight - step * kSvgPowerClasses, y = 24;
  std::string svg;
  for (int k = 0; k < kSvgPowerClasses; ++k) svg += svg_box(fmt::format("b p{}", k), {from + k * step, y, step, 12});
  svg += svg_text(from, y + 28, "start", "dim s", text_of(range.low));
  svg += svg_text(kWidth - kRight, y + 28, "end", "dim s", text_of(range.high) + " per rank");
  svg += svg_box("wait", {from - 236, y, 24, 12});
  svg += svg_text(from - 206, y + 10.5, "start", "dim s", "waits");
  if (slow_links) {
    svg += fmt::format("<path class=\"{} qn\" stroke-width=\"1.3\" d=\"M{:.1f} {}l24 -10\"/>\n", kSlowLinkClass,
                       from - 346, y + 11);
    svg += svg_text(from - 316, y + 10.5, "start", "dim s", "slow transfer");
  }
  if (!critical_path) return svg;
  svg += fmt::format("<path class=\"critical n\" stroke-width=\"2.2\" d=\"M{:.1f} {}h24\"/>\n", from - 152, y + 6);
  svg += svg_text(from - 122, y + 10.5, "start", "dim s", "critical path");
  return svg;
}

}  // namespace

void write_timeline_svg(const model::ComputationDag& dag, const std::vector<DrawnTimeline>& timelines,
                        const Sink& sink) {
  PowerRange range;
  Seconds span;
  std::string description =
      fmt::format("{} computations on {} ranks, colored by power.", dag.computations.size(), dag.num_ranks());
  bool critical_path = false;
  for (const auto& [name, t] : timelines) {
    range = &t == &timelines.front().timeline ? power_range_of(dag, t) : range.joined(power_range_of(dag, t));
    span = std::max(span, t.makespan);
    description += fmt::format(" {}: {}, {}", name, text_of(t.makespan), text_of(t.energy));
    if (!t.critical_path.empty()) {
      description += fmt::format(", {} computations on the marked critical path", t.critical_path.size());
      critical_path = true;
    }
    description += ".";
  }
  const std::vector<SlowLink> links = slow_links(dag);
  for (const SlowLink& link : links)
    description += fmt::format(" Slow link from rank {} to rank {}: {}.", link.from, link.to, text_of(link.latency));
  const double row = row_height(dag.num_ranks());
  const double block = kBlockHead + row * dag.num_ranks() + kBlockFoot;
  sink(open_svg(kWidth, kHead + block * static_cast<double>(timelines.size()), "One iteration, rank by rank",
                description));
  sink(svg_text(kLeft, 36, "start", "fg h", "One iteration, rank by rank") +
       legend(range, critical_path, !links.empty()));
  for (std::size_t k = 0; k < timelines.size(); ++k) {
    const double top = kHead + block * static_cast<double>(k) + kBlockHead;
    write_block({dag, timelines[k].timeline, range, span, top, row, links}, timelines[k].name, sink);
  }
  sink("</svg>\n");
}

void write_timeline_svg(const model::ComputationDag& dag, const std::vector<DrawnPlan>& plans, const Sink& sink) {
  std::vector<DrawnTimeline> timelines;
  for (const DrawnPlan& plan : plans) timelines.push_back({plan.name, timeline_of(dag, plan.plan)});
  write_timeline_svg(dag, timelines, sink);
}

}  // namespace perseus::report
