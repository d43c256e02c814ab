#include "site/site_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/terminal_text.h"
#include "base/utf8.h"
#include "command_line/origin.h"
#include "command_line/terminal_size.h"
#include "io/report/format.h"
#include "io/report/table.h"
#include "remote/answer_members.h"
#include "remote/server_call.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostFalls = 5;
constexpr std::size_t kGap = 2, kLeastName = 16;  // columns: of a table's gaps, and that a name always gets
constexpr double kRounding = 1 + 1e-6;

std::string shown_in(const json::value& row, std::string_view member) { return terminal_text(text_in(row, member)); }

std::string watts_text(std::optional<double> watts) {
  return watts ? report::text_of(Watts(*watts)) : std::string("-");
}

std::string duration_text(double s) { return member_text("duration_s", json::value(s)); }

bool exceeds(std::optional<double> watts, std::optional<double> limit) {
  return watts && limit && *watts > *limit * kRounding;
}

/// What is wrong with a domain; empty: nothing.
std::vector<std::string> faults_of(const json::value& domain) {
  std::vector<std::string> faults;
  const std::string name = shown_in(domain, "name");
  const auto limit = number_in(domain, "limit_w"), counted = number_in(domain, "counted_w");
  const auto metered = number_in(domain, "metered_w"), metered_limit = number_in(domain, "metered_limit_w");
  if (exceeds(counted, limit)) {
    faults.push_back(fmt::format("{}: its jobs may draw {}, {} above its limit", name, watts_text(counted),
                                 watts_text(*counted - *limit)));
  }
  const auto reported = number_in(domain, "reported_w");
  if (exceeds(reported, limit)) {
    faults.push_back(fmt::format("{}: its jobs report {}, {} above its limit", name, watts_text(reported),
                                 watts_text(*reported - *limit)));
  }
  if (exceeds(metered, metered_limit)) {
    faults.push_back(fmt::format("{}: the meter reads {}, {} above its limit (for 5 min at most)", name,
                                 watts_text(metered), watts_text(*metered - *metered_limit)));
  }
  if (const auto refused = number_in(domain, "meter_refused_w")) {
    faults.push_back(
        fmt::format("{}: the meter reads {}, which cannot be true: the reading is refused", name, watts_text(refused)));
  }
  if (const auto missing = number_in(domain, "missing_w"); missing && *missing > 0) {
    const bool tiers_give = !list_in(domain, "gives").empty();
    faults.push_back(fmt::format("{}: {} are missing for {}", name, watts_text(missing),
                                 tiers_give ? "the least rates of its jobs" : "what no grant controls"));
  }
  return faults;
}

std::string verdict_text(const json::array& domains, std::size_t unread_jobs) {
  std::vector<std::string> faults;
  if (unread_jobs > 0) {
    faults.push_back(
        fmt::format("{} running job{} not read yet after a start of the server: what {} may draw does not "
                    "count, and no grant rises",
                    unread_jobs, unread_jobs == 1 ? " is" : "s are", unread_jobs == 1 ? "it" : "they"));
  }
  std::size_t limited = 0;
  for (const json::value& domain : domains) {
    limited += number_in(domain, "limit_w") ? 1 : 0;
    for (std::string& fault : faults_of(domain)) faults.push_back(std::move(fault));
  }
  if (limited == 0) return "no domain has a limit now\n";
  if (faults.empty()) {
    return fmt::format("safe: what counts is within the limit of {}\n",
                       limited == 1 ? std::string("1 domain") : fmt::format("all {} domains that have one", limited));
  }
  std::string text;
  for (const std::string& fault : faults) text += "not safe: " + fault + "\n";
  return text;
}

std::size_t depth_of(const json::array& domains, const json::value& domain) {
  std::map<std::string, std::string> parents;
  for (const json::value& one : domains) parents[shown_in(one, "name")] = shown_in(one, "parent");
  std::size_t depth = 0;
  for (std::string parent = shown_in(domain, "parent"); !parent.empty() && depth < domains.size();
       parent = parents[parent]) {
    ++depth;
  }
  return depth;
}

std::string name_of_job(const json::value& job) {
  const std::string name = shown_in(job, "name");
  return name.empty() ? shown_in(job, "job") : name;
}

/// "2 min", of a job; "1 rank"; empty: it is heard.
std::string silence_text(const json::value& job, double now_s) {
  if (const auto since_s = number_in(job, "silent_since_s")) return duration_text(now_s - *since_s);
  const auto ranks = number_in(job, "silent_ranks");
  return ranks ? fmt::format("{:g} rank{}", *ranks, *ranks == 1 ? "" : "s") : "";
}

/// A row of the screen: its cells by column.
using ScreenRow = std::array<std::string, 8>;
constexpr ScreenRow::size_type kMetered = 4, kReported = 5, kSilent = 7;

void add_jobs(const json::array& jobs, const std::string& domain, const std::string& indent, bool wide, double now_s,
              std::vector<ScreenRow>& rows) {
  std::vector<const json::value*> below;
  for (const json::value& job : jobs) {
    if (shown_in(job, "domain") == domain) below.push_back(&job);
  }
  std::ranges::stable_sort(below, std::greater<>(),
                           [](const json::value* job) { return number_in(*job, "counted_w").value_or(0); });
  const std::size_t shown = wide ? below.size() : std::min(below.size(), kMostJobs);
  for (std::size_t k = 0; k < shown; ++k) {
    const json::value& job = *below[k];
    rows.push_back({indent + name_of_job(job), shown_in(job, "state"), watts_text(number_in(job, "granted_w")),
                    watts_text(number_in(job, "counted_w")), "", watts_text(number_in(job, "reported_w")),
                    fmt::format("{:.0f} %", 100 * number_in(job, "least_rate").value_or(0)), silence_text(job, now_s)});
  }
  if (shown == below.size()) return;
  double rest_w = 0;
  for (std::size_t k = shown; k < below.size(); ++k) rest_w += number_in(*below[k], "counted_w").value_or(0);
  rows.push_back({indent + fmt::format("{} more jobs", below.size() - shown), "", "", watts_text(rest_w)});
}

