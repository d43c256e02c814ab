#include "server/openadr/vtn_reports.h"

#include <set>
#include <utility>

#include "base/percent_encode.h"

namespace perseus::openadr {

Result<std::vector<StoredReport>> VtnReports::reports(const std::string& event, const std::string& client_name) {
  std::vector<StoredReport> all;
  std::set<std::string> ids;
  const std::string target =
      "/reports?eventID=" + percent_encode(event) + "&clientName=" + percent_encode(client_name) + "&";
  const Status read = client_.visit_pages(target, [&](const std::string& body) -> Result<bool> {
    auto page = parse_reports(body, "GET /reports");
    if (!page) return page.error();
    bool any_new = false;
    for (StoredReport& report : *page) {
      if (!ids.insert(report.id).second) continue;
      any_new = true;
      all.push_back(std::move(report));
    }
    return any_new;
  });
  if (!read) return read.error();
  return all;
}

Status VtnReports::create(const std::string& report) {
  const auto reply = client_.call({"POST", "/reports", report});
  if (!reply) return reply.error();
  return Ok{};
}

Status VtnReports::replace(const std::string& id, const std::string& report) {
  const auto reply = client_.call({"PUT", "/reports/" + percent_encode(id), report});
  if (!reply) return reply.error();
  return Ok{};
}

}  // namespace perseus::openadr
