// perseus job, profile, straggler, policy, token: client commands for a server's /v1.
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <memory>

#include "base/clock.h"
#include "base/json_writer.h"
#include "command.h"
#include "io/formats/boost_json_text.h"
#include "io/formats/file.h"
#include "io/formats/transfer_latency_text.h"
#include "server/service/tokens.h"
#include "server_call.h"
#include "server_store.h"
#include "slowdown.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

/// One action of a command: `perseus job show`. `make` builds the request once the options are parsed; `list`: the
/// response comes in pages of that list.
CLI::App* add_action(CLI::App& parent, Command& command, const std::string& name, const std::string& meaning,
                     std::function<Result<http::HttpCall>()> make, const std::string& list = {}) {
  auto* action = parent.add_subcommand(name, meaning);
  const auto peer = add_server_options(*action);
  add_json_flag(*action, command);
  action->callback([peer, make = std::move(make), list, &command] {
    command.run = [peer, make, list, &command]() -> Result<int> {
      const auto call = make();
      if (!call) return call.error();
      return print_answer(*peer, list.empty() ? call_server(*peer, *call) : call_pages(*peer, *call, list),
                          command.json);
    };
  });
  return action;
}

CLI::App* add_group(CLI::App& app, const std::string& name, const std::string& meaning, const std::string& examples) {
  auto* group = app.add_subcommand(name, meaning);
  group->require_subcommand(1);
  group->footer(help_footer(examples));
  return group;
}

std::string job_path(const std::string& job, const std::string& rest = {}) {
  return "/v1/jobs/" + http::percent_encode(job) + rest;
}

struct ProfilePush {
  std::string name, file, schedule = "1f1b", action_table, accelerator;
  int microbatches = 0, chunks = 0;
  std::optional<model::TransferLatency> transfer_latency;
  std::optional<double> blocking_power_w, switch_latency_s, split_backward;
  bool blocking_transfers = false;
};

Result<http::HttpCall> push_call(const ProfilePush& push) {
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
  if (push.split_backward) pipeline["split_backward"] = *push.split_backward;
  json::object body{{"profile_csv", *csv}, {"pipeline", pipeline}};
  if (!push.accelerator.empty()) body["accelerator"] = push.accelerator;
  return http::HttpCall{"PUT", "/v1/profiles/" + http::percent_encode(push.name), formats::json_text(body)};
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

struct TokenOptions {
  std::string role, job, name, team, id, required, data, database;
  std::optional<double> expires_days;
};
constexpr double kDay_s = 86400;

/// Writes directly into the database, of a server that has not started yet or shares it.
Status change_store(const TokenOptions& options,
                    const std::function<void(store::Store&, store::Store::Done<Ok>)>& change) {
  boost::asio::io_context io(1);
  const auto store = open_server_store(options.data, options.database,
                                       [&io](std::function<void()> work) { boost::asio::post(io, std::move(work)); });
  if (!store) return store.error();
  std::optional<Status> changed;
  const auto busy = boost::asio::make_work_guard(io);
  change(**store, [&](const Status& done) {
    changed = done;
    io.stop();
  });
  io.run();
  return *changed;
}

Result<int> create_token_in_store(const TokenOptions& options, bool as_json) {
  const double now_s = SystemClock().now_s();
  store::TokenRow wanted;
  wanted.role = options.role;
  wanted.job = options.job;
  wanted.name = options.name;
  wanted.team = options.team;
  if (const Status possible = service::check_token(wanted); !possible) return possible.error();
  if (options.expires_days) wanted.expires_s = now_s + *options.expires_days * kDay_s;
  const service::NewToken token = service::make_token(std::move(wanted), now_s);
  const Status put = change_store(
      options, [&](store::Store& store, store::Store::Done<Ok> done) { store.put_token(token.row, std::move(done)); });
  if (!put) return put.error();
  print((as_json ? json_object([&](JsonWriter& f) { f.always("token", token.secret); }) : token.secret) + "\n");
  return 0;
}

/// --data DIR or --database URL: where the tokens are.
void add_store_options(CLI::App& action, TokenOptions& options, const std::string& meaning) {
  action.add_option("--data", options.data, meaning)->type_name("DIR");
  action.add_option("--database", options.database, "The same for a PostgreSQL database, postgresql://...")
      ->type_name("URL");
}

}  // namespace

