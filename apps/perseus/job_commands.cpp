// perseus job: lists, shows, finishes and deletes a server's jobs.
#include <memory>

#include "command.h"
#include "io/http/url.h"
#include "server_action.h"
#include "server_call.h"

namespace perseus::cli {
namespace {

ListForm job_form() {
  using Use = ListColumn::Use;
  using Kind = ListColumn::Kind;
  return {"jobs",
          {{"ID", "id", Use::table, Kind::id},
           {"NAME", "name"},
           {"STATE", "state"},
           {"REGISTERED", "ranks_registered", Use::csv},
           {"RANKS", "ranks", Use::table, Kind::parts, "ranks_registered"},
           {"PIPELINES", "pipelines", Use::wide, Kind::count},
           {"ITERATION", "iteration_time_s"},
           {"PLAN SAVES", "saved_pct", Use::table, Kind::estimate},
           {"SAVED", "saved_j", Use::table, Kind::estimate, "estimated_saved_j"},
           {"STRAGGLERS", "stragglers", Use::table, Kind::count},
           {"LABELS", "labels", Use::wide, Kind::pairs},
           {"CHANGED", "updated_at_s", Use::wide, Kind::age},
           {"AGE", "created_at_s", Use::table, Kind::age}},
          3};
}

void add_job_list(CLI::App& group, Command& command) {
  struct Filter {
    std::string state, search, selector;
  };
  auto filter = std::make_shared<Filter>();
  auto* list = add_list_action(group, command, "list", "List jobs, newest first", job_form(),
                               [filter](const http::HttpPeer& peer) {
                                 std::string target = "/v1/jobs?limit=1000";
                                 if (!filter->state.empty()) target += "&state=" + http::percent_encode(filter->state);
                                 if (!filter->search.empty())
                                   target += "&search=" + http::percent_encode(filter->search);
                                 if (!filter->selector.empty())
                                   target += "&selector=" + http::percent_encode(filter->selector);
                                 return call_pages(peer, {"GET", target, ""}, "jobs");
                               });
  list->add_option("--state", filter->state, "Only jobs in this state")->type_name("STATE");
  list->add_option("--search", filter->search, "Only jobs with this text in their name or id")->type_name("TEXT");
  list->add_option("--selector", filter->selector,
                   "Only jobs with these labels: NAME=VALUE, NAME!=VALUE or NAME, separated by commas")
      ->type_name("LABELS");
}

}  // namespace

void add_job(CLI::App& app, Command& command) {
  auto* group = add_group(app, "job", "Show, finish and delete a server's jobs",
                          "  perseus job list --state deployed --sort saved --reverse\n"
                          "  perseus job list --selector team=vision,model=gpt3 -o wide\n"
                          "  perseus job show JOB --server http://planner:7787\n");
  add_job_list(*group, command);
  auto job = std::make_shared<std::string>();
  const auto add = [&](const std::string& name, const std::string& meaning, std::function<http::HttpCall()> make) {
    add_action(*group, command, name, meaning, std::move(make), job)->add_option("JOB", *job, kJobMeaning)->required();
  };
  add("show", "Show a job's state, plan and its reason, stragglers and savings", [job] {
    return http::HttpCall{"GET", job_path(*job), ""};
  });
  add("delete", "Delete an ended job and its log permanently", [job] {
    return http::HttpCall{"DELETE", job_path(*job), ""};
  });
  add("finish", "Mark a job as ended; it gets no more plans", [job] {
    return http::HttpCall{"POST", job_path(*job, "/finish"), "{}"};
  });
}

}  // namespace perseus::cli
