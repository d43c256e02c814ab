// perseus job: lists, shows, finishes and deletes a server's jobs.
#include <memory>
#include <optional>
#include <string>

#include "command_line/command.h"
#include "io/http/url.h"
#include "remote/server_action.h"
#include "remote/server_call.h"
#include "server/jobs/describe.h"

namespace perseus::cli {
namespace {

ListForm job_form() {
  using Use = ListColumn::Use;
  using Kind = ListColumn::Kind;
  return {"jobs",
          {{"ID", "id", Use::table, Kind::id},
           {"NAME", "name"},
           {"STATE", "state", Use::table, Kind::state, "maximum_clock"},
           {"MAXIMUM CLOCK", "maximum_clock", Use::csv},
           {"REGISTERED", "ranks_registered", Use::csv},
           {"RANKS", "ranks", Use::table, Kind::parts, "ranks_registered"},
           {"PIPELINES", "pipelines", Use::wide, Kind::count},
           {"ITERATION", "iteration_time_s", Use::roomy},
           {"POWER", "power_w", Use::table, Kind::measured, "power_measured"},
           {"PLAN SAVES", "saved_pct", Use::roomy, Kind::estimate},
           {"WOULD SAVE", "possible_saving_pct", Use::wide, Kind::possible, "possible_saving_modeled"},
           {"MODELED", "possible_saving_modeled", Use::csv},
           {"SAVED", "saved_j", Use::table, Kind::estimate, "estimated_saved_j"},
           {"STRAGGLERS", "stragglers", Use::roomy, Kind::count},
           {"LABELS", "labels", Use::wide, Kind::pairs},
           {"CHANGED", "updated_at_s", Use::wide, Kind::age},
           {"LAST CALL", "silent_since_s", Use::some, Kind::age},
           {"SILENT RANKS", "silent_ranks", Use::some, Kind::count},
           {"AGE", "created_at_s", Use::table, Kind::age}},
          3};
}

ListForm rank_form() {
  using Use = ListColumn::Use;
  using Kind = ListColumn::Kind;
  return {"ranks",
          {{"RANK", "rank"},
           {"HOST", "host"},
           {"GPU", "accelerator"},
           {"CONTROL", "control"},
           {"PIPELINE", "dp_rank", Use::wide},
           {"STAGE", "pp_rank", Use::wide},
           {"TENSOR", "tp_rank", Use::wide},
           {"LEAST WANTED", "wanted_least_mhz", Use::csv},
           {"WANTED", "wanted_most_mhz", Use::table, Kind::range, "wanted_least_mhz"},
           {"SET", "set_mhz", Use::table, Kind::clock},
           {"FAILED", "clocks_failed"},
           {"LATE", "clocks_late"},
           {"THROTTLED", "throttled_iterations"},
           {"REPORTED", "clocks_at_s", Use::wide, Kind::age},
           {"LAST CALL", "last_heard_s", Use::table, Kind::age},
           {"REASON", "control_reason", Use::wide}},
          4};
}

void add_job_ranks(CLI::App& group, Command& command) {
  struct Wanted {
    std::string job, host;
  };
  auto wanted = std::make_shared<Wanted>();
  auto* ranks = add_list_action(
      group, command, "ranks",
      "List the job's ranks: host, GPU, right to set clocks, clocks wanted by the plan and set, "
      "failures, last call",
      rank_form(), [wanted](const http::HttpPeer& peer) -> Result<std::string> {
        const auto job = job_meant(peer, wanted->job);
        if (!job) return job.error();
        const std::string of_host = wanted->host.empty() ? "" : "&host=" + http::percent_encode(wanted->host);
        return call_pages(peer, {"GET", job_path(*job, "/ranks?limit=1000" + of_host), ""}, "ranks");
      });
  ranks->add_option("JOB", wanted->job, kJobMeaning)->required();
  add_value(*ranks, "--host HOST", wanted->host, "Only ranks of this host");
}

ListForm history_form() {
  using Use = ListColumn::Use;
  return {"buckets",
          {{"START", "start_s"},
           {"ITERATIONS", "iterations", Use::roomy, ListColumn::Kind::count},
           {"TIME", "iteration_time_s"},
           {"PLANNED TIME", "planned_time_s"},
           {"ENERGY", "iteration_energy_j"},
           {"PLANNED ENERGY", "planned_energy_j"},
           {"LEAST TIME", "least_time_s", Use::wide},
           {"MOST TIME", "most_time_s", Use::wide},
           {"WITH ENERGY", "energy_iterations", Use::wide, ListColumn::Kind::count},
           {"UNDER A PLAN", "planned_iterations", Use::wide, ListColumn::Kind::count},
           {"FIRST PLAN", "first_plan_version", Use::wide},
           {"PLAN", "last_plan_version", Use::roomy},
           {"WITH STRAGGLER", "straggler_iterations", Use::roomy, ListColumn::Kind::count}}};
}

void add_job_history(CLI::App& group, Command& command) {
  struct Wanted : ListedTimes {
    std::string job;
  };
  auto wanted = std::make_shared<Wanted>();
  auto* history = add_list_action(group, command, "history",
                                  "Show measured time and energy per iteration against the plan over time",
                                  history_form(), [wanted](const http::HttpPeer& peer) -> Result<std::string> {
                                    const auto job = job_meant(peer, wanted->job);
                                    if (!job) return job.error();
                                    const std::string target = job_path(*job, "/history?step=" + wanted->step);
                                    return pages_in_time(peer, target, wanted->from_s, "buckets");
                                  });
  history->add_option("JOB", wanted->job, kJobMeaning)->required();
  add_listed_times(*history, *wanted);
}

void add_job_set(CLI::App& group, Command& command, const std::shared_ptr<std::string>& job) {
  auto wanted = std::make_shared<jobs::TierBody>();
  auto* set = add_action(
      group, command, "set", "Set the job's tier under the power limits of a site; what is left out stays as it is",
      [job, wanted]() -> Result<http::HttpCall> {
        if (wanted->tier == jobs::Tier() && !wanted->reset) {
          return Error{ErrorCode::usage,
                       "job set: nothing to set; allowed: --domain, --least-rate, --priority, --reset"};
        }
        return http::HttpCall{"PUT", job_path(*job, "/tier"), json_text(*wanted)};
      },
      job);
  set->add_option("JOB", *job, kJobMeaning)->required();
  set->add_flag("--reset", wanted->reset, "First remove what was set before: the job has what it asked for again");
  add_value(*set, "--domain NAME", wanted->tier.domain, "Power domain");
  add_value(*set, "--least-rate R", wanted->tier.least_rate, "Least part of its full speed that the job accepts",
            number_within(0, 1, ""));
  add_value(*set, "--priority N", wanted->tier.priority, "Weight of the job per rank where watts are short",
            number_within(1e-3, 1e3, ""));
}

}  // namespace

void add_job(CLI::App& app, Command& command) {
  auto* group = add_group(app, "job", "Show, set, finish and delete a server's jobs",
                          "  perseus job list --state deployed --sort saved --reverse\n"
                          "  perseus job list --selector team=vision,model=gpt3 -o wide\n"
                          "  perseus job history JOB --step hour -o csv\n"
                          "  perseus job set JOB --least-rate 0.9 --priority 2\n"
                          "  perseus job show JOB --server http://planner:7787\n");
  add_filtered_list(*group, command, "List jobs, newest first", job_form(), "/v1/jobs?limit=1000",
                    {{"--state STATE", "state", "Only jobs in this state"},
                     {"--search TEXT", "search", "Only jobs with this text in their name or id"},
                     {"--selector LABELS", "selector",
                      "Only jobs with these labels: NAME=VALUE, NAME!=VALUE or NAME, separated by commas"}});
  add_job_history(*group, command);
  add_job_ranks(*group, command);
  auto job = std::make_shared<std::string>();
  const auto add = [&](const std::string& name, const std::string& meaning, std::function<http::HttpCall()> make) {
    add_action(*group, command, name, meaning, std::move(make), job)->add_option("JOB", *job, kJobMeaning)->required();
  };
  add("show", "Show a job's state, plan and its reason, stragglers and savings", [job] {
    return http::HttpCall{"GET", job_path(*job), ""};
  });
  add_job_set(*group, command, job);
  add("delete", "Delete an ended job and its log permanently", [job] {
    return http::HttpCall{"DELETE", job_path(*job), ""};
  });
  add("finish", "Mark a job as ended; it gets no more plans", [job] {
    return http::HttpCall{"POST", job_path(*job, "/finish"), "{}"};
  });
}

}  // namespace perseus::cli
