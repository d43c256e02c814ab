// perseus profile, straggler, policy: client commands for a server's /v1.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "command_line/command.h"
#include "io/formats/file.h"
#include "plan/slowdown.h"
#include "remote/server_action.h"
#include "remote/server_call.h"
#include "server/jobs/api_bodies.h"
#include "server/jobs/event_text.h"
#include "server/live/registration_checks.h"
#include "server/policies/stragglers.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

struct ProfilePush {
  std::string file, action_table;
  jobs::NamedProfile profile;
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

Result<http::HttpCall> push_call(ProfilePush push) {
  const auto path = profile_path(push.profile.name);
  if (!path) return path.error();
  jobs::PipelineShape& shape = push.profile.shape;
  if (shape.microbatches == 0 && push.action_table.empty()) {
    return Error{ErrorCode::usage, "--microbatches is required without --action-table"};
  }
  auto csv = formats::read_file(push.file);
  if (!csv) return csv.error();
  push.profile.profile_csv = *std::move(csv);
  if (!push.action_table.empty()) {
    auto table = formats::read_file(push.action_table);
    if (!table) return table.error();
    shape.action_table = *std::move(table);
  }
  return http::HttpCall{"PUT", *path, json_text(push.profile)};
}

struct StragglerNotice {
  jobs::SetStraggler straggler;
  std::string id;  ///< of a notice to withdraw
};

http::HttpCall straggler_call(const jobs::SetStraggler& straggler) {
  const std::string path = straggler.job.empty() ? "/v1/stragglers" : job_path(straggler.job, "/stragglers");
  return {"POST", path, json_text(straggler)};
}

/// "rank 5": as the server writes the target; empty: not exactly one is given.
std::string target_of(const jobs::StragglerTarget& target) {
  const int given = (target.accelerator.empty() ? 0 : 1) + (target.rank ? 1 : 0) + (target.pipeline ? 1 : 0);
  return given == 1 ? jobs::text_of(target) : "";
}

/// The calls that withdraw a notice by its id, or all notices of a target.
Result<std::vector<http::HttpCall>> withdraw_calls(const http::HttpPeer& peer, const StragglerNotice& notice) {
  const jobs::SetStraggler& straggler = notice.straggler;
  const std::string target = target_of(straggler.target);
  if (notice.id.empty() == target.empty() || (straggler.job.empty() && straggler.target.accelerator.empty())) {
    return Error{
        ErrorCode::usage,
        "allowed: JOB and NOTICE, or --accelerator, or --job with one of --accelerator, --rank and --pipeline"};
  }
  const auto list = list_over_jobs(peer, straggler.job, "stragglers");
  if (!list) return list.error();
  std::vector<http::HttpCall> calls;
  const json::value notices = json::parse(*list);  // list_over_jobs() made it
  for (const json::value& row : notices.at("stragglers").as_array()) {
    const std::string id(row.at("id").as_string());
    if (target.empty() ? id != notice.id : row.at("target").as_string() != target) continue;
    const std::string job(row.at("job").as_string());
    calls.push_back({"DELETE", job_path(job, "/stragglers/" + http::percent_encode(id)), ""});
  }
  if (!calls.empty()) return calls;
  return Error{ErrorCode::not_found, fmt::format("no notice of {}", target.empty() ? notice.id : target)};
}

struct PolicyChange {
  std::string job, kind, signal_file, slowdown;
  jobs::PowerCap cap;
  jobs::Pin pin;
  jobs::MaxSlowdown max_slowdown;
};

http::HttpCall policy_call(const PolicyChange& change, const jobs::Policy& policy) {
  const std::string body = std::visit([](const auto& one) { return json_text(one); }, policy);
  return {"PUT", job_path(change.job, fmt::format("/policies/{}", jobs::kind_of(policy))), body};
}

Result<http::HttpCall> max_slowdown_call(PolicyChange change) {
  const Result<double> tolerated = slowdown_of(change.slowdown);
  if (!tolerated) return Error{tolerated.error().code, "--slowdown: " + tolerated.error().message};
  change.max_slowdown.slowdown = 1 + *tolerated;
  if (!change.signal_file.empty()) {
    const auto text = formats::read_file(change.signal_file);
    if (!text) return text.error();
    auto signal = jobs::parse_json_as<std::vector<jobs::MaxSlowdown::Sample>>(*text, change.signal_file);
    if (!signal) return signal.error();
    change.max_slowdown.signal = *std::move(signal);
  }
  return policy_call(change, change.max_slowdown);
}

}  // namespace

