// perseus verify: checks whether the claims of a plan file are true.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <map>
#include <memory>

#include "base/terminal_text.h"
#include "command_line/command.h"
#include "command_line/progress.h"
#include "io/formats/profile_csv.h"
#include "io/report/format.h"
#include "plan/link_doubt.h"
#include "plan/pipeline.h"
#include "plan/plan_source.h"
#include "plan/slowdown.h"
#include "planning/checker/certificate_check.h"
#include "planning/checker/profile_match.h"
#include "planning/checker/verify_plan.h"
#include "planning/planner/exact.h"
#include "planning/planner/lower_bound.h"
#include "verify/verify_files.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kFindingsShown = 20;
constexpr double kCertifyingShare = 0.1, kPointsShare = 0.2;  // of the time, roughly; the rest: files
constexpr std::size_t kCertificateBytes = std::size_t{256} << 20;

struct VerifyArguments {
  std::string plans, profile;
  std::optional<double> noise_pct;
  int certificates = 1000;
  std::optional<bool> progress;
};

/// True for plans made with --switch-latency or --min-dwell.
bool has_clock_limits(const formats::PlanFile& file) {
  return noted_time(file, kSwitchLatencyKey) > Seconds(0) || noted_time(file, kMinDwellKey) > Seconds(0);
}

constexpr std::string_view kNotRecomputed =
    "not recomputed: clock_limit_cost_j, which compares with plans without clock limits (checked: plans.json has it "
    "too, "
    "at most the distance to the lower bound)\n";

constexpr std::string_view kOtherLinksNotChecked =
    "not checked: the other links that these plans keep their times with, which only constants.json has\n";

json::array not_recomputed_json(const formats::PlanFile& file) {
  json::array columns;
  if (has_clock_limits(file)) columns.emplace_back("clock_limit_cost_j");
  if (file.metadata.contains(kOtherLinksKey)) columns.emplace_back(kOtherLinksKey);
  return columns;
}

std::size_t bound_pieces(const formats::PlanFile& file) { return file.frontier.bound.vertices.size() - 1; }

/// At most that many of the bound's pieces, evenly spread, as many as fit into memory.
std::vector<Seconds> deadlines_worth_certifying(const formats::PlanFile& file, int limit) {
  const std::vector<Seconds> all = checker::deadlines_to_certify(file.frontier.bound);
  const std::size_t each = sizeof(double) * (file.dag.computations.size() + file.dag.dependencies.size());
  const std::size_t count = std::min({all.size(), static_cast<std::size_t>(limit), kCertificateBytes / (each + 1)});
  std::vector<Seconds> chosen;
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(all[i * all.size() / count]);
  return chosen;
}

/// As many points as can be simulated under every draw in some seconds: all, up to 1,500 computations or so.
std::size_t points_worth_expecting(const model::ComputationDag& dag) {
  constexpr std::size_t most_computations = 3'000'000;
  return std::max<std::size_t>(most_computations / dag.computations.size(), 2);
}

std::string findings_text(const std::vector<std::string>& findings) {
  std::string text;
  for (std::size_t i = 0; i < std::min(findings.size(), kFindingsShown); ++i) {
    text += terminal_text(findings[i]) + "\n";
  }
  if (findings.size() > kFindingsShown) text += fmt::format("... and {} more\n", findings.size() - kFindingsShown);
  return text;
}

/// What is claimed and not looked at, besides clock_limit_cost_j and other links.
std::vector<std::string> not_checked_in(const formats::PlanFile& file, const profiling::PooledProfile* planned_with,
                                        int certificates, bool coarser_bound) {
  std::vector<std::string> all;
  const std::size_t pieces = bound_pieces(file), points = file.frontier.points.size();
  if (static_cast<std::size_t>(certificates) < pieces) {
    all.push_back(fmt::format("{} of {} pieces of the lower bound (--certificates)",
                              pieces - static_cast<std::size_t>(certificates), pieces));
  }
  if (coarser_bound) { all.emplace_back("how close the lower bound is to the best one: its prices have other steps"); }
  if (planned_with == nullptr) {
    all.emplace_back("whether times, energies and error bars are those of a profile (--profile)");
  } else if (!planned_with->draws.empty()) {
    const std::size_t expected = points_worth_expecting(file.dag);
    if (expected < points) {
      all.push_back(fmt::format("lateness and error bars of {} of {} points", points - expected, points));
    }
    if (file.frontier.maximum_clock_noise == model::ProfileNoise{}) {
      all.emplace_back("expected times: the profile is noisy, and plans.json claims none");
    }
  }
  return all;
}

