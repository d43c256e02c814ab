// perseus alert: lists a server's alerts.
#include <memory>
#include <string>

#include "command_line/command.h"
#include "io/http/url.h"
#include "remote/server_action.h"
#include "remote/server_call.h"

namespace perseus::cli {
namespace {

ListForm alert_form() {
  using Use = ListColumn::Use;
  using Kind = ListColumn::Kind;
  return {"alerts",
          {{"ALERT", "alert"},
           {"JOB", "job", Use::table, Kind::id},
           {"NAME", "name"},
           {"DOMAIN", "domain"},
           {"REASON", "text"},
           {"SINCE", "since_s", Use::wide, Kind::age},
           {"RAISED", "raised_at_s", Use::table, Kind::age}},
          5};
}

}  // namespace

void add_alert(CLI::App& app, Command& command) {
  auto* group = add_group(app, "alert", "List a server's alerts",
                          "  perseus alert list\n"
                          "  perseus alert list --kind over_power -o csv\n");
  struct Filter {
    std::string job, kind;
  };
  auto filter = std::make_shared<Filter>();
  auto* list = add_list_action(*group, command, "list", "List the raised alerts, the last one first", alert_form(),
                               [filter](const http::HttpPeer& peer) -> Result<std::string> {
                                 std::string target = "/v1/alerts?limit=1000";
                                 if (!filter->kind.empty()) target += "&alert=" + http::percent_encode(filter->kind);
                                 if (!filter->job.empty()) {
                                   const auto job = job_meant(peer, filter->job);
                                   if (!job) return job.error();
                                   target += "&job=" + http::percent_encode(*job);
                                 }
                                 return call_pages(peer, {"GET", target, ""}, "alerts");
                               });
  add_value(*list, "--job JOB", filter->job, "Only alerts of this job, by its id or name");
  add_value(*list, "--kind KIND", filter->kind,
            "Only profiling_stuck, no_permission, plan_not_kept, over_power, site_over_limit, watts_missing, "
            "limits_unread or job_silent");
}

}  // namespace perseus::cli
