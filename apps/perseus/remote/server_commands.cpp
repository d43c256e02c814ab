// perseus profile, straggler, policy: client commands for a server's /v1.
#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "command_line/command.h"
#include "io/formats/boost_json_text.h"
#include "io/formats/file.h"
#include "io/formats/transfer_latency_text.h"
#include "plan/slowdown.h"
#include "remote/server_action.h"
#include "remote/server_call.h"
#include "server/live/registration_checks.h"
#include "server/policies/stragglers.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

struct ProfilePush {
  std::string name, file, schedule = "1f1b", action_table, accelerator;
  int microbatches = 0, chunks = 0;
  std::optional<model::TransferLatency> transfer_latency;
  std::optional<double> blocking_power_w, switch_latency_s, split_backward;
  bool blocking_transfers = false;
  bool serial_transfers = false;
};

/// The path of a profile with a valid name, else the server would look for another path.
Result<std::string> profile_path(const std::string& name) {
  if (const Status valid = live::check_profile_name(name); !valid) return valid.error();
  return "/v1/profiles/" + http::percent_encode(name);
}

Result<http::HttpCall> profile_call(const std::string& method, const std::string& name) {
  auto path = profile_path(name);
  if (!path) return path.error();
  return http::HttpCall{method, *std::move(path), ""};
}

Result<http::HttpCall> push_call(const ProfilePush& push) {
  const auto path = profile_path(push.name);
  if (!path) return path.error();
  if (push.microbatches == 0 && push.action_table.empty()) {
    return Error{ErrorCode::usage, "--microbatches is required without --action-table"};
  }
  const auto csv = formats::read_file(push.file);
  if (!csv) return csv.error();
  json::object pipeline{{"schedule", push.schedule}, {"microbatches", push.microbatches}};
  if (!push.action_table.empty()) {
    const auto table = formats::read_file(push.action_table);
    if (!table) return table.error();
    pipeline["action_table"] = *table;
  }
  if (push.chunks > 0) pipeline["chunks"] = push.chunks;
  if (push.blocking_power_w) pipeline["blocking_power_w"] = *push.blocking_power_w;
  if (push.transfer_latency) {
    pipeline["transfer_latency_s"] = json::parse(formats::format_transfer_latency(*push.transfer_latency));
  }
  if (push.switch_latency_s) pipeline["switch_latency_s"] = *push.switch_latency_s;
  if (push.blocking_transfers) pipeline["blocking_transfers"] = true;
  if (push.serial_transfers) pipeline["serial_transfers"] = true;
  if (push.split_backward) pipeline["split_backward"] = *push.split_backward;
  json::object body{{"profile_csv", *csv}, {"pipeline", pipeline}};
  if (!push.accelerator.empty()) body["accelerator"] = push.accelerator;
  return http::HttpCall{"PUT", *path, formats::json_text(body)};
}

struct StragglerNotice {
  std::string job, accelerator, notice;
  std::optional<int> rank, pipeline;
  double delay_s = 0, degree = 1;
};

http::HttpCall straggler_call(const StragglerNotice& notice) {
  json::object body{{"degree", notice.degree}, {"delay_s", notice.delay_s}};
  if (!notice.accelerator.empty()) body["accelerator"] = notice.accelerator;
  if (notice.rank) body["rank"] = *notice.rank;
  if (notice.pipeline) body["pipeline"] = *notice.pipeline;
  return {"POST", notice.job.empty() ? "/v1/stragglers" : job_path(notice.job, "/stragglers"),
          formats::json_text(body)};
}

/// "rank 5": as the server writes the target; empty: not exactly one is given.
std::string target_of(const StragglerNotice& notice) {
  if ((notice.accelerator.empty() ? 0 : 1) + (notice.rank ? 1 : 0) + (notice.pipeline ? 1 : 0) != 1) return "";
  if (!notice.accelerator.empty()) return "accelerator " + notice.accelerator;
  return notice.rank ? fmt::format("rank {}", *notice.rank) : fmt::format("pipeline {}", *notice.pipeline);
}

