#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "io/report/bundle.h"
#include "io/report/dashboard.h"
#include "io/report/report.h"
#include "io/report/report_data.h"
#include "io/report/timeline.h"
#include "io/report/timeline_svg.h"
#include "tests/support/report_sample.h"

namespace perseus::report {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string awkward = "<&> \"it's\" </script> é 漢 \xff\x01";

template <class Writer>
std::string written(const Writer& writer) {
  std::string text;
  writer([&text](std::string_view piece) { text += piece; });
  return text;
}

boost::property_tree::ptree parse_xml(const std::string& text) {
  std::istringstream in(text);
  boost::property_tree::ptree tree;
  boost::property_tree::read_xml(in, tree);
  return tree;
}

struct Sample {
  model::ComputationDag dag;
  model::Frontier frontier;
  explicit Sample(int ranks = 3, int microbatches = 5) : dag(sample_dag(ranks, microbatches)) {
    frontier = sample_frontier(dag, 30);
  }
  [[nodiscard]] ReportInput input() const {
    return {dag, frontier, awkward, {{awkward, awkward}}, frontier.points[4].time};
  }
};

TEST(Svg, FrontierIsWellFormedAndDescribed) {
  const Sample sample;
  const std::string text = written([&](const Sink& sink) { write_frontier_svg(sample.input(), sink); });
  const auto svg = parse_xml(text).get_child("svg");
  EXPECT_THAT(svg.get<std::string>("title"), HasSubstr("<&> \"it's\" </script> é 漢 ��"));
  EXPECT_THAT(svg.get<std::string>("desc"), HasSubstr("realized plans"));
  EXPECT_THAT(text, HasSubstr("point 4"));
  EXPECT_THAT(text, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(Svg, PointsSlowerThanTheLeastEnergyPayOnlyWhileWaiting) {
  Sample sample;
  const auto drawn = [&] { return written([&](const Sink& sink) { write_frontier_svg(sample.input(), sink); }); };
  auto& points = sample.frontier.points;
  for (std::size_t p = 0; p < points.size(); ++p) points[p].energy = Joules(1000 + static_cast<double>(p));
  EXPECT_THAT(drawn(), Not(HasSubstr("pays only while waiting")));
  points[0].energy = Joules(1002);  // the second point needs least
  EXPECT_THAT(drawn(), HasSubstr("pays only while waiting"));
}

TEST(Svg, TimelineHasABarPerComputationAndPlan) {
  const Sample sample;
  const model::Plan before = model::all_maximum_clock(sample.dag);
  const std::string text = written([&](const Sink& sink) {
    write_timeline_svg(sample.dag, {{awkward, before}, {"after", sample.frontier.points[0].plan}}, sink);
  });
  const auto svg = parse_xml(text).get_child("svg");
  std::size_t bars = 0, paths = 0;
  for (const auto& [name, child] : svg) {
    bars += name == "rect" && child.get_optional<std::string>("title").has_value() ? 1 : 0;
    paths += name == "path" && child.get<std::string>("<xmlattr>.class").starts_with("critical") ? 1 : 0;
  }
  EXPECT_EQ(bars, 2 * sample.dag.computations.size());
  EXPECT_EQ(paths, 2 + 1u);  // one a plan, one in the legend
}

/// Gives every transfer 1 ms, and those between ranks 1 and 2 `slow`.
model::ComputationDag dag_with_latencies(Seconds slow) {
  model::ComputationDag dag = sample_dag(4, 6);
  for (model::Dependency& d : dag.dependencies) {
    const int from = dag.computations[d.before].rank, to = dag.computations[d.after].rank;
    if (from != to) d.latency = from + to == 3 && std::abs(from - to) == 1 ? slow : Seconds(0.001);
  }
  return dag;
}

TEST(SlowLinks, AreNotTransfersThatWaitInAQueue) {
  model::ComputationDag dag = dag_with_latencies(Seconds(0.001));
  const std::vector<model::Dependency> all = dag.dependencies;
  for (const model::Dependency& first : all) {
    for (const model::Dependency& second : all) {
      const auto& ranks = dag.computations;
      if (first.before >= second.before || first.latency == Seconds(0) || second.latency == Seconds(0)) continue;
      if (ranks[first.before].rank != ranks[second.before].rank) continue;
      if (ranks[first.after].rank != ranks[second.after].rank) continue;
      dag.dependencies.push_back({first.before, second.after, Seconds(0.005)});
    }
  }
  EXPECT_GT(dag.dependencies.size(), 2 * all.size());
  EXPECT_TRUE(slow_links(dag).empty());
}

TEST(SlowLinks, AreThoseAboveThreeTimesTheMedian) {
  EXPECT_TRUE(slow_links(sample_dag(4, 6)).empty());
  EXPECT_TRUE(slow_links(dag_with_latencies(Seconds(0.003))).empty());
  const auto links = slow_links(dag_with_latencies(Seconds(0.02)));
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(std::pair(links[0].from, links[0].to), std::pair(1, 2));
  EXPECT_EQ(std::pair(links[1].from, links[1].to), std::pair(2, 1));
  for (const SlowLink& link : links) {
    EXPECT_EQ(link.latency, Seconds(0.02));
    EXPECT_EQ(link.transfers.size(), 6u);  // one a microbatch
  }
}

TEST(SlowLinks, AreLinesOfTheTimeline) {
  const auto lines_of = [&](Seconds slow) {
    const model::ComputationDag dag = dag_with_latencies(slow);
    const std::string text = written([&](const Sink& sink) {
      write_timeline_svg(dag, {{"all", model::all_maximum_clock(dag)}}, sink);
    });
    std::vector<std::string> titles;
    const auto svg = parse_xml(text).get_child("svg");
    for (const auto& [name, child] : svg) {
      if (name == "path" && child.get_optional<std::string>("title")) titles.push_back(child.get<std::string>("title"));
    }
    EXPECT_EQ(text.find("slow transfer") != std::string::npos, !titles.empty()) << "in the legend";
    return titles;
  };
  EXPECT_THAT(lines_of(Seconds(0.001)), testing::IsEmpty());
  EXPECT_THAT(lines_of(Seconds(0.02)),
              testing::ElementsAre(HasSubstr("from rank 1 to rank 2"), HasSubstr("from rank 2 to rank 1")));
}

TEST(Svg, ALargeTimelineStaysASmallFile) {
  const model::ComputationDag dag = sample_dag(32, 128);
  const model::Plan plan = model::all_maximum_clock(dag);
  const std::string text = written([&](const Sink& sink) { write_timeline_svg(dag, {{"all", plan}}, sink); });
  EXPECT_LT(text.size(), 300'000u);
  EXPECT_NO_THROW(parse_xml(text));
}

TEST(Trace, IsJsonWithABarPerComputationAndPowerThatAddsUpToTheEnergy) {
  const Sample sample;
  const model::Plan before = model::all_maximum_clock(sample.dag);
  const std::vector<DrawnPlan> plans = {{awkward, before}, {"after", sample.frontier.points[0].plan}};
  const auto trace = boost::json::parse(written([&](const Sink& sink) { write_trace(sample.dag, plans, sink); }));
  std::vector<std::size_t> bars(2, 0);
  using Steps = std::map<double, double>;
  std::vector<std::map<std::string, Steps>> power(2);
  for (const auto& value : trace.at("traceEvents").as_array()) {
    const auto& event = value.as_object();
    const auto process = event.at("pid").to_number<std::size_t>();
    if (event.at("ph") == "X") {
      ++bars[process];
      EXPECT_GT(event.at("dur").to_number<double>(), 0);
      EXPECT_LT(event.at("tid").to_number<int>(), sample.dag.num_ranks());
    } else if (event.at("ph") == "C") {
      power[process][std::string(event.at("name").as_string())][event.at("ts").to_number<double>()] =
          event.at("args").at("W").to_number<double>();
    }
  }
  for (std::size_t k = 0; k < plans.size(); ++k) {
    EXPECT_EQ(bars[k], sample.dag.computations.size());
    const Timeline timeline = timeline_of(sample.dag, plans[k].plan);
    const auto area = [](const Steps& steps) {
      double joules = 0;
      for (auto step = steps.begin(); std::next(step) != steps.end(); ++step)
        joules += step->second * (std::next(step)->first - step->first) * 1e-6;
      return joules;
    };
    ASSERT_EQ(power[k].size(), sample.dag.num_ranks() + 1u);
    double ranks = 0;
    for (const auto& [name, steps] : power[k])
      if (name != "power total") ranks += area(steps);
    EXPECT_NEAR(area(power[k]["power total"]), timeline.energy.value(), 1e-4 * timeline.energy.value());
    EXPECT_NEAR(ranks, timeline.energy.value(), 1e-4 * timeline.energy.value());
  }
}

std::vector<int> ints(const boost::json::value& array) { return boost::json::value_to<std::vector<int>>(array); }

TEST(ReportData, PlansAndDependenciesReadBack) {
  const Sample sample(4, 8);
  const ReportInput input = sample.input();
  const ReportSummary summary = summarize(input.dag, input.frontier, input.straggler);
  const auto data = boost::json::parse(written([&](const Sink& sink) { write_report_data(input, summary, sink); }));

  const std::vector<int> types = ints(data.at("computations").at("type"));
  ASSERT_EQ(types.size(), sample.dag.computations.size());
  const std::vector<int> points = ints(data.at("plans").at("point"));
  ASSERT_EQ(points.size(), sample.frontier.points.size());
  std::vector<int> order(types.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::ranges::stable_sort(order, {}, [&](int i) { return types[i]; });
  for (std::size_t k = 0; k < points.size(); ++k) {
    const std::vector<int> runs = ints(data.at("plans").at("runs").at(k));
    model::Plan plan(types.size());
    std::size_t at = 0;
    for (std::size_t r = 0; r < runs.size(); r += 2)
      for (int n = 0; n < runs[r]; ++n) plan[order.at(at++)] = static_cast<model::Plan::value_type>(runs[r + 1]);
    EXPECT_EQ(at, types.size());
    EXPECT_EQ(plan, sample.frontier.points[points[k]].plan);
  }

  const std::vector<int> steps = ints(data.at("dependencies").at("after_step"));
  const std::vector<int> backs = ints(data.at("dependencies").at("before_back"));
  std::multiset<std::pair<int, int>> read, expected;
  int after = 0;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    after += steps[k];
    read.emplace(after - backs[k], after);
  }
  for (const model::Dependency& d : sample.dag.dependencies)
    if (sample.dag.computations[d.before].rank != sample.dag.computations[d.after].rank)
      expected.emplace(d.before, d.after);
  EXPECT_EQ(read, expected);
  EXPECT_EQ(data.at("summary").at("straggler").at("point").to_number<int>(), 4);
}

TEST(ReportData, ItsPartsForTheDashboardAreTheReports) {
  const Sample sample(4, 8);
  const ReportSummary summary = summarize(sample.dag, sample.frontier, {});
  ReportInput input = sample.input();
  input.straggler.reset();
  const auto report = boost::json::parse(written([&](const Sink& sink) { write_report_data(input, summary, sink); }));
  const auto frontier =
      boost::json::parse(written([&](const Sink& sink) { write_frontier_data(sample.dag, sample.frontier, sink); }));
  for (const char* member : {"format", "points", "bound", "summary"})
    EXPECT_EQ(frontier.at(member), report.at(member)) << member;
  EXPECT_EQ(frontier.at("waiting_w").to_number<double>(), sample.dag.total_blocking_power().value());
  const auto timeline = boost::json::parse(written(
      [&](const Sink& sink) { write_timeline_data(sample.dag, sample.frontier.points[4].plan, Seconds(0.01), sink); }));
  for (const char* member : {"format", "blocking_power_w", "accelerators", "types", "computations", "dependencies"})
    EXPECT_EQ(timeline.at(member), report.at(member)) << member;
  EXPECT_EQ(timeline.at("runs"), report.at("plans").at("runs").at(4));
  EXPECT_EQ(timeline.at("switch_latency_s"), 0.01);
}

TEST(ReportData, DrawnPointsAreSpreadAndKeepTheWantedOne) {
  EXPECT_EQ(points_with_plan(3, 10, {-1}), (std::vector<int>{0, 1, 2}));
  const std::vector<int> few = points_with_plan(1000, 65536, {777});
  EXPECT_LE(few.size(), 13u);
  EXPECT_EQ(few.front(), 0);
  EXPECT_EQ(few.back(), 999);
  EXPECT_THAT(few, testing::Contains(777));
  EXPECT_EQ(points_with_plan(1, 10, {0}), (std::vector<int>{0}));
}

TEST(Html, HoldsDataThatReadsBackAndLetsNoNameOut) {
  const Sample sample;
  const std::string html = written([&](const Sink& sink) { write_html(sample.input(), sink); });
  const std::string open = "id=\"perseus-data\">";
  const auto from = html.find(open) + open.size();
  const auto data = boost::json::parse(html.substr(from, html.find("</script>", from) - from));
  EXPECT_EQ(data.at("title").as_string(), "<&> \"it's\" </script> é 漢 �\x01");
  EXPECT_THAT(html, Not(HasSubstr(awkward.substr(0, 10))));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  // The data and our two scripts; nothing in data or bundle closes a script element early.
  std::size_t ends = 0;
  for (auto at = html.find("</script"); at != std::string::npos; at = html.find("</script", at + 1)) ++ends;
  EXPECT_EQ(ends, 3u);
  EXPECT_THAT(std::string(report_style()), Not(HasSubstr("</style")));
}

TEST(Dashboard, IsOnePageThatNamesItsScripts) {
  const std::string page = dashboard_page();
  EXPECT_THAT(page, HasSubstr(std::string(charts_script())));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  std::size_t ends = 0;
  for (auto at = page.find("</script"); at != std::string::npos; at = page.find("</script", at + 1)) ++ends;
  EXPECT_EQ(ends, 2u);
  EXPECT_THAT(page, HasSubstr("script-src 'sha256-"));
  EXPECT_THAT(page, Not(HasSubstr("script-src 'unsafe-inline'")));
}

TEST(Dashboard, EntityTagsDistinguishVersions) {
  EXPECT_EQ(entity_tag(""), "\"cbf29ce484222325\"");  // FNV-1a, 64 bits, as published
  EXPECT_EQ(entity_tag("a"), "\"af63dc4c8601ec8c\"");
  EXPECT_NE(entity_tag(dashboard_page()), entity_tag(dashboard_page() + " "));
}

TEST(Html, IsWrittenInPieces) {
  const Sample sample(8, 64);
  std::size_t largest = 0, total = 0;
  write_html(sample.input(), [&](std::string_view piece) {
    largest = piece.data() == charts_script().data() ? largest : std::max(largest, piece.size());
    total += piece.size();
  });
  EXPECT_LT(largest, 100'000u);
  EXPECT_GT(total, charts_script().size());
}

}  // namespace
}  // namespace perseus::report
