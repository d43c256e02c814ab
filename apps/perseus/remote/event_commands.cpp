// perseus event: lists the last events of a server's jobs, and who caused them.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "command_line/command.h"
#include "io/http/url.h"
#include "remote/server_action.h"
#include "remote/server_call.h"

namespace perseus::cli {
namespace {

ListForm event_form() {
  using Use = ListColumn::Use;
  using Kind = ListColumn::Kind;
  return {"events",
          {{"AGE", "at_s", Use::table, Kind::age},
           {"JOB", "job", Use::table, Kind::id},
           {"NAME", "name"},
           {"BY", "by"},
           {"EVENT", "text"},
           {"KIND", "kind", Use::wide},
           {"SEQUENCE", "sequence", Use::wide}},
          6};
}

}  // namespace

void add_event(CLI::App& app, Command& command) {
  auto* group = add_group(app, "event", "List the last events of a server's jobs, and who caused them",
                          "  perseus event list\n"
                          "  perseus event list --kind policy_set --by alice -o csv\n");
  struct Filter {
    std::string job, kind, by;
  };
  auto filter = std::make_shared<Filter>();
  auto* list =
      add_list_action(*group, command, "list",
                      "List the last events of all jobs, the last one first; not those that ranks cause again "
                      "and again",
                      event_form(), [filter](const http::HttpPeer& peer) -> Result<std::string> {
                        std::string target = "/v1/events/recent?limit=1000";
                        if (!filter->job.empty()) {
                          const auto job = job_meant(peer, filter->job);
                          if (!job) return job.error();
                          target += "&job=" + http::percent_encode(*job);
                        }
                        for (const auto& [name, value] : {std::pair("kind", filter->kind), {"by", filter->by}}) {
                          if (!value.empty()) target += fmt::format("&{}={}", name, http::percent_encode(value));
                        }
                        return call_pages(peer, {"GET", target, ""}, "events");
                      });
  add_value(*list, "--job JOB", filter->job, "Only events of this job, by its id or name");
  add_value(*list, "--kind KIND", filter->kind, "Only events of this kind, such as policy_set or plan_deployed");
  add_value(*list, "--by NAME", filter->by,
            "Only events that this token (its name), rank (rank 3) or the server caused");
}

}  // namespace perseus::cli