/// The calls that withdraw a notice by its id, or all notices of a target.
Result<std::vector<http::HttpCall>> withdraw_calls(const http::HttpPeer& peer, const StragglerNotice& notice) {
  const std::string target = target_of(notice);
  if (notice.notice.empty() == target.empty() || (notice.job.empty() && notice.accelerator.empty())) {
    return Error{
        ErrorCode::usage,
        "allowed: JOB and NOTICE, or --accelerator, or --job with one of --accelerator, --rank and --pipeline"};
  }
  const auto list = list_over_jobs(peer, notice.job, "stragglers");
  if (!list) return list.error();
  std::vector<http::HttpCall> calls;
  const json::value notices = json::parse(*list);  // list_over_jobs() made it
  for (const json::value& row : notices.at("stragglers").as_array()) {
    const std::string id(row.at("id").as_string());
    if (target.empty() ? id != notice.notice : row.at("target").as_string() != target) continue;
    const std::string job(row.at("job").as_string());
    calls.push_back({"DELETE", job_path(job, "/stragglers/" + http::percent_encode(id)), ""});
  }
  if (!calls.empty()) return calls;
  return Error{ErrorCode::not_found, fmt::format("no notice of {}", target.empty() ? notice.notice : target)};
}

struct PolicyChange {
  std::string job, kind, signal, slowdown;
  std::optional<double> watts, time_s, threshold;
  std::optional<int> point;
};

Result<http::HttpCall> policy_call(const PolicyChange& change) {
  json::object body;
  const std::string path = job_path(change.job, "/policies/" + change.kind);
  if (change.watts) body["average_w"] = *change.watts;
  if (change.time_s) body["time_s"] = *change.time_s;
  if (change.point) body["point"] = *change.point;
  if (!change.slowdown.empty()) {
    const Result<double> tolerated = slowdown_of(change.slowdown);
    if (!tolerated) return Error{tolerated.error().code, "--slowdown: " + tolerated.error().message};
    body["slowdown"] = 1 + *tolerated;
  }
  if (change.threshold) body["threshold"] = *change.threshold;
  std::string text = formats::json_text(body);
  if (!change.signal.empty()) {
    const auto signal = formats::read_file(change.signal);
    if (!signal) return signal.error();
    boost::system::error_code problem;
    if (const json::value value = json::parse(*signal, problem); problem || !value.is_array()) {
      return Error{ErrorCode::invalid_input, fmt::format("{}: not a JSON array of {{from_s, value}}", change.signal)};
    }
    text = json_object([&](JsonWriter& f) {
      f.members_of(text);
      f.always("signal", JsonRaw{*signal});
    });
  }
  return http::HttpCall{"PUT", path, text};
}

}  // namespace

void add_profile_push(CLI::App& group, Command& command, const std::shared_ptr<ProfilePush>& push) {
  auto* action =
      add_action(group, command, "push", "Upload a profile and its pipeline under a name; replaces an earlier one",
                 [push] { return push_call(*push); });
  action->add_option("NAME", push->name, "Name of the profile, which jobs give (job_metadata of Zeus's client)")
      ->required();
  action
      ->add_option("PROFILE.csv", push->file,
                   "Profile: CSV with the columns stage,instruction,frequency,time,energy (MHz, s, J)")
      ->required();
  add_value(*action, "--schedule NAME", push->schedule, "Schedule, as in 'perseus plan' (default 1f1b)")
      ->transform(schedule_names());
  add_value(*action, "--action-table FILE", push->action_table, "Action table of PyTorch; replaces --schedule");
  add_value(*action, "-m,--microbatches N", push->microbatches, "Microbatches per iteration",
            whole_number_within(1, 1 << 20));
  add_value(*action, "--chunks N", push->chunks, "Stages per rank", whole_number_within(1, 1 << 10));
  add_value(*action, "--blocking-power W", push->blocking_power_w, "Power of one waiting accelerator, in watts",
            number_within(0, 1e6, "W"));
  add_transfer_latency(*action, "Latency of transfers between ranks, in seconds, as in 'perseus plan'",
                       [push](const model::TransferLatency& latency) { push->transfer_latency = latency; });
  add_value(*action, "--switch-latency S", push->switch_latency_s,
            "Time until a clock change takes effect, in seconds (default: measured by the job's ranks)",
            number_within(0, 1e6, "s"));
  action->add_flag("--blocking-transfers", push->blocking_transfers,
                   "A sending rank waits until the transfer ends (default: it computes meanwhile)");
  action->add_flag("--serial-transfers", push->serial_transfers,
                   "A link carries one transfer per direction at a time (default: transfers do not delay each other)");
  add_value(*action, "--split-backward F", push->split_backward,
            "Derive input_gradient and weight_gradient from the profile's backward: input_gradient takes this "
            "fraction of it",
            number_within(1e-6, 1 - 1e-6, ""));
  add_value(*action, "--accelerator TEXT", push->accelerator, "Description of the measured accelerator");
}

