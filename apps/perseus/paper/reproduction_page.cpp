#include "paper/reproduction_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace perseus::cli {
namespace {

using CaseSavings = reproduction::EmulatedCase::CaseSavings;

/// A column of table 6, in percent.
struct SavingColumn {
  const char* name;
  std::optional<double> (*value_pct)(const CaseSavings&);
};
constexpr std::array kSavingColumns{
    SavingColumn{"paper planned", [](const CaseSavings& s) { return std::optional(s.paper_planned_pct); }},
    SavingColumn{"paper realized", [](const CaseSavings& s) { return std::optional(s.paper_realized_pct); }},
    SavingColumn{"ours", [](const CaseSavings& s) { return std::optional(s.ours_realized_pct); }},
    SavingColumn{"ours at T_min", [](const CaseSavings& s) { return std::optional(s.ours_fastest_pct); }},
    SavingColumn{"bound", [](const CaseSavings& s) { return std::optional(s.bound_pct); }},
    SavingColumn{"EnvPipe", [](const CaseSavings& s) { return s.envpipe_pct; }}};

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
  report::TextRows table{{"saving [%]", "microbatches"}, {}};
  for (const SavingColumn& column : kSavingColumns) table.header.emplace_back(column.name);
  for (const ReproducedCase& c : cases) {
    const CaseSavings savings = c.plans.at_fastest();
    std::vector<std::string> row{fmt::format("{} on {}", c.model, c.gpu), std::to_string(c.microbatches)};
    for (const SavingColumn& column : kSavingColumns) {
      const std::optional<double> pct = column.value_pct(savings);
      row.push_back(pct ? fmt::format("{:.2f}", *pct) : "-");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
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