/// Where a bound is above the exact one: if anywhere, then at a vertex of one of the two.
std::vector<std::string> above_exact(const model::ComputationDag& dag, const model::LowerBound& claimed,
                                     const model::LowerBound& exact, double tolerance) {
  std::vector<std::string> findings;
  for (const model::LowerBound* bound : {&claimed, &exact}) {
    for (const model::BoundVertex& vertex : bound->vertices) {
      const Seconds deadline = std::max(vertex.time, claimed.t_min());
      const Joules most = exact.at((1 - 1e-9) * deadline);  // a cliff's position is known to a part in 10^9
      const Joules allowed = tolerance * (most + dag.total_blocking_power() * deadline);
      if (claimed.at(deadline) - most <= allowed) continue;
      findings.push_back(fmt::format("bound at {} s is {} J; the exact bound is {} J", deadline.value(),
                                     claimed.at(deadline).value(), most.value()));
    }
  }
  return findings;
}

/// A plan file and all findings about it.
struct CheckedPlans {
  formats::PlanFile file;
  bool with_profile = false;
  std::vector<std::string> not_checked;
  checker::Verification verified;
  CheckedFiles files;
  std::vector<std::string> findings;
};

Result<CheckedPlans> check_plans(const std::filesystem::path& path, const VerifyArguments& arguments,
                                 bool whole_directory, const profiling::PooledProfile* planned_with) {
  Result<formats::PlanFile> file = formats::read_plan_file(path.string());
  if (!file) return file.error();
  const model::ComputationDag& dag = file->dag;

  const std::vector<Seconds> deadlines = deadlines_worth_certifying(*file, arguments.certificates);
  ProgressLine progress("verifying", arguments.progress);
  const auto show = progress.callback();
  const auto part = [&show](double from, double share) -> std::function<void(double)> {
    if (!show) return {};
    return [=, &show](double done) { show(from + share * done); };
  };
  const planner::LowerBoundResult bound = planner::compute_lower_bound(dag, deadlines, part(0, kCertifyingShare));
  checker::VerifyOptions options;
  options.progress = part(kCertifyingShare, kPointsShare);
  options.switch_latency = noted_time(*file, kSwitchLatencyKey);
  const auto method = file->metadata.find("method");
  options.has_clock_limits = has_clock_limits(*file);
  options.reaches_both_ends = !options.has_clock_limits && !file->metadata.contains(kOtherLinksKey) &&
                              (method == file->metadata.end() || method->second == "exact");
  CheckedPlans checked;
  checked.verified = checker::verify_frontier(dag, file->frontier, bound.certificates, options);
  // The curve of a large DAG depends on the steps of prices of the version that made it. None is above the exact one.
  options.bound_may_be_lower = bound.price_step > Watts(0) &&
                               std::ranges::count(checked.verified.findings, "bound", &checker::Finding::quantity) > 0;
  if (options.bound_may_be_lower) {
    options.progress = {};
    const auto exact = planner::compute_lower_bound(dag, deadlines, {}, true);
    checked.verified = checker::verify_frontier(dag, file->frontier, exact.certificates, options);
    for (std::string& one : above_exact(dag, file->frontier.bound, exact.bound, options.bound_tolerance)) {
      checked.verified.findings.push_back({-1, "bound", 0, 0, std::move(one)});
    }
  }
  for (const checker::Finding& finding : checked.verified.findings) checked.findings.push_back(finding.message);
  checked.files = check_plan_files(*file, path, options.switch_latency, default_rule_of(*file), whole_directory,
                                   part(kCertifyingShare + kPointsShare, 1 - kCertifyingShare - kPointsShare));
  std::ranges::move(checked.files.findings, std::back_inserter(checked.findings));
  CheckedMetadata metadata = check_metadata(*file, arguments.profile, planned_with);
  std::ranges::move(metadata.findings, std::back_inserter(checked.findings));
  const bool derived = file->metadata.contains(kDerivedKey);
  if (derived) planned_with = nullptr;
  checked.with_profile = planned_with != nullptr;
  if (planned_with != nullptr) {
    std::ranges::move(checker::check_against_profile(dag, planned_with->profile), std::back_inserter(checked.findings));
    std::ranges::move(checker::check_expected(dag, file->frontier, planned_with->profile, planned_with->draws,
                                              points_worth_expecting(dag)),
                      std::back_inserter(checked.findings));
  }
  checked.not_checked = not_checked_in(*file, planned_with, checked.verified.certificates, options.bound_may_be_lower);
  std::ranges::copy(checked.files.not_checked, std::back_inserter(checked.not_checked));
  if (!metadata.not_checked.empty()) {
    checked.not_checked.push_back(fmt::format("what plans.json notes as {}", fmt::join(metadata.not_checked, ", ")));
  }
  if (derived) checked.not_checked.emplace_back("times and energies, which are derived from those of the profile");
  checked.file = *std::move(file);
  return checked;
}