void add_job(CLI::App& app, Command& command) {
  auto* group = add_group(app, "job", "Show, finish and delete a server's jobs",
                          "  perseus job list\n  perseus job show JOB --server http://planner:7787\n");
  auto job = std::make_shared<std::string>();
  struct Wanted {
    std::string state, search;
  };
  auto wanted = std::make_shared<Wanted>();
  auto* list = add_action(
      *group, command, "list", "List jobs, newest first",
      [wanted] {
        std::string target = "/v1/jobs?limit=1000";
        if (!wanted->state.empty()) target += "&state=" + http::percent_encode(wanted->state);
        if (!wanted->search.empty()) target += "&search=" + http::percent_encode(wanted->search);
        return http::HttpCall{"GET", target, ""};
      },
      "jobs");
  list->add_option("--state", wanted->state, "Only jobs in this state")->type_name("STATE");
  list->add_option("--search", wanted->search, "Only jobs with this text in their name or id")->type_name("TEXT");
  add_action(*group, command, "show", "Show a job's state, plan and its reason, stragglers and savings",
             [job] {
               return http::HttpCall{"GET", job_path(*job), ""};
             })
      ->add_option("JOB", *job, "Id of the job")
      ->required();
  add_action(*group, command, "delete", "Delete an ended job and its log permanently",
             [job] {
               return http::HttpCall{"DELETE", job_path(*job), ""};
             })
      ->add_option("JOB", *job, "Id of the job")
      ->required();
  add_action(*group, command, "finish", "Mark a job as ended; it gets no more plans",
             [job] {
               return http::HttpCall{"POST", job_path(*job, "/finish"), "{}"};
             })
      ->add_option("JOB", *job, "Id of the job")
      ->required();
}

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
  action->add_option("--schedule", push->schedule, "Schedule, as in 'perseus plan' (default 1f1b)")->type_name("NAME");
  action->add_option("--action-table", push->action_table, "Action table of PyTorch; replaces --schedule")
      ->type_name("FILE");
  action->add_option("--microbatches", push->microbatches, "Microbatches per iteration")
      ->check(whole_number_within(1, 1 << 20))
      ->type_name("N");
  action->add_option("--chunks", push->chunks, "Stages per rank")
      ->check(whole_number_within(1, 1 << 10))
      ->type_name("N");
  action->add_option("--blocking-power", push->blocking_power_w, "Power of one waiting accelerator, in watts")
      ->check(number_within(0, 1e6, "W"))
      ->type_name("W");
  add_transfer_latency(*action, "Latency of transfers between ranks, in seconds, as in 'perseus plan'",
                       [push](const model::TransferLatency& latency) { push->transfer_latency = latency; });
  action
      ->add_option("--switch-latency", push->switch_latency_s,
                   "Time until a clock change takes effect, in seconds (default: measured by the job's ranks)")
      ->check(number_within(0, 1e6, "s"))
      ->type_name("S");
  action->add_flag("--blocking-transfers", push->blocking_transfers,
                   "A sending rank waits until the transfer ends (default: it computes meanwhile)");
  action
      ->add_option("--split-backward", push->split_backward,
                   "Derive input_gradient and weight_gradient from the profile's backward: input_gradient takes this "
                   "fraction of it")
      ->check(number_within(1e-6, 1 - 1e-6, ""))
      ->type_name("F");
  action->add_option("--accelerator", push->accelerator, "Description of the measured accelerator")->type_name("TEXT");
}

