// perseus host: lists the hosts of a server's jobs, with the clocks of their GPUs.
#include <memory>
#include <string>

#include "command_line/command.h"
#include "io/http/url.h"
#include "remote/server_action.h"
#include "remote/server_call.h"

namespace perseus::cli {
namespace {

ListForm host_form() {
  using Use = ListColumn::Use;
  using Kind = ListColumn::Kind;
  return {"hosts",
          {{"HOST", "host"},
           {"JOB", "job", Use::table, Kind::id},
           {"NAME", "job_name"},
           {"RANKS", "ranks"},
           {"NO CONTROL", "without_control", Use::roomy, Kind::count},
           {"LEAST WANTED", "wanted_least_mhz", Use::csv},
           {"WANTED", "wanted_most_mhz", Use::roomy, Kind::range, "wanted_least_mhz"},
           {"LEAST SET", "set_least_mhz", Use::csv},
           {"SET", "set_most_mhz", Use::table, Kind::range, "set_least_mhz"},
           {"FAILED", "clocks_failed"},
           {"LATE", "clocks_late", Use::roomy},
           {"THROTTLED", "throttled_iterations", Use::roomy},
           {"REPORTING", "reporting", Use::wide, Kind::count},
           {"SILENT", "silent", Use::wide, Kind::count},
           {"FIRST CALL", "first_heard_s", Use::wide, Kind::age},
           {"LAST CALL", "last_heard_s", Use::table, Kind::age},
           {"REASON", "control_reason", Use::wide}},
          3};
}

}  // namespace

void add_host(CLI::App& app, Command& command) {
  auto* group = add_group(app, "host", "List the hosts of a server's jobs, with the clocks of their GPUs",
                          "  perseus host list\n"
                          "  perseus host list --host node-1 --sort failed --reverse\n"
                          "  perseus job ranks JOB --host node-17\n");
  struct Filter {
    std::string host, job;
  };
  auto filter = std::make_shared<Filter>();
  auto* list = add_list_action(*group, command, "list", "List the hosts of live jobs, a row for each job on a host",
                               host_form(), [filter](const http::HttpPeer& peer) -> Result<std::string> {
                                 std::string target = "/v1/hosts?limit=5000";
                                 if (!filter->host.empty()) target += "&host=" + http::percent_encode(filter->host);
                                 if (!filter->job.empty()) {
                                   const auto job = job_meant(peer, filter->job);
                                   if (!job) return job.error();
                                   const auto shown = call_server(peer, {"GET", job_path(*job), ""});
                                   if (!shown) return shown.error();  // else an unknown job would have no hosts
                                   target += "&job=" + http::percent_encode(*job);
                                 }
                                 return call_pages(peer, {"GET", target, ""}, "hosts");
                               });
  add_value(*list, "--host PREFIX", filter->host, "Only hosts whose name begins with this");
  add_value(*list, "--job JOB", filter->job, "Only hosts of this job, by its id or name");
}

}  // namespace perseus::cli
