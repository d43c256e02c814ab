#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "io/report/format.h"
#include "io/report/report.h"
#include "io/report/series_look.h"
#include "io/report/table.h"
#include "io/report/timeline.h"
#include "tests/support/report_sample.h"

namespace perseus::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Escape, MarkupKeepsTextAndNothingElse) {
  EXPECT_EQ(escape_markup("a<b & \"c\" 'd'>"), "a&lt;b &amp; &quot;c&quot; &#39;d&#39;&gt;");
  EXPECT_EQ(escape_markup("é 漢 🜂"), "é 漢 🜂");
  EXPECT_EQ(escape_markup(std::string_view("\x01\x1b[0m\x7f", 6)), "��[0m�");
}

TEST(Escape, BytesThatAreNoUtf8BecomeReplacementCharacters) {
  EXPECT_EQ(escape_markup("\xff"), "�");
  EXPECT_EQ(escape_markup("\xc3"), "�");                 // cut off
  EXPECT_EQ(escape_markup("\xc3("), "�(");               // the second byte is no continuation
  EXPECT_EQ(escape_markup("\xc0\xaf"), "��");            // overlong
  EXPECT_EQ(escape_markup("\xe0\x80\xaf"), "���");       // overlong in three bytes
  EXPECT_EQ(escape_markup("\xed\xa0\x80"), "���");       // half a surrogate pair
  EXPECT_EQ(escape_markup("\xf4\x90\x80\x80"), "����");  // beyond Unicode
}

TEST(Format, UnitsFollowTheSize) {
  EXPECT_EQ(text_of(Seconds(2.83651)), "2.8365 s");
  EXPECT_EQ(text_of(Seconds(0.0132)), "13.20 ms");
  EXPECT_EQ(text_of(Seconds(0)), "0 s");
  EXPECT_EQ(text_of(Joules(1234567)), "1,234,567 J");
  EXPECT_EQ(text_of(Joules(-1234.5678)), "-1,234.6 J");
  EXPECT_EQ(text_of(Megahertz(0)), "fixed clock");
  EXPECT_EQ(percent(0.1234), "0.123 %");
  EXPECT_EQ(percent(-1e-9), "0.000 %");
}

TEST(Format, TicksAreRoundAndInside) {
  EXPECT_THAT(ticks_within(0, 10, 5), testing::ElementsAre(0, 2, 4, 6, 8, 10));
  const auto ticks = ticks_within(2.93, 4.41, 8);
  ASSERT_GE(ticks.size(), 4u);
  EXPECT_GE(ticks.front(), 2.93);
  EXPECT_LE(ticks.back(), 4.41 + 1e-9);
  EXPECT_EQ(tick_label(3.2, {3.0, 3.2, 3.4}), "3.2");
  EXPECT_EQ(tick_label(1500, {1000, 1500}), "1,500");
  EXPECT_THAT(ticks_within(5, 5, 8), testing::ElementsAre(5));
  EXPECT_THAT(ticks_within(483.2, std::nextafter(483.2, 500), 8), testing::ElementsAre(483.2));
}

TEST(PowerRamp, ContrastToThePageRisesWithPowerAndThePageUsesTheSameStops) {
  const auto lightness = [](Rgb c) { return 0.2126 * c.red + 0.7152 * c.green + 0.0722 * c.blue; };
  for (int k = 1; k <= 20; ++k) {
    const double before = (k - 1) / 20.0, now = k / 20.0;
    EXPECT_LT(lightness(power_color(now, Theme::light)), lightness(power_color(before, Theme::light)));
    EXPECT_GT(lightness(power_color(now, Theme::dark)), lightness(power_color(before, Theme::dark)));
  }
  std::ifstream file(PERSEUS_SOURCE_DIR "/web/src/power-ramp.js");
  std::stringstream source;
  source << file.rdbuf();
  for (const Rgb& stop : kInfernoStops) EXPECT_THAT(source.str(), HasSubstr(stop.hex()));
}

TEST(TextTable, AlignsByColumnsOfATerminal) {
  TextTable table({"name", "J"});
  table.add({"é", "1"});
  table.add({"e\u0301", "2"});
  table.add({"漢字", "3"});
  table.add({"longer", "100"});
  EXPECT_EQ(table.to_string(),
            "name      J\n"
            "é         1\n"
            "e\u0301         2\n"
            "漢字      3\n"
            "longer  100\n");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::size_t columns_on_screen(const std::string& line) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (line[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(line[i]) & 0xC0) != 0x80) {
      ++columns;
    }
  }
  return columns;
}

TEST(Terminal, TimelineHasARowPerRankAndKeepsToTheWidth) {
  const model::ComputationDag dag = sample_dag(12, 30);
  const model::Plan plan = model::all_maximum_clock(dag);
  for (const TerminalColor color : {TerminalColor::none, TerminalColor::ansi256, TerminalColor::truecolor}) {
    const std::string text = terminal_timeline(dag, {"all", plan}, {77, color});
    const auto lines = lines_of(text);
    ASSERT_EQ(lines.size(), 1 + 12 + 2u);
    for (int r = 0; r < 12; ++r) {
      EXPECT_EQ(columns_on_screen(lines[1 + r]), 77u) << lines[1 + r];
      EXPECT_THAT(lines[1 + r], HasSubstr("·"));  // every rank waits at least once
    }
    EXPECT_EQ(text.find('\x1b') == std::string::npos, color == TerminalColor::none);
    EXPECT_THAT(lines[13], HasSubstr(text_of(timeline_of(dag, plan).makespan)));
  }
}

}  // namespace
}  // namespace perseus::report
