#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <limits>
#include <set>
#include <sstream>

#include "io/report/axes.h"
#include "io/report/line_chart.h"
#include "io/report/series_look.h"
#include "io/report/stacked_bars.h"
#include "io/report/svg_page.h"
#include "planning/baselines/methods.h"
#include "simulation/emulator/cluster.h"

namespace perseus::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Element {
  std::string css_class, path, text;
};

/// The elements of that name, in drawing order; fails if the drawing is not well-formed.
std::vector<Element> elements(const std::string& svg, const std::string& name) {
  std::istringstream in(svg);
  boost::property_tree::ptree tree;
  boost::property_tree::read_xml(in, tree);
  std::vector<Element> found;
  const auto visit = [&](const auto& self, const boost::property_tree::ptree& parent) -> void {
    for (const auto& [tag, child] : parent) {
      if (tag == name) {
        found.push_back({child.get("<xmlattr>.class", ""), child.get("<xmlattr>.d", ""), child.data()});
      }
      self(self, child);
    }
  };
  visit(visit, tree);
  return found;
}

std::vector<std::string> texts(const std::string& svg, const std::string& css_class) {
  std::vector<std::string> found;
  for (const Element& text : elements(svg, "text"))
    if (text.css_class == css_class) found.push_back(text.text);
  return found;
}