ListForm learned_form() {
  using Use = ListColumn::Use;
  using Kind = ListColumn::Kind;
  return {"profiles",
          {{"ID", "id", Use::table, Kind::id},
           {"TEAM", "team"},
           {"MODEL", "model"},
           {"JOB", "job", Use::table, Kind::id},
           {"DOUBTED BY", "doubted_by", Use::roomy, Kind::id},
           {"WHY", "doubted_because", Use::wide},
           {"CONFIRMED", "confirmed", Use::roomy},
           {"AGE", "learned_at_s", Use::table, Kind::age}},
          6};
}

void add_profile(CLI::App& app, Command& command) {
  auto* group = add_group(
      app, "profile", "Manage named profiles and learned profiles",
      "  perseus profile push gpt3-6.7b PROFILE.csv --schedule 1f1b --microbatches 12 --blocking-power 83.64\n");
  auto push = std::make_shared<ProfilePush>();
  add_profile_push(*group, command, push);
  add_list_action(*group, command, "list", "List the names of the named profiles", {"profiles", {{"NAME", "name"}}, 1},
                  [](const http::HttpPeer& peer) {
                    return call_server(peer, {"GET", "/v1/profiles", ""});
                  });
  add_action(*group, command, "show", "Show a named profile", [push] { return profile_call("GET", push->name); })
      ->add_option("NAME", push->name, "Name of the profile")
      ->required();
  add_list_action(*group, command, "learned",
                  "List learned profiles, which later runs of the same model in the same team try first",
                  learned_form(), [](const http::HttpPeer& peer) {
                    return call_server(peer, {"GET", "/v1/learned_profiles", ""});
                  });
  add_action(*group, command, "forget", "Delete a learned profile; later runs measure again",
             [push] {
               return http::HttpCall{"DELETE", "/v1/learned_profiles/" + http::percent_encode(push->name), ""};
             })
      ->add_option("ID", push->name, "Id of the learned profile, as 'learned' prints it")
      ->required();
  add_action(*group, command, "remove", "Delete a named profile; jobs that use it keep their copy",
             [push] { return profile_call("DELETE", push->name); })
      ->add_option("NAME", push->name, "Name of the profile")
      ->required();
}

void add_straggler_list(CLI::App& group, Command& command, const std::shared_ptr<StragglerNotice>& notice) {
  using Use = ListColumn::Use;
  using Kind = ListColumn::Kind;
  const ListForm form{"stragglers",
                      {{"JOB", "job", Use::table, Kind::id},
                       {"NAME", "job_name"},
                       {"NOTICE", "id"},
                       {"TARGET", "target"},
                       {"STATE", "state"},
                       {"ORIGIN", "origin", Use::roomy},
                       {"PIPELINE", "pipeline", Use::roomy},
                       {"DEGREE", "degree"},
                       {"AGE", "at_s", Use::table, Kind::age}},
                      6};
  add_list_action(group, command, "list", "List stragglers", form, [notice](const http::HttpPeer& peer) {
    return list_over_jobs(peer, notice->job, "stragglers");
  })->add_option("JOB", notice->job, "Only stragglers of this job, by its id or name (default: of all live jobs)");
}

void add_target_options(CLI::App& action, StragglerNotice& notice) {
  add_value(action, "--job JOB", notice.job, "Job of the straggler; not needed with --accelerator");
  add_value(action, "--accelerator ID", notice.accelerator, "Accelerator that straggles");
  add_value(action, "--rank R", notice.rank, "Rank of the job that straggles", whole_number_within(0, 1 << 24));
  add_value(action, "--pipeline P", notice.pipeline, "Pipeline of the job that straggles",
            whole_number_within(0, 1 << 24));
}