Result<std::optional<profiling::PooledProfile>> profile_planned_with(const VerifyArguments& arguments) {
  if (arguments.profile.empty()) return std::optional<profiling::PooledProfile>();
  const Result<model::Profile> profile = formats::read_profile_csv(arguments.profile);
  if (!profile) return profile.error();
  return std::optional(pooled_by(*profile, arguments.noise_pct));
}

/// The result of checking a directory with several configurations.
struct CheckedSearch {
  std::vector<std::string> names;
  std::vector<CheckedPlans> plans;
  std::vector<std::string> findings;
  std::vector<std::string> not_checked;
  int not_compared = 0;  ///< with the profile: their times and energies are derived
};

/// Checks each configuration by itself.
Result<CheckedSearch> check_configurations(const VerifyArguments& arguments) {
  const Result<std::optional<profiling::PooledProfile>> profile = profile_planned_with(arguments);
  if (!profile) return profile.error();
  const std::filesystem::path folder = arguments.plans;
  Result<std::vector<std::string>> names = configurations_in(folder);
  if (!names) return names.error();
  CheckedSearch checked;
  checked.names = *std::move(names);
  for (const std::string& name : checked.names) {
    Result<CheckedPlans> one =
        check_plans(folder / name / "plans.json", arguments, true, *profile ? &**profile : nullptr);
    if (!one) return one.error();
    if (*profile && one->file.metadata.contains(kDerivedKey)) ++checked.not_compared;
    for (const std::string& finding : one->findings) checked.findings.push_back(fmt::format("{}: {}", name, finding));
    checked.plans.push_back(*std::move(one));
  }
  return checked;
}

/// What was not checked of each configuration, once what was not of all, and of the folder.
void collect_not_checked(const std::filesystem::path& folder, CheckedSearch& checked) {
  std::error_code ignored;
  for (const char* page : {"configurations.html", "configurations.svg"}) {
    const bool there = std::filesystem::exists(folder / page, ignored);
    checked.not_checked.push_back(there ? page : fmt::format("{}, which is missing", page));
  }
  std::vector<std::string> known = checked.names;
  for (const char* name : {"configurations.csv", "configurations.html", "configurations.svg", "frontier.csv"}) {
    known.emplace_back(name);
  }
  std::ranges::move(foreign_files(folder, known), std::back_inserter(checked.not_checked));
  std::map<std::string, std::vector<std::string>> configurations;  // by what was not checked of them
  for (std::size_t c = 0; c < checked.names.size(); ++c) {
    for (const std::string& one : checked.plans[c].not_checked) configurations[one].push_back(checked.names[c]);
  }
  for (const auto& [one, of] : configurations) {
    checked.not_checked.push_back(of.size() == checked.names.size() ? one
                                                                    : fmt::format("{}: {}", fmt::join(of, ", "), one));
  }
}