std::vector<std::string> paths(const std::string& svg, const std::string& css_class) {
  std::vector<std::string> found;
  for (const Element& path : elements(svg, "path"))
    if (path.css_class == css_class) found.push_back(path.path);
  return found;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

const SeriesLook kExact = look_of("exact");

TEST(ChartAxes, TicksAreRoundValuesAtTheirPositions) {
  Axes axes({100, 400, 0, 200});  // 60 units a tick
  axes.include({0.05, 1000});
  axes.include({0.95, 3000});
  axes.add_margin();  // x from 0.005 to 0.995, y from 900 to 3100
  EXPECT_NEAR(axes.position({0.5, 2000}).x, 250, 1e-9);
  EXPECT_NEAR(axes.position({0.5, 2000}).y, 100, 1e-9);
  EXPECT_THAT(texts("<svg>" + axes.grid() + "</svg>", "dim"),
              ElementsAre("0.2", "0.4", "0.6", "0.8", "1,000", "1,500", "2,000", "2,500", "3,000"));
}

TEST(ChartAxes, WithoutFiniteValuesRunFromZeroToOne) {
  Axes axes({0, 100, 0, 100});
  axes.include({std::numeric_limits<double>::quiet_NaN(), 5});
  axes.include({5, std::numeric_limits<double>::infinity()});
  axes.add_margin();
  EXPECT_NEAR(axes.position({1, 1}).x, 100, 1e-9);
  EXPECT_NEAR(axes.position({1, 1}).y, 0, 1e-9);
}

TEST(ChartAxes, ASingleValueIsInTheMiddle) {
  Axes axes({0, 100, 0, 100});
  axes.include({7, 0});
  axes.add_margin();
  EXPECT_NEAR(axes.position({7, 0}).x, 50, 1e-9);
  EXPECT_NEAR(axes.position({7, 0}).y, 50, 1e-9);
}

TEST(ChartAxes, ClipsSegmentsAtTheFrame) {
  const Axes axes({0, 10, 0, 10});
  const auto through = axes.clipped({-10, 0}, {20, 15});  // y = 5 + x/2
  ASSERT_TRUE(through);
  EXPECT_NEAR(through->first.x, 0, 1e-9);
  EXPECT_NEAR(through->first.y, 5, 1e-9);
  EXPECT_NEAR(through->second.x, 10, 1e-9);
  EXPECT_NEAR(through->second.y, 10, 1e-9);
  EXPECT_FALSE(axes.clipped({-5, 8}, {8, 25}));
  EXPECT_FALSE(axes.clipped({-1, 0}, {-1, 10}));
  const auto inside = axes.clipped({1, 2}, {3, 4});
  ASSERT_TRUE(inside);
  EXPECT_EQ(inside->first.x, 1);
  EXPECT_EQ(inside->second.y, 4);
}

TEST(LineChart, NamesEverySeriesOnceInTheLegendAndEscapesText) {
  const ChartSeries line{"a<b", kExact, SeriesKind::line, {{1, 4}, {2, 5}, {3, 6}}};
  const ChartSeries dot{"dot", look_of("all-max"), SeriesKind::line, {{2, 5}}};
  const std::string svg =
      line_chart({"<title>", "x & y", "y"}, {{"\"one\"", {line, dot}}, {"two", {line}}, {"empty", {}}});
  EXPECT_THAT(texts(svg, "fg"), ElementsAre("a<b", "dot", "\"one\"", "two", "empty"));
  EXPECT_THAT(texts(svg, "fg h"), ElementsAre("<title>"));
  EXPECT_THAT(svg, HasSubstr("x &amp; y"));
  EXPECT_EQ(paths(svg, "q0 qn").size(), 3u);  // legend and two panels
  EXPECT_EQ(paths(svg, "q5").size(), 2u);     // one point: a marker, in the legend and in one panel
  EXPECT_THAT(paths(svg, "q5 qn"), testing::IsEmpty());
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
}

TEST(LineChart, DrawsSeriesAndPanelsWithoutPointsEmpty) {
  for (const std::vector<ChartPanel>& panels :
       {std::vector<ChartPanel>{}, {{"empty", {}}}, {{"no points", {{"a", kExact}}}}}) {
    const std::string svg = line_chart({"title", "x", "y"}, panels);
    EXPECT_THAT(elements(svg, "svg").size(), 1u);
    EXPECT_THAT(paths(svg, "q0 qn"), testing::IsEmpty());
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

TEST(LineChart, APointThatIsNotFiniteInterruptsItsLine) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ChartSeries line{"a", kExact, SeriesKind::marked_line, {{1, 1}, {2, 2}, {3, nan}, {4, 4}, {5, 5}}};
  const std::string svg = line_chart({"title", "x", "y"}, {{"", {line}}});
  ASSERT_EQ(paths(svg, "q0 qn").size(), 2u);  // legend and panel
  EXPECT_EQ(count(paths(svg, "q0 qn")[1], "M"), 2u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(LineChart, ClipsALineForWhichTheAxesDoNotGrow) {
  const ChartSeries drawn{"a", kExact, SeriesKind::line, {{0, 0}, {10, 10}}};
  ChartSeries bound{"b", look_of("bound"), SeriesKind::clipped_line, {{5, 5}, {5, 1000}}};
  const std::string clipped = line_chart({"title", "x", "y"}, {{"", {drawn, bound}}});
  EXPECT_THAT(texts(clipped, "dim"), testing::Contains("10"));
  EXPECT_THAT(texts(clipped, "dim"), Not(testing::Contains("1,000")));
  // 48 + 26 of the head and 34 of the panel: its upper edge.
  EXPECT_THAT(paths(clipped, "q7 qn").at(1), testing::EndsWith(" 108.0"));
  bound.kind = SeriesKind::line;
  EXPECT_THAT(texts(line_chart({"title", "x", "y"}, {{"", {drawn, bound}}}), "dim"), testing::Contains("1,000"));
}

TEST(LineChart, DrawsSolidLinesOnTopOfCurvesAndSinglePointsOnTopOfAll) {
  const auto line = [](std::string_view method) {
    return ChartSeries{std::string(method), look_of(method), SeriesKind::line, {{1, 1}, {2, 2}}};
  };
  const ChartSeries point{"all-max", look_of("all-max"), SeriesKind::marks, {{1, 1}}};
  const std::string svg =
      line_chart({"title", "x", "y"}, {{"", {line("perseus"), line("exact"), line("envpipe"), point}}});
  std::vector<std::string> order;
  for (const Element& path : elements(svg, "path"))
    if (path.css_class.starts_with("q")) order.push_back(path.css_class);
  // The legend in the order of the series, then the panel, topmost last.
  EXPECT_THAT(order, ElementsAre("q1 qn", "q0 qn", "q2 qn", "q5", "q2 qn", "q1 qn", "q0 qn", "q5"));
}

TEST(LineChart, MarksAPlaceOnTheXAxis) {
  const ChartSeries line{"a", kExact, SeriesKind::line, {{1, 4}, {2, 5}}};
  const std::string svg = line_chart({"title", "x", "y"}, {{"one", {line}, 3.0, "the <end>"}});
  EXPECT_THAT(texts(svg, "dim s"), ElementsAre("the <end>"));
  EXPECT_THAT(texts(svg, "dim"), testing::Contains("3.0"));
  EXPECT_THAT(paths(line_chart({"title", "x", "y"}, {{"one", {line}}}), "q7 qn"), testing::IsEmpty());
}

TEST(LineChart, KeepsDenseMarkersApart) {
  ChartSeries dense{"a", kExact, SeriesKind::marks};
  for (int i = 0; i < 100'000; ++i) dense.points.push_back({i * 1e-5, 1 - i * 1e-5});
  EXPECT_LT(line_chart({"title", "x", "y"}, {{"", {dense}}}).size(), 80'000u);
}

TEST(LineChart, ShowsTheValuesOfAPointThatIsPointedAt) {
  const ChartSeries line{"a<b", kExact, SeriesKind::marked_line, {{1, 4}, {2, 5.25}}};
  const std::string svg = line_chart({"title", "time [s]", "energy [J]"}, {{"one", {line}}});
  EXPECT_EQ(count(svg, "class=\"hit\""), 2u);
  EXPECT_THAT(svg, HasSubstr("<title>a&lt;b, one; time [s]: 2; energy [J]: 5.25</title></circle>"));
  ChartSeries dense{"a", kExact, SeriesKind::line};
  for (int i = 0; i < 100'000; ++i) dense.points.push_back({i * 1e-5, 1 - i * 1e-5});
  EXPECT_LT(count(line_chart({"title", "x", "y"}, {{"", {dense}}}), "class=\"hit\""), 130u);
}

TEST(SeriesLook, EveryMethodHasItsOwnAndOnlyExactIsSolid) {
  std::set<int> colors;
  std::set<std::string_view> dashes;
  std::set<Marker> markers;
  const std::vector<std::string_view> methods = emulator::emulated_method_names();
  for (const std::string_view method : methods) {
    const SeriesLook look = look_of(method, 1000);  // a name without a look of its own takes the position's
    EXPECT_EQ(look.color, look_of(method).color) << method << " has no look";
    EXPECT_LT(look.color, kSvgSeriesClasses);
    EXPECT_EQ(look.solid(), method == "exact") << method;
    EXPECT_EQ(variant_of(look).color, look.color);
    colors.insert(look.color), dashes.insert(look.dashes), markers.insert(look.marker);
  }
  EXPECT_EQ(colors.size(), methods.size());
  EXPECT_EQ(dashes.size(), methods.size());
  EXPECT_EQ(markers.size(), methods.size());
  EXPECT_EQ(colors.count(look_of("bound").color), 0u);
  EXPECT_TRUE(look_of("1f1b", 0).solid());
  EXPECT_FALSE(look_of("1f1b", 3).solid());
}

TEST(StackedBars, DrawPartsToScaleWithTheirTexts) {
  const std::string svg =
      stacked_bars("title", {"first", "second"}, {{"a<b", {{"long", "40 %", {10, 30}}, {"negative", "4 %", {5, -1}}}}});
  std::vector<double> widths;
  for (auto at = svg.find("class=\"q"); at != std::string::npos; at = svg.find("class=\"q", at + 1)) {
    const auto from = svg.find("width=\"", at) + 7;
    widths.push_back(std::stod(svg.substr(from)));
  }
  ASSERT_EQ(widths.size(), 6u);  // two in the legend, two a bar
  EXPECT_GT(widths[2], 100);
  EXPECT_NEAR(widths[3], 3 * widths[2], 0.02);
  EXPECT_NEAR(widths[4], widths[2] / 2, 0.02);
  EXPECT_EQ(widths[5], 0);
  EXPECT_THAT(texts(svg, "fg"), ElementsAre("first", "second", "a<b", "long", "negative"));
  EXPECT_THAT(texts(svg, "dim"), ElementsAre("40 %", "4 %"));
  EXPECT_THAT(texts(svg, "fg s"), ElementsAre("25.0 %", "75.0 %", "100.0 %"));
}

TEST(StackedBars, DrawNothingWithoutBars) {
  for (const std::vector<BarGroup>& groups : {std::vector<BarGroup>{}, {{"", {}}}, {{"", {{"zero", "0", {0, 0}}}}}}) {
    const std::string svg = stacked_bars("title", {"first", "second"}, groups);
    EXPECT_EQ(elements(svg, "svg").size(), 1u);
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
  }
}

TEST(SvgPage, FitsAPrintedPageInTheColorsOfLightPages) {
  const std::string page = open_svg(10, 10, "title", "description");
  EXPECT_THAT(page, HasSubstr("@media print{svg{max-width:100%;max-height:98vh;height:auto"));
  EXPECT_THAT(page, HasSubstr("@media screen and (prefers-color-scheme:dark)"));
}

TEST(SvgBox, HasNoNegativeSizeAndEscapesItsTooltip) {
  EXPECT_EQ(svg_box("a", {1, 2, -3, 4}), "<rect class=\"a\" x=\"1.00\" y=\"2.00\" width=\"0.00\" height=\"4.00\"/>\n");
  EXPECT_THAT(svg_box("a", {1, 2, 3, 4}, "<b>"), HasSubstr("<title>&lt;b&gt;</title></rect>"));
}

}  // namespace
}  // namespace perseus::report