void add_profile_push(CLI::App& group, Command& command, const std::shared_ptr<ProfilePush>& push) {
  jobs::PipelineShape& shape = push->profile.shape;
  auto* action =
      add_action(group, command, "push", "Upload a profile and its pipeline under a name; replaces an earlier one",
                 [push] { return push_call(*push); });
  action->add_option("NAME", push->profile.name, "Name of the profile, which jobs give (job_metadata of Zeus's client)")
      ->required();
  action
      ->add_option("PROFILE.csv", push->file,
                   "Profile: CSV with the columns stage,instruction,frequency,time,energy (MHz, s, J)")
      ->required();
  add_value(*action, "--schedule NAME", shape.schedule, "Schedule, as in 'perseus plan' (default 1f1b)")
      ->transform(schedule_names());
  add_value(*action, "--action-table FILE", push->action_table, "Action table of PyTorch; replaces --schedule");
  add_value(*action, "-m,--microbatches N", shape.microbatches, "Microbatches per iteration",
            whole_number_within(1, 1 << 20));
  add_value(*action, "--chunks N", shape.chunks, "Stages per rank", whole_number_within(1, 1 << 10));
  add_value(*action, "--blocking-power W", shape.blocking_power, "Power of one waiting accelerator, in watts",
            number_within(0, 1e6, "W"));
  add_transfer_latency(
      *action, "Latency of transfers between ranks, in seconds, as in 'perseus plan'",
      [push](const model::TransferLatency& latency) { push->profile.shape.transfer_latency = latency; });
  add_value(*action, "--switch-latency S", shape.switch_latency,
            "Time until a clock change takes effect, in seconds (default: measured by the job's ranks)",
            number_within(0, 1e6, "s"));
  action->add_flag("--blocking-transfers", shape.blocking_transfers,
                   "A sending rank waits until the transfer ends (default: it computes meanwhile)");
  action->add_flag("--serial-transfers", shape.serial_transfers,
                   "A link carries one transfer per direction at a time (default: transfers do not delay each other)");
  add_value(*action, "--split-backward F", shape.split_backward,
            "Derive input_gradient and weight_gradient from the profile's backward: input_gradient takes this "
            "fraction of it",
            number_within(1e-6, 1 - 1e-6, ""));
  add_value(*action, "--accelerator TEXT", push->profile.accelerator, "Description of the measured accelerator");
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
  add_action(*group, command, "show", "Show a named profile",
             [push] { return profile_call("GET", push->profile.name); })
      ->add_option("NAME", push->profile.name, "Name of the profile")
      ->required();
  add_list_action(*group, command, "learned",
                  "List learned profiles, which later runs of the same model in the same team try first",
                  learned_form(), [](const http::HttpPeer& peer) {
                    return call_server(peer, {"GET", "/v1/learned_profiles", ""});
                  });
  add_action(*group, command, "forget", "Delete a learned profile; later runs measure again",
             [push] {
               return http::HttpCall{"DELETE", "/v1/learned_profiles/" + http::percent_encode(push->profile.name), ""};
             })
      ->add_option("ID", push->profile.name, "Id of the learned profile, as 'learned' prints it")
      ->required();
  add_action(*group, command, "remove", "Delete a named profile; jobs that use it keep their copy",
             [push] { return profile_call("DELETE", push->profile.name); })
      ->add_option("NAME", push->profile.name, "Name of the profile")
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
  add_list_action(
      group, command, "list", "List stragglers", form,
      [notice](const http::HttpPeer& peer) { return list_over_jobs(peer, notice->straggler.job, "stragglers"); })
      ->add_option("JOB", notice->straggler.job,
                   "Only stragglers of this job, by its id or name (default: of all live jobs)");
}