/// Compares the configurations with each other and with the files about all of them.
void check_union(const std::filesystem::path& folder, CheckedSearch& checked) {
  const std::size_t count = checked.names.size();
  std::vector<PlannedConfiguration> planned;
  for (std::size_t c = 0; c < count; ++c) {
    const formats::PlanFile& file = checked.plans[c].file;
    planned.push_back({checked.names[c], "", file.dag, file.frontier, {}, {}});
    const auto noted_count = file.metadata.find(kConfigurationsKey);
    if (noted_count == file.metadata.end() || noted_count->second.starts_with(fmt::format("{} planned,", count))) {
      continue;
    }
    checked.findings.push_back(fmt::format("{}: plans.json notes '{}'; configurations.csv has {}", checked.names[c],
                                           noted_count->second, count));
  }
  std::ranges::move(unlisted_configurations(folder, checked.names), std::back_inserter(checked.findings));
  std::ranges::move(check_search_files(folder, planned, default_rule_of(checked.plans.front().file)),
                    std::back_inserter(checked.findings));
}

json::array configurations_json(const CheckedSearch& checked) {
  json::array configurations;
  for (std::size_t c = 0; c < checked.names.size(); ++c) {
    const checker::Verification& v = checked.plans[c].verified;
    configurations.push_back(json::object{{"name", checked.names[c]},
                                          {"points", v.points},
                                          {"plan_files", checked.plans[c].files.frequency_plans},
                                          {"certificates", v.certificates},
                                          {"bound_pieces", bound_pieces(checked.plans[c].file)},
                                          {"worst_relative_error", v.worst_error},
                                          {"gap_mean_pct", v.mean_gap_pct},
                                          {"gap_max_pct", v.max_gap_pct}});
  }
  return configurations;
}

json::array list_of(const std::vector<std::string>& lines) { return json::array(lines.begin(), lines.end()); }

/// What was not recomputed, and the lines of what was not looked at.
std::string not_checked_text(const formats::PlanFile& file, const std::vector<std::string>& not_checked) {
  std::string text;
  if (has_clock_limits(file)) text += kNotRecomputed;
  if (file.metadata.contains(kOtherLinksKey)) text += kOtherLinksNotChecked;
  for (const std::string& one : not_checked) text += fmt::format("not checked: {}\n", one);
  return text;
}

std::string verdict_text(const std::vector<std::string>& findings) {
  return findings.empty() ? "verified: all claims hold\n"
                          : fmt::format("NOT verified: {} claims do not hold\n", findings.size());
}

std::string checked_text(const CheckedSearch& checked) {
  std::string text = findings_text(checked.findings);
  for (std::size_t c = 0; c < checked.names.size(); ++c) {
    const checker::Verification& v = checked.plans[c].verified;
    text += fmt::format("{}: {} points simulated, {} plan files compared, {} of {} pieces of the bound proven\n",
                        checked.names[c], v.points, checked.plans[c].files.frequency_plans, v.certificates,
                        bound_pieces(checked.plans[c].file));
  }
  if (checked.not_compared > 0) {
    text += fmt::format("{} configurations have derived times and energies: not compared with the profile\n",
                        checked.not_compared);
  }
  return text +
         "compared with the configurations: configurations.csv, frontier.csv (every point, and none better left "
         "out)\n" +
         not_checked_text(checked.plans.front().file, checked.not_checked) + verdict_text(checked.findings);
}

json::object checked_json(const CheckedSearch& checked, bool with_profile) {
  return {{"ok", checked.findings.empty()},
          {"findings", list_of(checked.findings)},
          {"configurations", configurations_json(checked)},
          {"not_recomputed", not_recomputed_json(checked.plans.front().file)},
          {"not_checked", list_of(checked.not_checked)},
          {"profile", with_profile},
          {"not_compared_with_profile", checked.not_compared}};
}

/// A directory with several configurations: checks each of them, and their union.
Result<int> run_verify_search(const VerifyArguments& arguments, bool as_json) {
  Result<CheckedSearch> checked = check_configurations(arguments);
  if (!checked) return checked.error();
  check_union(arguments.plans, *checked);
  collect_not_checked(arguments.plans, *checked);
  as_json ? print_json(checked_json(*checked, !arguments.profile.empty())) : print(checked_text(*checked));
  return checked->findings.empty() ? 0 : 1;
}

