#include "verify/verify_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/split.h"
#include "command_line/origin.h"
#include "io/formats/csv.h"
#include "io/formats/file.h"
#include "io/formats/frequency_plan.h"
#include "io/formats/number.h"
#include "io/report/report.h"
#include "plan/link_doubt.h"
#include "plan/pipeline.h"
#include "plan/plan_output.h"
#include "plan/plan_source.h"
#include "plan/point_figures.h"
#include "plan/slowdown.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "search/search_output.h"

namespace perseus::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr double kCsvTolerance = 1e-9;
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
  formats::FrequencyPlanWriter writer(file.dag);
  for (int point = 0; point < static_cast<int>(file.frontier.points.size()); ++point) {
    if (progress) progress(static_cast<double>(point) / static_cast<double>(file.frontier.points.size()));
    const fs::path clocks = frequency_plan_path(path, point);
    if (clocks.empty()) {
      checked.findings.push_back(
          fmt::format("point {}: plans/{} is missing", point, formats::frequency_plan_file_name(point)));
      continue;
    }
    const model::FrontierPoint& of = file.frontier.points[point];
    const Result<std::string> text = formats::read_file(clocks.string());
    if (!text) {
      checked.findings.push_back(text.error().message);
    } else if (*text != writer.write(of.plan, plan_comment(point, of))) {
      checked.findings.push_back(
          fmt::format("{}: other clocks or text than point {} of plans.json", clocks.string(), point));
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

/// What report.html shows that plans.json does not compute.
struct ReportInputs {
  std::string title;
  std::vector<report::ReportFact> facts;
  std::optional<Seconds> straggler;
};

bool is_title(const std::string& title, const formats::PlanFile& file, const fs::path& path) {
  const auto noted = [&](const char* key) {
    const auto found = file.metadata.find(key);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  const std::string profile = noted("profile");
  if (profile.empty()) return noted("DAG").starts_with(title + ", ");
  return title == profile || title == profile + ", " + path.parent_path().filename().string();
}

/// Reads them; a message if plans.json notes something else.
Result<ReportInputs> inputs_of(const std::string& html, const formats::PlanFile& file, const fs::path& path) {
  const auto wrong = [](std::string message) { return Error{ErrorCode::invalid_input, std::move(message)}; };
  const std::size_t begins = html.find(kDataOpens), ends = html.find("</script>", begins);
  if (begins == std::string::npos || ends == std::string::npos) return wrong("it has no data");
  boost::system::error_code problem;
  const std::size_t from = begins + kDataOpens.size();
  const json::value data = json::parse(std::string_view(html).substr(from, ends - from), problem);
  if (problem) return wrong("its data is not JSON: " + problem.message());
  ReportInputs inputs;
  boost::system::error_code absent;
  if (const json::value* title = data.find_pointer("/title", absent); title != nullptr && title->is_string()) {
    inputs.title = title->as_string();
  }
  if (!is_title(inputs.title, file, path)) return wrong(fmt::format("its title is '{}'", inputs.title));
  const json::value* deadline = data.find_pointer("/summary/straggler/deadline_s", absent);
  if (deadline != nullptr && deadline->is_number()) inputs.straggler = Seconds(deadline->to_number<double>());

  std::map<std::string, report::ReportFact> noted;  // by their lines; a search joins facts of one name by "; "
  for (const auto& [name, values] : file.metadata) {
    constexpr std::string_view separator = "; ";
    for (std::size_t first = 0; first <= values.size();) {
      for (std::size_t end = first; end < values.size();) {
        end = std::min(values.find(separator, end + 1), values.size());
        const report::ReportFact fact{name, values.substr(first, end - first)};
        noted[report::fact_line(fact)] = fact;
      }
      first = std::min(values.find(separator, first), values.size()) + separator.size();
    }
  }
  constexpr std::string_view opens = "<ul class=\"inputs\">\n";
  std::size_t at = html.find(opens);
  if (at == std::string::npos) return inputs;
  for (at += opens.size(); html.compare(at, 3, "<li") == 0;) {
    const std::size_t end = std::min(html.find('\n', at), html.size() - 1) + 1;
    const auto found = noted.find(html.substr(at, end - at));
    if (found == noted.end()) return wrong(fmt::format("plans.json does not note '{}'", html.substr(at, end - at - 1)));
    inputs.facts.push_back(found->second);
    at = end;
  }
  return inputs;
}

/// Whether the file has exactly the bytes that `write` writes.
bool has_content(const fs::path& path, const std::function<void(const report::Sink&)>& write) {
  std::ifstream stream(path, std::ios::binary);
  bool same = true;
  std::string found;
  write([&](std::string_view piece) {
    found.resize(piece.size());
    same = same && stream.read(found.data(), static_cast<std::streamsize>(piece.size())) && found == piece;
  });
  return same && stream.peek() == std::ifstream::traits_type::eof();
}

/// Compares the report, the pictures and the trace with those that this program writes.
void check_pages(const formats::PlanFile& file, const fs::path& path, Seconds switch_latency,
                 const model::DefaultRule& rule, bool needed, CheckedFiles& checked) {
  const auto by = file.metadata.find("Perseus");
  const bool same_version = by == file.metadata.end() || by->second == version_text();
  const auto report_path = (path.parent_path() / "report.html").string();
  std::error_code ignored;
  ReportInputs inputs;
  bool inputs_known = false;
  if (fs::exists(report_path, ignored)) {
    const Result<std::string> html = formats::read_file(report_path);
    Result<ReportInputs> read = html ? inputs_of(*html, file, path) : Result<ReportInputs>(html.error());
    inputs_known = read.ok();
    if (read)
      inputs = *std::move(read);
    else
      checked.findings.push_back(fmt::format("{}: {}", report_path, read.error().message));
  }
  const DrawnPlans drawn = default_drawing(file.dag, file.frontier, rule, switch_latency);
  const report::ReportInput report{file.dag,         file.frontier, inputs.title,  inputs.facts,
                                   inputs.straggler, rule,          switch_latency};
  for (const ResultFile& page : plan_pages(report, drawn)) {
    const std::string_view name = page.name;
    const fs::path at = path.parent_path() / page.name;
    const bool shows_inputs = name == "report.html" || name == "frontier.svg";
    if (!fs::exists(at, ignored)) {
      if (needed) checked.findings.push_back(at.string() + " is missing");
      continue;
    }
    if (shows_inputs && !inputs_known) continue;
    (name == "report.html" ? checked.report : name == "trace.json" ? checked.trace : checked.pictures) = true;
    if (has_content(at, page.fill)) continue;
    if (same_version) {
      checked.findings.push_back(at.string() + ": not what plans.json gives: other clocks, times, energies or text");
    } else {
      checked.not_checked.push_back(
          fmt::format("{}, which Perseus {} wrote; this is {}", page.name, by->second, version_text()));
    }
  }
}

/// "1f1b, 4 ranks, 4 stages, 12 microbatches", and what a search adds.
struct NotedSchedule {
  std::string name;
  int ranks = 0, stages = 0, microbatches = 0;
};

std::optional<NotedSchedule> noted_schedule(const std::string& text) {
  const std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() < 4) return std::nullopt;
  NotedSchedule noted{std::string(parts[0])};
  for (const auto& [part, unit, value] :
       {std::tuple(parts[1], " ranks", &noted.ranks), std::tuple(parts[2], " stages", &noted.stages),
        std::tuple(parts[3], " microbatches", &noted.microbatches)}) {
    const std::size_t end = part.find(unit);
    const auto number = formats::number_in<int>(part.substr(std::min<std::size_t>(1, part.size()), end - 1));
    if (end == std::string_view::npos || !number) return std::nullopt;
    *value = *number;
  }
  return noted;
}

/// Stages and instructions of the plans, each with one measurement.
model::Profile shape_of(const model::ComputationDag& dag) {
  model::Profile profile;
  for (std::size_t i = 0; i < dag.computations.size(); ++i) {
    const model::ComputationType& type = dag.type_of(static_cast<int>(i));
    const auto stage = static_cast<std::size_t>(type.stage);
    if (stage >= profile.accelerators.size()) profile.accelerators.resize(stage + 1, 1);
    profile.accelerators[stage] = dag.accelerators[dag.computations[i].rank];
  }
  for (const model::ComputationType& type : dag.types) {
    profile.entries.push_back({type.stage, type.instruction, {type.options.front()}});
  }
  return profile;
}

using Step = std::tuple<int, std::string, int>;  // stage, instruction, microbatch

std::vector<std::vector<Step>> steps_of(const model::ComputationDag& dag) {
  std::vector<std::vector<Step>> steps(dag.rank_order.size());
  for (int rank = 0; rank < dag.num_ranks(); ++rank) {
    for (const int i : dag.rank_order[rank]) {
      steps[rank].emplace_back(dag.type_of(i).stage, dag.type_of(i).instruction, dag.computations[i].microbatch);
    }
  }
  return steps;
}

std::set<std::pair<Step, Step>> transfers_of(const model::ComputationDag& dag) {
  std::set<std::pair<Step, Step>> all;
  const auto step = [&](int i) {
    return Step(dag.type_of(i).stage, dag.type_of(i).instruction, dag.computations[i].microbatch);
  };
  for (const model::Dependency& d : dag.dependencies) all.emplace(step(d.before), step(d.after));
  return all;
}

/// What is wrong with the noted schedule: empty if nothing. nullopt: it cannot be built again.
std::optional<std::string> schedule_fault(const model::ComputationDag& dag, const std::string& text) {
  const auto noted = noted_schedule(text);
  if (!noted || !model::schedule_named(noted->name) || noted->ranks < 1 || noted->stages % noted->ranks != 0) {
    return std::nullopt;
  }
  const auto schedule =
      model::make_schedule(noted->name, {noted->ranks, noted->microbatches, noted->stages / noted->ranks});
  if (!schedule) return schedule.error().message;
  const Result<model::ComputationDag> own =
      model::build_dag(shape_of(dag), *schedule, {dag.blocking_power, {}, false, false});
  if (!own) return own.error().message;
  if (steps_of(*own) != steps_of(dag)) return "the computations have another order";
  // Transfers that queue add dependencies.
  const auto expected = transfers_of(*own), found = transfers_of(dag);
  return std::ranges::includes(found, expected) ? "" : "the computations have other dependencies";
}

std::string sha256_of(const std::string& path) {
  for (const formats::FileRead& file : formats::files_read()) {
    if (file.path == path) return file.sha256;
  }
  return "";
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

std::vector<std::string> foreign_files(const fs::path& folder, std::span<const std::string> known) {
  std::vector<std::string> foreign;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (std::ranges::count(known, entry.path().filename().string()) > 0) continue;
    foreign.push_back(entry.path().string() + ", which is no file of 'perseus plan'");
  }
  std::ranges::sort(foreign);
  return foreign;
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
  const std::vector<PointFigures> figures = figures_of(file.dag, file.frontier, switch_latency);
  const Seconds min_dwell = noted_time(file, kMinDwellKey);
  for (const PointFigures& f : figures) {
    if (f.clock_changes == 0 || f.shortest_dwell >= (1 - kCsvTolerance) * min_dwell) continue;
    checked.findings.push_back(fmt::format("point {}: its shortest dwell is {:g} s, below {} = {:g}", f.point,
                                           f.shortest_dwell.value(), kMinDwellKey, min_dwell.value()));
  }
  checked.frontier_csv = check(beside("frontier.csv"), [&](const std::string& text) {
    return compare_csv(text, points_of(figures).csv(), beside("frontier.csv").string());
  });
  check_pages(file, path, switch_latency, rule, needed, checked);
  check_frequency_plans(file, path, needed, checked, progress);
  if (needed) {
    const std::vector<std::string> known = {"plans.json",   "plans",        "frontier.csv", "report.html",
                                            "frontier.svg", "timeline.svg", "trace.json"};
    std::ranges::move(foreign_files(path.parent_path(), known), std::back_inserter(checked.not_checked));
  }
  return checked;
}

CheckedMetadata check_metadata(const formats::PlanFile& file, const std::string& profile_path,
                               const profiling::PooledProfile* planned_with) {
  CheckedMetadata checked;
  const auto profile = file.metadata.find("profile");
  const std::string hash_key = "SHA-256 of " + (profile == file.metadata.end() ? "" : profile->second);
  const std::set<std::string> used_elsewhere{kSwitchLatencyKey,  kMinDwellKey, kSlowdownKey,
                                             kConfigurationsKey, kDerivedKey,  kOtherLinksKey};
  const auto expect = [&](const std::string& key, const std::string& noted, const std::string& own) {
    if (noted != own) checked.findings.push_back(fmt::format("metadata: {} '{}'; found: '{}'", key, noted, own));
  };
  if (planned_with != nullptr) {
    const auto noise = noise_fact(*planned_with);
    const auto noted = file.metadata.find(kNoiseKey);
    expect(kNoiseKey, noted == file.metadata.end() ? "" : noted->second, noise ? noise->value : "");
  }
  for (const auto& [key, value] : file.metadata) {
    const bool is_time = key == kSwitchLatencyKey || key == kMinDwellKey;
    if (is_time && formats::number_in<double>(value) != noted_time(file, key).value()) {
      checked.findings.push_back(fmt::format("metadata: {} '{}'; allowed: times", key, value));
    }
    if (used_elsewhere.contains(key)) continue;
    if (key == "blocking power") {
      const std::string own = fmt::format("{:g} W", file.dag.blocking_power.value());
      if (value != own + kGuessed) expect(key, value, own);
    } else if (key == "schedule") {
      const auto fault = schedule_fault(file.dag, value);
      if (!fault) {
        checked.not_checked.push_back(key);
      } else if (!fault->empty()) {
        checked.findings.push_back(fmt::format("metadata: schedule '{}': {}", value, *fault));
      }
    } else if (planned_with != nullptr && key == hash_key) {
      expect(key, value, sha256_of(profile_path));
    } else if (planned_with == nullptr || (key != kNoiseKey && key != "profile")) {
      checked.not_checked.push_back(key);
    }
  }
  return checked;
}

}  // namespace perseus::cli
