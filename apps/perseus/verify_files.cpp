#include "verify_files.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <fstream>
#include <set>

#include "io/formats/csv.h"
#include "io/formats/file.h"
#include "io/formats/frequency_plan.h"
#include "io/formats/number.h"
#include "io/report/format.h"
#include "io/report/summary.h"
#include "io/report/trace.h"
#include "plan_output.h"
#include "plan_source.h"
#include "planning/model/reference_plans.h"
#include "point_figures.h"

namespace perseus::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr double kCsvTolerance = 1e-9;
constexpr double kReportTolerance = 1e-7;  ///< the report rounds to eight digits
constexpr std::string_view kDataOpens = "<script type=\"application/json\" id=\"perseus-data\">";

/// Tiny figures (a zero gap) are compared with the unit.
bool differ(double a, double b, double tolerance) {
  return !(std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)}));
}

/// Checks that the .py files, which are deployed, have the same clocks.
void check_frequency_plans(const formats::PlanFile& file, const fs::path& path, bool needed, CheckedFiles& checked,
                           const std::function<void(double done)>& progress) {
  const fs::path folder = path.parent_path() / "plans";
  if (!fs::is_directory(folder)) {
    if (needed) checked.findings.push_back(folder.string() + " is missing");
    return;
  }
  for (int point = 0; point < static_cast<int>(file.frontier.points.size()); ++point) {
    if (progress) progress(static_cast<double>(point) / static_cast<double>(file.frontier.points.size()));
    const fs::path clocks = frequency_plan_path(path, point);
    if (clocks.empty()) {
      checked.findings.push_back(
          fmt::format("point {}: plans/{} is missing", point, formats::frequency_plan_file_name(point)));
      continue;
    }
    const Result<formats::FrequencyPlan> plan = formats::read_frequency_plan(clocks.string());
    if (!plan) {
      checked.findings.push_back(plan.error().message);
    } else if (*plan != formats::frequency_plan_of(file.dag, file.frontier.points[point].plan)) {
      checked.findings.push_back(fmt::format("{}: other clocks than point {} of plans.json", clocks.string(), point));
    }
    ++checked.frequency_plans;
  }
  std::set<std::string> expected;
  for (int point = 0; point < static_cast<int>(file.frontier.points.size()); ++point) {
    expected.insert(formats::frequency_plan_file_name(point));
  }
  std::error_code ignored;
  std::set<std::string> others;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (!expected.contains(entry.path().filename().string())) others.insert(entry.path().string());
  }
  for (const std::string& other : others) {
    checked.findings.push_back(fmt::format("{}: no point of plans.json has this file", other));
  }
}

/// The first figure in the report's data that differs from the frontier's, or nothing.
std::string compare_report(const std::string& html, const formats::PlanFile& file,
                           const report::ReportSummary& summary) {
  const std::size_t begins = html.find(kDataOpens), ends = html.find("</script>", begins);
  if (begins == std::string::npos || ends == std::string::npos) return "it has no data";
  boost::system::error_code problem;
  const std::size_t from = begins + kDataOpens.size();
  const json::value data = json::parse(std::string_view(html).substr(from, ends - from), problem);
  if (problem) return "its data is not JSON: " + problem.message();
  const auto& points = file.frontier.points;
  const auto number_at = [&](const std::string& pointer) {
    boost::system::error_code absent;
    const json::value* value = data.find_pointer(pointer, absent);
    return value != nullptr && value->is_number() ? value->to_number<double>() : std::nan("");
  };
  if (!std::isnan(number_at(fmt::format("/points/time_s/{}", points.size()))))
    return "it has more points than plans.json";
  for (std::size_t i = 0; i < points.size(); ++i) {
    const model::FrontierPoint& p = points[i];
    for (const auto& [key, value] :
         {std::pair("time_s", p.time.value()), std::pair("energy_j", p.energy.value()),
          std::pair("effective_energy_j", p.effective_energy.value()), std::pair("bound_j", p.bound.value())}) {
      const double claimed = number_at(fmt::format("/points/{}/{}", key, i));
      if (differ(claimed, value, kReportTolerance))
        return fmt::format("point {}: {} {}; plans.json: {}", i, key, claimed, value);
    }
  }
  for (const auto& [key, value] :
       {std::pair("/summary/default_point", static_cast<double>(summary.default_point)),
        std::pair("/summary/fastest/energy_j", summary.fastest.energy.value()),
        std::pair("/summary/all_max/time_s", summary.all_max.time.value()),
        std::pair("/summary/all_max/energy_j", summary.all_max.energy.value()),
        std::pair("/summary/min_energy/energy_j", summary.min_energy.energy.value()),
        std::pair("/summary/t_min_s", summary.t_min.value()), std::pair("/summary/t_star_s", summary.t_star.value())}) {
    const double claimed = number_at(key);
    if (differ(claimed, value, kReportTolerance)) return fmt::format("{}: {}; computed: {}", key, claimed, value);
  }
  const std::string headline =
      fmt::format("<dt>Saved by the default plan</dt><dd>{}<", report::percent(summary.saving_pct));
  if (html.find(headline) == std::string::npos) {
    return fmt::format("its headline does not say that the default plan saves {}", report::percent(summary.saving_pct));
  }
  return "";
}

