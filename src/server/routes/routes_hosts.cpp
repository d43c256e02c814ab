// Calls of /v1 about the ranks of jobs as operators see them: one job's ranks, and the hosts of all live jobs.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "io/http/url.h"
#include "server/jobs/describe_view.h"
#include "server/routes/call_input.h"
#include "server/views/job_list.h"

namespace perseus::routes {
namespace {

using views::JobList;

constexpr std::size_t kMostPageRanks = 1000;
constexpr std::size_t kPageHosts = 1000, kMostPageHosts = 5000;
/// What one request may look at; the next page continues.
constexpr std::size_t kMostJobs = 100;
constexpr int kMostRanks = 65536;

/// Where a page begins: after all hosts of that job, or after one of them.
struct HostCursor {
  JobList::Place place;
  std::optional<std::string> host;
};

/// A job's cursor, and "/HOST" where hosts of that job follow; each percent-encoded.
std::string format_host_cursor(const HostCursor& cursor) {
  const std::string job = http::percent_encode(views::format_cursor(cursor.place));
  return cursor.host ? job + "/" + http::percent_encode(*cursor.host) : job;
}

std::optional<HostCursor> parse_host_cursor(std::string_view text) {
  const std::vector<std::string> parts = http::path_segments("/" + std::string(text));
  if (parts.empty() || parts.size() > 2) return std::nullopt;
  const auto place = views::parse_cursor(parts[0]);
  if (!place) return std::nullopt;
  return HostCursor{*place, parts.size() == 2 ? std::optional(parts[1]) : std::nullopt};
}

/// A page of hosts, while the jobs are read one after the other.
struct HostScan {
  explicit HostScan(Call asked) : call(std::move(asked)) {}
  Call call;
  std::string prefix;
  std::size_t limit = 0;
  struct JobAt {
    JobList::Place place;
    int ranks = 0;
  };
  std::vector<JobAt> jobs;
  std::optional<std::string> after;  ///< hosts of the first job that the previous page had
  bool more_jobs = false;
  std::size_t next_job = 0;
  int ranks = 0;  ///< looked at
  std::vector<std::string> rows;

  [[nodiscard]] bool is_full() const { return rows.size() >= limit || ranks >= kMostRanks; }
  void answer(const std::optional<HostCursor>& next) const {
    call.answer(json_object([&](JsonWriter& f) {
      f.always("hosts", JsonList{rows, [](const std::string& row) { return JsonRaw{row}; }});
      if (next) f.always("next", format_host_cursor(*next));
    }));
  }
};

void take_hosts(HostScan& scan, const std::string& job, const jobs::HostPage& page) {
  for (const jobs::HostView& host : page.hosts)
    scan.rows.push_back(json_text(jobs::HostShown{job, page.job_name, host}));
}

void read_next_job(service::Service& service, const std::shared_ptr<HostScan>& scan) {
  if (scan->next_job == scan->jobs.size() || scan->is_full()) {
    const bool over = scan->next_job == scan->jobs.size() && !scan->more_jobs;
    if (over || scan->next_job == 0) return scan->answer(std::nullopt);
    return scan->answer(HostCursor{scan->jobs[scan->next_job - 1].place, std::nullopt});
  }
  const HostScan::JobAt at = scan->jobs[scan->next_job++];
  scan->ranks += at.ranks;
  jobs::HostQuery query{at.place.job, scan->prefix, std::exchange(scan->after, std::nullopt),
                        scan->limit - scan->rows.size()};
  service.reads.hosts(std::move(query), [&service, scan, at](const Result<jobs::HostPage>& page) {
    // Others were deleted meanwhile, or are damaged.
    if (!page && page.error().code == ErrorCode::unavailable) return scan->call.fail(page.error());
    if (page) take_hosts(*scan, at.place.job, *page);
    if (page && page->more) return scan->answer(HostCursor{at.place, page->hosts.back().host});
    read_next_job(service, scan);
  });
}

}  // namespace

void Api::list_ranks(Call call) {
  Parameters parameters(call.request);
  jobs::RankQuery query{call.parts[0]};
  query.after = parameters.take<int>("after", "'next' of the previous page").value_or(-1);
  query.limit = static_cast<int>(parameters.limit("ranks", kMostPageRanks, kMostPageRanks));
  query.host = parameters.text("host").value_or("");
  if (const auto error = parameters.error()) return call.fail(*error);
  service_.reads.ranks(std::move(query), then<jobs::RankPage>(call, json_text<jobs::RankPage>));
}

void Api::list_hosts(Call call) {
  const auto scan = std::make_shared<HostScan>(std::move(call));
  const Call& asked = scan->call;
  Parameters parameters(asked.request);
  scan->limit = parameters.limit("hosts", kPageHosts, kMostPageHosts);
  const auto after = parameters.after(parse_host_cursor);
  const auto only_job = parameters.text("job");
  scan->prefix = parameters.text("host").value_or("");
  if (const auto error = parameters.error()) return asked.fail(*error);
  JobList::Query query{kMostJobs, std::nullopt, {}};
  query.wanted = [&](const JobList::Place& place, const JobList::Row& row) {
    return row.is_live && row.state != views::kDamagedState && (!only_job || *only_job == place.job) &&
           reaches(asked.identity, place.job) == true;
  };
  if (after) {
    query.after = after->place;
    const JobList::Row* const row = after->host ? service_.list.list().find(after->place.job) : nullptr;
    if (row != nullptr && query.wanted(after->place, *row)) {
      scan->jobs.push_back({after->place, row->ranks});
      scan->after = after->host;
    }
  }
  const JobList::Page found = service_.list.list().page(query);
  for (const auto& [place, row] : found.rows) scan->jobs.push_back({*place, row->ranks});
  scan->more_jobs = found.next.has_value();
  read_next_job(service_, scan);
}

}  // namespace perseus::routes
