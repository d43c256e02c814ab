// Results of a search over configurations: which configuration is best where, in CSV, JSON, text and HTML.
//
// Savings and slowdowns are against the first configuration with all computations at maximum clock. Energies are
// those of a whole iteration; the accelerators are the same in all configurations.
//
// Output:  the files
//           DIR/configurations.csv         a line per configuration, the reference first
//           DIR/frontier.csv               a line per point of the union's frontier, with its configuration
//           DIR/configurations.html, .svg  charts and tables
//           DIR/NAME/                      the plans of configuration NAME, as `perseus plan --out` writes them
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "command_line/records.h"
#include "io/report/report.h"
#include "planning/model/default_plan.h"
#include "planning/search/union_frontier.h"

namespace perseus::cli {

/// Key in a plan file's metadata: number of planned configurations, "3 planned, 1 left out; ...".
constexpr const char* kConfigurationsKey = "configurations";
/// Key in a plan file's metadata: some of its times and energies were derived, not measured.
constexpr const char* kDerivedKey = "derived";

/// The changes to a job besides clocks, the smaller change first.
enum class Change { clocks, recomputation, schedule, partition, microbatches };

struct PlannedConfiguration {
  std::string name;
  std::string description;  ///< "8 ranks, 12 microbatches"
  const model::ComputationDag& dag;
  const model::Frontier& frontier;
  std::optional<double> memory_gib;  ///< the highest peak of a rank
  std::vector<std::string> assumptions;
  Change change = Change::clocks;  ///< the largest one, from the reference
};

struct ConfigurationFigures {
  Seconds t_min, t_star;
  std::optional<int> in_time;  ///< its plan of least energy within the deadline; nullopt: it has none
  double saving_pct = 0;       ///< of that plan
  double wins_pct = 0;         ///< share of the deadlines, from the union's fastest to its slowest point
};

struct SearchSummary {
  report::IterationCost reference;  ///< all computations at maximum clock in the first configuration
  model::DefaultRule rule;
  search::UnionFrontier all;
  int default_point = 0;
  Joules bound_in_time;  ///< lower bound of the energy of all plans of any configuration within the deadline
  std::vector<ConfigurationFigures> configurations;
};

struct SkippedConfiguration {
  std::string name;
  std::string reason;
};

/// At least one configuration, each with at least one point.
SearchSummary summarize_search(const std::vector<PlannedConfiguration>& configurations, const model::DefaultRule& rule);
double saving_pct_of(const SearchSummary& summary, Joules energy);

struct SearchReport {
  std::string title;
  std::vector<report::ReportFact> inputs;
  const std::vector<PlannedConfiguration>& configurations;
  const std::vector<SkippedConfiguration>& left_out;
  const SearchSummary& summary;
  std::vector<report::ReportFact> origin = {};  ///< of the page, see origin.h
};
std::string search_text(const SearchReport& report);
std::string configurations_csv(const SearchReport& report);
Table points_of(const SearchReport& report);
boost::json::object search_json(const SearchReport& report);
void write_search_svg(const SearchReport& report, const report::Sink& sink);
void write_search_html(const SearchReport& report, const report::Sink& sink);

}  // namespace perseus::cli