void add_target_options(CLI::App& action, jobs::SetStraggler& straggler) {
  add_value(action, "--job JOB", straggler.job, "Job of the straggler; not needed with --accelerator");
  add_value(action, "--accelerator ID", straggler.target.accelerator, "Accelerator that straggles");
  add_value(action, "--rank R", straggler.target.rank, "Rank of the job that straggles",
            whole_number_within(0, 1 << 24));
  add_value(action, "--pipeline P", straggler.target.pipeline, "Pipeline of the job that straggles",
            whole_number_within(0, 1 << 24));
}

void add_straggler(CLI::App& app, Command& command) {
  auto* group = add_group(app, "straggler", "Report, list and withdraw stragglers",
                          "  perseus straggler set --accelerator GPU-8f2c --delay 30 --degree 1.2\n"
                          "  perseus straggler set --job JOB --pipeline 2 --degree 1\n"
                          "  perseus straggler withdraw --accelerator GPU-8f2c\n"
                          "  perseus straggler list\n");
  auto notice = std::make_shared<StragglerNotice>();
  const std::shared_ptr<std::string> job(notice, &notice->straggler.job);
  add_straggler_list(*group, command, notice);
  auto* set = add_action(
      *group, command, "set", "Report a straggler; degree 1: back to normal",
      [notice] { return straggler_call(notice->straggler); }, job);
  add_target_options(*set, notice->straggler);
  add_value(*set, "--delay S", notice->straggler.delay, "Time until the notice takes effect, in seconds (default: now)",
            number_within(0, policies::kMaxDelay_s, "s"));
  add_value(*set, "--degree X", notice->straggler.degree, "Degree: how many times slower than normal",
            number_within(1, policies::kMaxDegree, ""))
      ->required();
  const auto withdraw_all = [notice, &command](const http::HttpPeer& peer) -> Result<int> {
    const auto calls = withdraw_calls(peer, *notice);
    if (!calls) return calls.error();
    for (const http::HttpCall& call : *calls) {
      auto printed = print_answer(peer, call_server(peer, call), command.json);
      if (!printed || *printed != 0) return printed;
    }
    return 0;
  };
  auto* withdraw =
      add_server_action(*group, command, "withdraw", "Withdraw a notice, or all notices of a target", withdraw_all);
  add_target_options(*withdraw, notice->straggler);
  withdraw->add_option("JOB", notice->straggler.job, kJobMeaning);
  withdraw->add_option("NOTICE", notice->id, "Id of the notice, as 'list' prints it");
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
  auto* cap = add_action(
      *group, command, "power-cap", "Limit the average power of the whole job",
      [change] { return policy_call(*change, change->cap); }, job);
  cap->add_option("JOB", change->job, kJobMeaning)->required();
  add_value(*cap, "--average-power W", change->cap.average, "Largest average power of the whole job, in watts",
            number_within(0, 1e12, "W"))
      ->required();
  auto* pin = add_action(
      *group, command, "pin", "Fix the iteration time, whatever the stragglers",
      [change] { return policy_call(*change, change->pin); }, job);
  pin->add_option("JOB", change->job, kJobMeaning)->required();
  add_value(*pin, "--time S", change->pin.time, "Iteration time, in seconds", number_within(0, 1e9, "s"));
  add_value(*pin, "--point N", change->pin.point, "Point of pipeline 0's frontier whose time to use; replaces --time",
            whole_number_within(0, 1000000));
  auto* slow = add_action(
      *group, command, "max-slowdown", "Tolerate a slowdown, always or while a price or carbon signal is high",
      [change] { return max_slowdown_call(*change); }, job);
  slow->add_option("JOB", change->job, kJobMeaning)->required();
  add_slowdown_option(*slow, change->slowdown)->required();
  add_value(*slow, "--threshold V", change->max_slowdown.threshold,
            "Value of the signal above which the slowdown is tolerated; requires --signal",
            number_within(-1e12, 1e12, ""));
  add_value(*slow, "--signal FILE", change->signal_file,
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