std::string checked_text(const CheckedPlans& checked) {
  const auto& [file, with_profile, not_checked, verified, files, findings] = checked;
  return findings_text(findings) +
         fmt::format("{} points simulated from their clocks, {} plan files compared: largest relative error {:.2g}\n",
                     verified.points, files.frequency_plans, verified.worst_error) +
         fmt::format("compared with plans.json: {}{}{}{}{}\n", files.frontier_csv ? "frontier.csv" : "no frontier.csv",
                     files.report ? ", report.html" : ", no report.html",
                     files.trace ? ", trace.json" : ", no trace.json", files.pictures ? ", pictures" : "",
                     with_profile ? ", all options with the profile" : "") +
         fmt::format("lower bound: {} of its {} pieces proven by a dual certificate, largest mismatch {:.2g}\n",
                     verified.certificates, bound_pieces(file), verified.worst_mismatch) +
         fmt::format("fastest plan {}, all-maximum-clock {}, least possible {}\n",
                     report::text_of(verified.fastest_time), report::text_of(verified.max_clock_makespan),
                     report::text_of(verified.least_makespan)) +
         not_checked_text(file, not_checked) + verdict_text(findings);
}

json::object checked_json(const CheckedPlans& checked) {
  const auto& [file, with_profile, not_checked, verified, files, findings] = checked;
  return {{"ok", findings.empty()},
          {"findings", list_of(findings)},
          {"points", verified.points},
          {"plan_files", files.frequency_plans},
          {"frontier_csv", files.frontier_csv},
          {"report", files.report},
          {"trace", files.trace},
          {"pictures", files.pictures},
          {"profile", with_profile},
          {"not_recomputed", not_recomputed_json(file)},
          {"not_checked", list_of(not_checked)},
          {"certificates", verified.certificates},
          {"bound_pieces", bound_pieces(file)},
          {"worst_relative_error", verified.worst_error},
          {"worst_bound_mismatch", verified.worst_mismatch},
          {"fastest_time_s", verified.fastest_time.value()},
          {"slowest_time_s", verified.slowest_time.value()},
          {"least_makespan_s", verified.least_makespan.value()},
          {"all_maximum_clock_time_s", verified.max_clock_makespan.value()},
          {"gap_mean_pct", verified.mean_gap_pct},
          {"gap_max_pct", verified.max_gap_pct}};
}

Result<int> run_verify(const VerifyArguments& arguments, bool as_json) {
  if (is_search_directory(arguments.plans)) return run_verify_search(arguments, as_json);
  const std::filesystem::path path = plan_file_path(arguments.plans);
  const Result<std::optional<profiling::PooledProfile>> profile = profile_planned_with(arguments);
  if (!profile) return profile.error();
  const bool whole_directory = path != std::filesystem::path(arguments.plans);
  const Result<CheckedPlans> checked = check_plans(path, arguments, whole_directory, *profile ? &**profile : nullptr);
  if (!checked) return checked.error();
  as_json ? print_json(checked_json(*checked)) : print(checked_text(*checked));
  return checked->findings.empty() ? 0 : 1;
}

}  // namespace

void add_verify(CLI::App& app, Command& command) {
  auto* verify =
      app.add_subcommand("verify", "Check plans without the planner: recompute every claim from the measurements");
  auto arguments = std::make_shared<VerifyArguments>();
  verify->add_option("PLANS", arguments->plans, "A directory that 'perseus plan --out' wrote, or its plans.json")
      ->required();
  add_value(*verify, "--profile FILE.csv", arguments->profile,
            "Profile of the plans: check that their times and energies are its measurements");
  add_noise_option(*verify, arguments->noise_pct)->needs("--profile");
  add_default(*verify, "--certificates N", arguments->certificates,
              "Largest number of pieces of the lower bound to prove, each by a dual certificate",
              whole_number_within(0, 1000000000));
  add_progress_flag(*verify, arguments->progress);
  verify->footer(help_footer(kFileErrors, "  perseus verify plans\n  perseus verify plans --profile gpt3.csv\n") +
                 "   1  a claim does not hold\n");
  set_run(*verify, command, arguments, run_verify);
}

}  // namespace perseus::cli