void add_profile(CLI::App& app, Command& command) {
  auto* group = add_group(
      app, "profile", "Manage named profiles and learned profiles",
      "  perseus profile push gpt3-6.7b PROFILE.csv --schedule 1f1b --microbatches 12 --blocking-power 83.64\n");
  auto push = std::make_shared<ProfilePush>();
  add_profile_push(*group, command, push);
  add_action(*group, command, "list", "List the names of the named profiles", [] {
    return http::HttpCall{"GET", "/v1/profiles", ""};
  });
  add_action(*group, command, "show", "Show a named profile",
             [push] {
               return http::HttpCall{"GET", "/v1/profiles/" + http::percent_encode(push->name), ""};
             })
      ->add_option("NAME", push->name, "Name of the profile")
      ->required();
  add_action(*group, command, "learned",
             "List learned profiles, which later runs of the same model in the same team try first", [] {
               return http::HttpCall{"GET", "/v1/learned_profiles", ""};
             });
  add_action(*group, command, "forget", "Delete a learned profile; later runs measure again",
             [push] {
               return http::HttpCall{"DELETE", "/v1/learned_profiles/" + http::percent_encode(push->name), ""};
             })
      ->add_option("ID", push->name, "Id of the learned profile, as 'learned' prints it")
      ->required();
  add_action(*group, command, "remove", "Delete a named profile; jobs that use it keep their copy",
             [push] {
               return http::HttpCall{"DELETE", "/v1/profiles/" + http::percent_encode(push->name), ""};
             })
      ->add_option("NAME", push->name, "Name of the profile")
      ->required();
}

void add_straggler(CLI::App& app, Command& command) {
  auto* group = add_group(app, "straggler", "Report and withdraw stragglers",
                          "  perseus straggler set --accelerator GPU-8f2c --delay 30 --degree 1.2\n"
                          "  perseus straggler set --job JOB --pipeline 2 --degree 1\n");
  auto notice = std::make_shared<StragglerNotice>();
  auto* set = add_action(*group, command, "set", "Report a straggler; degree 1: back to normal",
                         [notice] { return straggler_call(*notice); });
  set->add_option("--job", notice->job, "Job of the straggler; not needed with --accelerator")->type_name("JOB");
  set->add_option("--accelerator", notice->accelerator, "Accelerator that straggles")->type_name("ID");
  set->add_option("--rank", notice->rank, "Rank of the job that straggles")
      ->check(whole_number_within(0, 1 << 24))
      ->type_name("R");
  set->add_option("--pipeline", notice->pipeline, "Pipeline of the job that straggles")
      ->check(whole_number_within(0, 1 << 24))
      ->type_name("P");
  set->add_option("--delay", notice->delay_s, "Time until the notice takes effect, in seconds (default: now)")
      ->check(number_within(0, 1e9, "s"))
      ->type_name("S");
  set->add_option("--degree", notice->degree, "Degree: how many times slower than normal")
      ->required()
      ->check(number_within(1, 1e6, ""))
      ->type_name("X");
  auto* withdraw = add_action(*group, command, "withdraw", "Withdraw a notice", [notice] {
    return http::HttpCall{"DELETE", job_path(notice->job, "/stragglers/" + http::percent_encode(notice->notice)), ""};
  });
  withdraw->add_option("JOB", notice->job, "Job of the notice")->required();
  withdraw->add_option("NOTICE", notice->notice, "Id of the notice, as 'set' printed it")->required();
}

void add_policy(CLI::App& app, Command& command) {
  auto* group = add_group(app, "policy", "Set policies of a job: power cap, iteration time or tolerated slowdown",
                          "  perseus policy power-cap JOB --average-power 250000\n"
                          "  perseus policy max-slowdown JOB --slowdown 0.3%\n"
                          "  perseus policy max-slowdown JOB --slowdown 10% --threshold 80 --signal prices.json\n");
  auto change = std::make_shared<PolicyChange>();
  const auto make = [change](std::string kind) {
    return [change, kind = std::move(kind)] {
      change->kind = kind;
      return policy_call(*change);
    };
  };
  auto* cap = add_action(*group, command, "power-cap", "Limit the average power of the whole job", make("power_cap"));
  cap->add_option("JOB", change->job, "Id of the job")->required();
  cap->add_option("--average-power", change->watts, "Largest average power of the whole job, in watts")
      ->required()
      ->check(number_within(0, 1e12, "W"))
      ->type_name("W");
  auto* pin = add_action(*group, command, "pin", "Fix the iteration time, whatever the stragglers", make("pinned"));
  pin->add_option("JOB", change->job, "Id of the job")->required();
  pin->add_option("--time", change->time_s, "Iteration time, in seconds")
      ->check(number_within(0, 1e9, "s"))
      ->type_name("S");
  pin->add_option("--point", change->point, "Point of pipeline 0's frontier whose time to use; replaces --time")
      ->check(whole_number_within(0, 1000000))
      ->type_name("N");
  auto* slow =
      add_action(*group, command, "max-slowdown",
                 "Tolerate a slowdown, always or while a price or carbon signal is high", make("max_slowdown"));
  slow->add_option("JOB", change->job, "Id of the job")->required();
  add_slowdown_option(*slow, change->slowdown)->required();
  slow->add_option("--threshold", change->threshold,
                   "Value of the signal above which the slowdown is tolerated; requires --signal")
      ->check(number_within(-1e12, 1e12, ""))
      ->type_name("V");
  slow->add_option("--signal", change->signal,
                   "Signal as JSON: [{\"from_s\": 1790000000, \"value\": 95.5}, ...] (default: always in force)")
      ->type_name("FILE");
  auto* clear = add_action(*group, command, "clear", "Remove a policy", [change] {
    return http::HttpCall{"DELETE", job_path(change->job, "/policies/" + http::percent_encode(change->kind)), ""};
  });
  clear->add_option("JOB", change->job, "Id of the job")->required();
  clear->add_option("KIND", change->kind, "power_cap, pinned or max_slowdown")->required();
}