/// Checks that the trace of all computations at maximum clock and of the default plan agrees with plans.json.
bool is_trace_of(const formats::PlanFile& file, const model::DefaultRule& rule, const fs::path& path) {
  const model::Plan before = model::all_maximum_clock(file.dag);
  const int chosen = model::default_point(file.frontier, report::t_max_of(file.dag, file.frontier), rule);
  std::ifstream stream(path, std::ios::binary);
  bool same = true;
  std::string found;
  report::write_trace(file.dag, trace_plans(before, file.frontier.points[chosen].plan), [&](std::string_view piece) {
    found.resize(piece.size());
    same = same && stream.read(found.data(), static_cast<std::streamsize>(piece.size())) && found == piece;
  });
  return same && stream.peek() == std::ifstream::traits_type::eof();
}

}  // namespace

std::string compare_csv(const std::string& text, const std::string& expected, const std::string& name) {
  formats::CsvReader found(text, name), wanted(expected, "");
  for (;;) {
    const Result<bool> a = found.next();
    if (!a) return a.error().message;
    const bool b = wanted.next().value();
    if (*a != b) return fmt::format("{}: {} lines than plans.json has points", name, *a ? "more" : "fewer");
    if (!b) return "";
    if (found.fields().size() != wanted.fields().size()) {
      return fmt::format("{}:{}: {} fields; {} are expected", name, found.line(), found.fields().size(),
                         wanted.fields().size());
    }
    for (std::size_t i = 0; i < found.fields().size(); ++i) {
      const std::string_view claimed = found.fields()[i], own = wanted.fields()[i];
      if (claimed == own) continue;
      const auto x = formats::number_in<double>(claimed), y = formats::number_in<double>(own);
      if (x && y && !differ(*x, *y, kCsvTolerance)) continue;
      return fmt::format("{}:{}: '{}' in column {}; computed from plans.json: '{}'", name, found.line(), claimed, i + 1,
                         own);
    }
  }
}

CheckedFiles check_plan_files(const formats::PlanFile& file, const fs::path& path, Seconds switch_latency,
                              const model::DefaultRule& rule, bool whole_directory,
                              const std::function<void(double done)>& progress) {
  CheckedFiles checked;
  std::error_code ignored;
  const auto beside = [&](const char* name) { return path.parent_path() / name; };
  // `perseus compare` writes a plans.json alone; `perseus plan` writes all of these.
  constexpr std::array outputs = {"frontier.csv", "report.html", "trace.json", "plans"};
  const bool needed = whole_directory &&
                      std::ranges::any_of(outputs, [&](const char* name) { return fs::exists(beside(name), ignored); });
  const auto check = [&](const fs::path& at, auto compare) {
    if (!fs::exists(at, ignored)) {
      if (needed) checked.findings.push_back(at.string() + " is missing");
      return false;
    }
    const Result<std::string> text = formats::read_file(at.string());
    const std::string finding = text ? compare(*text) : text.error().message;
    if (!finding.empty()) checked.findings.push_back(finding);
    return true;
  };
  checked.frontier_csv = check(beside("frontier.csv"), [&](const std::string& text) {
    return compare_csv(text, frontier_csv(figures_of(file.dag, file.frontier, switch_latency)),
                       beside("frontier.csv").string());
  });
  checked.report = check(beside("report.html"), [&](const std::string& text) {
    const std::string finding = compare_report(text, file, report::summarize(file.dag, file.frontier, {}, rule));
    return finding.empty() ? finding : beside("report.html").string() + ": " + finding;
  });
  const fs::path trace = beside("trace.json");
  checked.trace = fs::exists(trace, ignored);
  if (!checked.trace && needed) checked.findings.push_back(trace.string() + " is missing");
  if (checked.trace && !is_trace_of(file, rule, trace)) {
    checked.findings.push_back(trace.string() +
                               ": other clocks, times or energies than plans.json has at maximum clock or of the "
                               "default plan");
  }
  check_frequency_plans(file, path, needed, checked, progress);
  return checked;
}

}  // namespace perseus::cli
