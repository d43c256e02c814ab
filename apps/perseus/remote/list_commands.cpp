// perseus alert, event and host: lists of a server, of which options choose rows.
#include "command_line/command.h"
#include "remote/server_action.h"
#include "server/jobs/alert.h"

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

void add_alert(CLI::App& app, Command& command) {
  auto* group = add_group(app, "alert", "List a server's alerts",
                          "  perseus alert list\n"
                          "  perseus alert list --kind over_power -o csv\n");
  add_filtered_list(*group, command, "List the raised alerts, the last one first", alert_form(),
                    "/v1/alerts?limit=1000",
                    {{"--job JOB", "job", "Only alerts of this job, by its id or name", ListFilter::Of::job},
                     {"--kind KIND", "alert", "Only " + jobs::list_of_alerts(" or ")}});
}

void add_event(CLI::App& app, Command& command) {
  auto* group = add_group(app, "event", "List the last events of a server's jobs, and who caused them",
                          "  perseus event list\n"
                          "  perseus event list --kind policy_set --by alice -o csv\n");
  add_filtered_list(
      *group, command,
      "List the last events of all jobs, the last one first; not those that ranks cause again and again", event_form(),
      "/v1/events/recent?limit=1000",
      {{"--job JOB", "job", "Only events of this job, by its id or name", ListFilter::Of::job},
       {"--kind KIND", "kind", "Only events of this kind, such as policy_set or plan_deployed"},
       {"--by NAME", "by", "Only events that this token (its name), rank (rank 3) or the server caused"}});
}

void add_host(CLI::App& app, Command& command) {
  auto* group = add_group(app, "host", "List the hosts of a server's jobs, with the clocks of their GPUs",
                          "  perseus host list\n"
                          "  perseus host list --host node-1 --sort failed --reverse\n"
                          "  perseus job ranks JOB --host node-17\n");
  add_filtered_list(*group, command, "List the hosts of live jobs, a row for each job on a host", host_form(),
                    "/v1/hosts?limit=5000",
                    {{"--host PREFIX", "host", "Only hosts whose name begins with this"},
                     {"--job JOB", "job", "Only hosts of this job, by its id or name", ListFilter::Of::known_job}});
}

}  // namespace perseus::cli