void add_token(CLI::App& app, Command& command) {
  auto* group = add_group(app, "token", "Manage API tokens and roles",
                          "  perseus token create --role infrastructure --data DIR\n"
                          "  perseus token create --role job --name team-a --server https://planner:7787\n");
  auto options = std::make_shared<TokenOptions>();
  auto* create = group->add_subcommand("create", "Create a token; the secret is printed once");
  const auto peer = add_server_options(*create);
  create->add_option("--role", options->role, "job, infrastructure or read-only")
      ->required()
      ->check(CLI::IsMember({"job", "infrastructure", "read-only"}).description(""))
      ->type_name("ROLE");
  create->add_option("--job", options->job, "Job to which the token is limited")->type_name("JOB");
  create->add_option("--name", options->name, "Description of the token's owner")->type_name("TEXT");
  create->add_option("--team", options->team, "Team within which jobs share learned profiles")->type_name("TEXT");
  create->add_option("--expires-days", options->expires_days, "Days until the token expires (default: never)")
      ->check(CLI::Range(1e-3, 36500.0).description(""))
      ->type_name("DAYS");
  add_store_options(*create, *options,
                    "Create the token in the database of this directory, before its server starts; replaces --server");
  add_json_flag(*create, command);
  create->callback([peer, options, &command] {
    command.run = [peer, options, &command]() -> Result<int> {
      if (!options->data.empty() || !options->database.empty()) return create_token_in_store(*options, command.json);
      json::object body{
          {"role", options->role}, {"job", options->job}, {"name", options->name}, {"team", options->team}};
      if (options->expires_days) body["expires_in_s"] = *options->expires_days * kDay_s;
      return print_answer(*peer, call_server(*peer, {"POST", "/v1/tokens", formats::json_text(body)}), command.json);
    };
  });
  add_action(*group, command, "list", "List tokens, without their secrets", [] {
    return http::HttpCall{"GET", "/v1/tokens", ""};
  });
  add_action(*group, command, "revoke", "Revoke a token immediately",
             [options] {
               return http::HttpCall{"DELETE", "/v1/tokens/" + http::percent_encode(options->id), ""};
             })
      ->add_option("ID", options->id, "Id of the token, as 'list' prints it")
      ->required();
  auto* require = group->add_subcommand("require", "Turn the requirement of tokens on or off (off: on loopback only)");
  require->add_option("WHETHER", options->required, "on or off")
      ->required()
      ->check(CLI::IsMember({"on", "off"}).description(""));
  add_store_options(*require, *options, "Directory of the database; its server must not run");
  require->callback([options, &command] {
    command.run = [options]() -> Result<int> {
      if (options->data.empty() && options->database.empty()) {
        return Error{ErrorCode::usage, "--data DIR or --database URL is required: this command does not call a server"};
      }
      const Status changed = change_store(*options, [&](store::Store& store, store::Store::Done<Ok> done) {
        service::require_tokens(store, options->required == "on", std::move(done));
      });
      if (!changed) return changed.error();
      return 0;
    };
  });
}

}  // namespace perseus::cli