/// Without what no row has, and with names cut to the terminal.
std::string screen_text(std::vector<ScreenRow> rows, std::size_t columns) {
  const ScreenRow titles{"DOMAIN, JOB", "STATE", "LIMIT, GRANT", "COUNTED", "METERED", "REPORTED", "TIER", "SILENT"};
  const auto is_shown = [&](ScreenRow::size_type column) {
    const bool optional = column == kMetered || column == kReported || column == kSilent;
    return !optional || std::ranges::any_of(rows, [&](const ScreenRow& row) { return row[column].size() > 1; });
  };
  const auto cells_of = [&](const ScreenRow& row) {
    std::vector<std::string> cells;
    for (ScreenRow::size_type column = 0; column < row.size(); ++column) {
      if (is_shown(column)) cells.push_back(row[column]);
    }
    return cells;
  };
  std::size_t others = 0;
  for (ScreenRow::size_type column = 1; column < titles.size(); ++column) {
    if (!is_shown(column)) continue;
    std::size_t width = display_columns(titles[column]);
    for (const ScreenRow& row : rows) width = std::max(width, display_columns(row[column]));
    others += kGap + width;
  }
  const std::size_t room = std::max(kLeastName, columns - std::min(columns, others));
  for (ScreenRow& row : rows) row.front() = cut_line(row.front(), room);
  report::TextTable table(cells_of(titles), 2);
  for (const ScreenRow& row : rows) table.add(cells_of(row));
  return table.to_string();
}

std::string falls_text(const json::array& domains, double now_s) {
  std::vector<const json::value*> falling;
  for (const json::value& domain : domains) {
    if (number_in(domain, "falls_at_s")) falling.push_back(&domain);
  }
  std::ranges::stable_sort(falling, {}, [](const json::value* domain) { return *number_in(*domain, "falls_at_s"); });
  std::string text;
  for (std::size_t k = 0; k < std::min(falling.size(), kMostFalls); ++k) {
    const double at_s = *number_in(*falling[k], "falls_at_s");
    text += fmt::format("next: the metered limit of {} falls to {} in {} ({})\n", shown_in(*falling[k], "name"),
                        watts_text(number_in(*falling[k], "falls_to_w")), duration_text(at_s - now_s),
                        member_text("at_s", json::value(at_s)));
  }
  return text.empty() ? "next: no limit falls\n" : text;
}

std::string things_to_do(const json::array& domains, const json::array& jobs, std::size_t unread_jobs, double now_s) {
  std::string text;
  if (unread_jobs > 0) text += "do: perseus job list --state damaged   # if that lasts: perseus job delete JOB\n";
  for (const json::value& job : jobs) {
    const auto since_s = number_in(job, "silent_since_s");
    if (number_in(job, "silent_ranks")) {
      text += fmt::format("do: perseus job ranks {}   # {}: {}; counts as {}\n", shown_in(job, "job"), name_of_job(job),
                          shown_in(job, "reason"), watts_text(number_in(job, "counted_w")));
    }
    if (!since_s) continue;
    text += fmt::format("do: perseus job finish {}   # if {} has ended: no call for {}, counts as {}\n",
                        shown_in(job, "job"), name_of_job(job), duration_text(now_s - *since_s),
                        watts_text(number_in(job, "counted_w")));
  }
  for (const json::value& domain : domains) {
    const std::string name = shell_word(shown_in(domain, "name"));
    const bool is_meter_wrong = number_in(domain, "meter_refused_w").has_value();
    if (is_meter_wrong)
      text += fmt::format("do: perseus site meter {} WATTS   # watts, of a meter that is right\n", name);
    if (faults_of(domain).size() > (is_meter_wrong ? 1 : 0))
      text += fmt::format("do: perseus site limit {} WATTS\n", name);
  }
  return text;
}

}  // namespace

std::string site_status_text(const json::value& power, bool wide, double now_s, std::size_t columns) {
  const json::array &domains = list_in(power, "domains"), &jobs = list_in(power, "jobs");
  const auto unread_jobs = static_cast<std::size_t>(number_in(power, "unread_jobs").value_or(0));
  std::vector<ScreenRow> rows;
  for (const json::value& domain : domains) {
    const std::string indent(2 * depth_of(domains, domain), ' ');
    const auto limit = number_in(domain, "limit_w");
    const bool is_safe = unread_jobs == 0 && faults_of(domain).empty();
    const auto metered = number_in(domain, "metered_w"), metered_limit = number_in(domain, "metered_limit_w");
    rows.push_back(
        {indent + shown_in(domain, "name"),
         !limit    ? "no limit"
         : is_safe ? "safe"
                   : "not safe",
         watts_text(limit), watts_text(number_in(domain, "counted_w")),
         metered && metered_limit ? watts_text(metered) + " of " + watts_text(metered_limit) : watts_text(metered),
         watts_text(number_in(domain, "reported_w"))});
    add_jobs(jobs, shown_in(domain, "name"), indent + "  ", wide, now_s, rows);
  }
  return verdict_text(domains, unread_jobs) + screen_text(std::move(rows), wide ? std::string::npos : columns) +
         falls_text(domains, now_s) + things_to_do(domains, jobs, unread_jobs, now_s);
}

}  // namespace perseus::cli
