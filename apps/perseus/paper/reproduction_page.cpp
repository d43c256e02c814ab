#include <fmt/format.h>

#include "paper/reproduction_output.h"

namespace perseus::cli {
namespace {

using CaseSavings = reproduction::EmulatedCase::CaseSavings;

double mean_pct(const std::vector<ReproducedCase>& cases, double CaseSavings::*saving_pct) {
  double sum = 0;
  for (const ReproducedCase& c : cases) sum += c.plans.at_fastest().*saving_pct;
  return sum / static_cast<double>(cases.size());
}

std::string headline(const std::vector<ReproducedCase>& cases) {
  return fmt::format("the fastest plans save {:.1f} %, those of the published method {:.1f} %",
                     mean_pct(cases, &CaseSavings::ours_fastest_pct),
                     mean_pct(cases, &CaseSavings::paper_realized_pct));
}

report::TextRows table6(const std::vector<ReproducedCase>& cases) {
  Table table = table6_of(cases, "saving [%]", " on ");
  table.columns.pop_back();  // EnvPipe recomputed
  return table.text();
}

/// How far the published frontiers are from those of the published method as computed here.
report::TextRows deviations(const std::vector<ReproducedCase>& cases) {
  report::TextRows table{{"published frontier", "microbatches", "points", "in common", "mean deviation", "largest"},
                         {}};
  for (const ReproducedCase& c : cases) {
    if (!c.published) continue;
    table.rows.push_back({fmt::format("{} on {}", c.model, c.gpu), std::to_string(c.microbatches),
                          std::to_string(c.published->published_points), std::to_string(c.published->common_points),
                          fmt::format("{:.3g} %", c.published->mean_deviation_pct),
                          fmt::format("{:.3g} %", c.published->largest_deviation_pct)});
  }
  if (table.rows.empty()) table.header.clear();
  return table;
}

}  // namespace

report::StaticPage reproduction_page(const std::vector<ReproducedCase>& cases, const ReproductionPictures& pictures,
                                     const std::vector<report::ReportFact>& facts) {
  report::StaticPage page{"Perseus reproduction of the paper", headline(cases), {}, {}};
  page.sections.push_back(
      {.heading = "Table 6: saving without a straggler",
       .table = table6(cases),
       .note = fmt::format(
           "Against everything at maximum clock. Planned: as the paper counts; realized: the same plans at the "
           "measured time and energy of their clocks. Ours: the plan that is no slower than maximum clock (mean of all "
           "{} rows: {:.1f} %); bound: no plan that fast saves more. The headline compares ours at T_min with the "
           "paper's realized ones, both the fastest of their method.",
           cases.size(), mean_pct(cases, &CaseSavings::ours_realized_pct))});
  page.sections.push_back({.heading = "Figure 7: intrinsic and extrinsic bloat",
                           .drawings = {pictures.figure7},
                           .note = "The saving of the whole job while one pipeline is 1.2 times slower."});
  page.sections.push_back(
      {.heading = "Figure 8: savings over the straggler's slowdown",
       .drawings = pictures.figure8,
       .note = "The saving of the whole job beyond that of each method's own fastest plan: a method that "
               "saves more there has less to add, and figure 7 has the sums. The circle is the slowest plan "
               "that still saves energy."});
  page.sections.push_back(
      {.heading = "Time-energy frontiers", .drawings = pictures.frontiers, .table = deviations(cases)});
  page.sections.push_back({.heading = "Made from", .list = facts});
  return page;
}

}  // namespace perseus::cli
