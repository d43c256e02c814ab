#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "io/formats/csv.h"
#include "io/formats/file.h"
#include "io/formats/number.h"
#include "plan/plan_output.h"
#include "planning/checker/verify_union.h"
#include "verify/verify_files.h"

namespace perseus::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigurations = "configurations.csv";

/// The rows of frontier.csv as claims, or what is wrong with them.
Result<std::vector<checker::UnionClaim>> read_claims(const std::string& text, const std::string& name,
                                                     const std::vector<PlannedConfiguration>& configurations) {
  formats::CsvReader csv(text, name);
  std::vector<checker::UnionClaim> claims;
  for (;;) {
    const Result<bool> more = csv.next();
    if (!more) return more.error();
    if (!*more) return claims;
    if (csv.line() == 1) continue;
    const auto& fields = csv.fields();
    if (fields.size() < 7) return csv.error("too few fields");
    const auto found = std::ranges::find(configurations, fields[1], &PlannedConfiguration::name);
    const auto point = formats::number_in<int>(fields[2]);
    const auto time = formats::number_in<double>(fields[3]), energy = formats::number_in<double>(fields[4]),
               effective = formats::number_in<double>(fields[5]), bound = formats::number_in<double>(fields[6]);
    if (found == configurations.end()) return csv.error(fmt::format("configuration '{}' is not one", fields[1]));
    if (!point || !time || !energy || !effective || !bound) return csv.error("not numbers");
    claims.push_back({static_cast<int>(found - configurations.begin()), *point, Seconds(*time), Joules(*energy),
                      Joules(*effective), Joules(*bound)});
  }
}

}  // namespace

bool is_search_directory(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path / kConfigurations, ignored);
}

Result<std::vector<std::string>> configurations_in(const fs::path& directory) {
  const std::string path = (directory / kConfigurations).string();
  const Result<std::string> text = formats::read_file(path);
  if (!text) return text.error();
  formats::CsvReader csv(*text, path);
  std::vector<std::string> names;
  for (;;) {
    const Result<bool> more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    if (csv.line() == 1) continue;
    const std::string name(csv.fields().front());
    if (!is_plan_output(name + "/plans.json") || name.find("..") != std::string::npos) {
      return csv.error(
          fmt::format("configuration '{}'; allowed: a schedule's name, with what was changed after '+'", name));
    }
    names.push_back(name);
  }
  if (names.empty()) return Error{ErrorCode::invalid_input, path + ": no configurations; at least one is needed"};
  return names;
}

std::vector<std::string> unlisted_configurations(const fs::path& directory, const std::vector<std::string>& names) {
  std::vector<std::string> findings;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!fs::exists(entry.path() / "plans.json", ignored) || std::ranges::find(names, name) != names.end()) continue;
    findings.push_back(fmt::format("{}: not in {}", entry.path().string(), kConfigurations));
  }
  std::ranges::sort(findings);
  return findings;
}

std::vector<std::string> check_search_files(const fs::path& directory,
                                            const std::vector<PlannedConfiguration>& configurations,
                                            const model::DefaultRule& rule) {
  std::vector<std::string> findings;
  std::vector<const model::Frontier*> frontiers;
  const Watts waiting = configurations.front().dag.total_blocking_power();
  for (const PlannedConfiguration& c : configurations) {
    frontiers.push_back(&c.frontier);
    if (c.dag.total_blocking_power() != waiting) {
      findings.push_back(fmt::format("{}: other accelerators or blocking power than {}: {} W and {} W; not comparable",
                                     c.name, configurations.front().name, c.dag.total_blocking_power().value(),
                                     waiting.value()));
    }
  }
  const SearchSummary summary = summarize_search(configurations, rule);
  const std::vector<SkippedConfiguration> left_out;
  const SearchReport report{"", {}, configurations, left_out, summary};
  const auto check = [&](const char* file, const std::string& expected) {
    const std::string name = (directory / file).string();
    const Result<std::string> text = formats::read_file(name);
    const std::string finding = text ? compare_csv(*text, expected, name) : text.error().message;
    if (!finding.empty()) findings.push_back(finding);
  };
  check(kConfigurations, configurations_csv(report));
  check("frontier.csv", points_of(report).csv());
  const std::string name = (directory / "frontier.csv").string();
  const Result<std::string> text = formats::read_file(name);
  if (!text) return findings;
  const Result<std::vector<checker::UnionClaim>> claims = read_claims(*text, name, configurations);
  if (!claims) {
    findings.push_back(claims.error().message);
    return findings;
  }
  for (std::string& finding : checker::verify_union(frontiers, waiting, *claims))
    findings.push_back(std::move(finding));
  return findings;
}

}  // namespace perseus::cli