void add_straggler(CLI::App& app, Command& command) {
  auto* group = add_group(app, "straggler", "Report, list and withdraw stragglers",
                          "  perseus straggler set --accelerator GPU-8f2c --delay 30 --degree 1.2\n"
                          "  perseus straggler set --job JOB --pipeline 2 --degree 1\n"
                          "  perseus straggler withdraw --accelerator GPU-8f2c\n"
                          "  perseus straggler list\n");
  auto notice = std::make_shared<StragglerNotice>();
  const std::shared_ptr<std::string> job(notice, &notice->job);
  add_straggler_list(*group, command, notice);
  auto* set = add_action(
      *group, command, "set", "Report a straggler; degree 1: back to normal",
      [notice] { return straggler_call(*notice); }, job);
  add_target_options(*set, *notice);
  add_value(*set, "--delay S", notice->delay_s, "Time until the notice takes effect, in seconds (default: now)",
            number_within(0, policies::kMaxDelay_s, "s"));
  add_value(*set, "--degree X", notice->degree, "Degree: how many times slower than normal",
            number_within(1, policies::kMaxDegree, ""))
      ->required();
  auto* withdraw = group->add_subcommand("withdraw", "Withdraw a notice, or all notices of a target");
  const auto peer = add_server_options(*withdraw);
  add_json_flag(*withdraw, command);
  add_target_options(*withdraw, *notice);
  withdraw->add_option("JOB", notice->job, kJobMeaning);
  withdraw->add_option("NOTICE", notice->notice, "Id of the notice, as 'list' prints it");
  withdraw->callback([peer, notice, &command] {
    command.run = [peer, notice, &command]() -> Result<int> {
      const auto calls = withdraw_calls(*peer, *notice);
      if (!calls) return calls.error();
      for (const http::HttpCall& call : *calls) {
        auto printed = print_answer(*peer, call_server(*peer, call), command.json);
        if (!printed || *printed != 0) return printed;
      }
      return 0;
    };
  });
}

void add_policy_list(CLI::App& group, Command& command, const std::shared_ptr<PolicyChange>& change) {
  const ListForm form{"policies",
                      {{"JOB", "job", ListColumn::Use::table, ListColumn::Kind::id},
                       {"NAME", "job_name"},
                       {"KIND", "kind"},
                       {"POLICY", "text"}},
                      4};
  add_list_action(group, command, "list", "List policies", form, [change](const http::HttpPeer& peer) {
    return list_over_jobs(peer, change->job, "policies");
  })->add_option("JOB", change->job, "Only policies of this job, by its id or name (default: of all live jobs)");
}

void add_policy(CLI::App& app, Command& command) {
  auto* group =
      add_group(app, "policy", "Set and list policies of a job: power cap, iteration time or tolerated slowdown",
                "  perseus policy power-cap JOB --average-power 250000\n"
                "  perseus policy max-slowdown JOB --slowdown 0.3%\n"
                "  perseus policy max-slowdown JOB --slowdown 10% --threshold 80 --signal prices.json\n"
                "  perseus policy list\n");
  auto change = std::make_shared<PolicyChange>();
  const std::shared_ptr<std::string> job(change, &change->job);
  add_policy_list(*group, command, change);
  const auto make = [change](std::string kind) {
    return [change, kind = std::move(kind)] {
      change->kind = kind;
      return policy_call(*change);
    };
  };
  auto* cap =
      add_action(*group, command, "power-cap", "Limit the average power of the whole job", make("power_cap"), job);
  cap->add_option("JOB", change->job, kJobMeaning)->required();
  add_value(*cap, "--average-power W", change->watts, "Largest average power of the whole job, in watts",
            number_within(0, 1e12, "W"))
      ->required();
  auto* pin =
      add_action(*group, command, "pin", "Fix the iteration time, whatever the stragglers", make("pinned"), job);
  pin->add_option("JOB", change->job, kJobMeaning)->required();
  add_value(*pin, "--time S", change->time_s, "Iteration time, in seconds", number_within(0, 1e9, "s"));
  add_value(*pin, "--point N", change->point, "Point of pipeline 0's frontier whose time to use; replaces --time",
            whole_number_within(0, 1000000));
  auto* slow =
      add_action(*group, command, "max-slowdown",
                 "Tolerate a slowdown, always or while a price or carbon signal is high", make("max_slowdown"), job);
  slow->add_option("JOB", change->job, kJobMeaning)->required();
  add_slowdown_option(*slow, change->slowdown)->required();
  add_value(*slow, "--threshold V", change->threshold,
            "Value of the signal above which the slowdown is tolerated; requires --signal",
            number_within(-1e12, 1e12, ""));
  add_value(*slow, "--signal FILE", change->signal,
            "Signal as JSON: [{\"from_s\": 1790000000, \"value\": 95.5}, ...] (default: always in force)");
  auto* clear = add_action(
      *group, command, "clear", "Remove a policy",
      [change] {
        return http::HttpCall{"DELETE", job_path(change->job, "/policies/" + http::percent_encode(change->kind)), ""};
      },
      job);
  clear->add_option("JOB", change->job, kJobMeaning)->required();
  const std::map<std::string, std::string> kinds{
      {"power-cap", "power_cap"}, {"pin", "pinned"}, {"max-slowdown", "max_slowdown"}};
  clear->add_option("KIND", change->kind, "power-cap, pin or max-slowdown; or as the list names it")
      ->required()
      ->transform(CLI::Transformer(kinds).description(""));
}

}  // namespace perseus::cli
