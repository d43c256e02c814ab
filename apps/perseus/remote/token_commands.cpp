// perseus token: creates, lists and revokes a server's tokens.
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/json/parse.hpp>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/clock.h"
#include "base/json_writer.h"
#include "command_line/command.h"
#include "remote/answer_members.h"
#include "remote/server_action.h"
#include "remote/server_call.h"
#include "serve/server_store.h"
#include "server/access/tokens.h"
#include "server/jobs/api_bodies.h"

namespace perseus::cli {
namespace {

struct TokenOptions {
  jobs::TokenBody token;
  std::string id, required, data, database;
  std::optional<double> expires_days;
};
constexpr double kDay_s = 86400;

/// True as well where that cannot be told: opening it says why.
bool has_database(const TokenOptions& options) {
  std::error_code unknown;
  return !options.database.empty() || std::filesystem::exists(sqlite_file_in(options.data), unknown) || unknown;
}

/// Writes directly into the database of a server that does not run.
Status change_store(const TokenOptions& options,
                    const std::function<void(store::Store&, store::Store::Done<Ok>)>& change) {
  boost::asio::io_context io(1);
  const auto store = open_server_store(options.data, options.database,
                                       [&io](std::function<void()> work) { boost::asio::post(io, std::move(work)); });
  if (!store) return store.error();
  const auto writer = (*store)->become_writer("perseus token");
  if (!writer) return writer.error();
  if (!writer->is_us) {
    return Error{ErrorCode::conflict, writer->address + " serves this database: use --server " + writer->address};
  }
  std::optional<Status> changed;
  const auto busy = boost::asio::make_work_guard(io);
  change(**store, [&](const Status& done) {
    changed = done;
    io.stop();
  });
  io.run();
  (*store)->resign();
  return *changed;
}

/// For people and scripts the secret alone: 'list' has the rest.
Result<int> print_secret(const Result<std::string>& made, bool as_json) {
  if (!made) return made.error();
  boost::system::error_code problem;
  const std::string secret = text_in(boost::json::parse(*made, problem), "token");
  if (secret.empty()) return Error{ErrorCode::unavailable, "the server's answer has no token"};
  print((as_json ? *made : secret) + "\n");
  return 0;
}

Result<int> create_token_in_store(const TokenOptions& options, bool as_json) {
  const double now_s = SystemClock().now_s();
  store::TokenRow wanted;
  wanted.role = options.token.role;
  wanted.job = options.token.job;
  wanted.name = options.token.name;
  wanted.team = options.token.team;
  if (const Status possible = access::check_token(wanted); !possible) return possible.error();
  if (options.expires_days) wanted.expires_s = now_s + *options.expires_days * kDay_s;
  const access::NewToken token = access::make_token(std::move(wanted), now_s);
  if (!has_database(options)) {
    if (const Status first = access::check_first_token(token.row); !first) return first.error();
    note(sqlite_file_in(options.data) + " is a new database");
  }
  const Status put = change_store(options, [&](store::Store& store, store::Store::Done<Ok> done) {
    const auto others = store.tokens();
    if (!others) return done(others.error());
    const Status first = others->empty() ? access::check_first_token(token.row) : Ok{};
    if (!first) return done(first.error());
    store.put_token(token.row, std::move(done));
  });
  if (!put) return put.error();
  return print_secret(json_object([&](JsonWriter& f) {
                        f.always("token", token.secret);
                        f.always("id", token.id);
                      }),
                      as_json);
}

/// --data DIR or --database URL: where the tokens are.
void add_store_options(CLI::App& action, TokenOptions& options, const std::string& meaning) {
  add_value(action, "--data DIR", options.data, meaning);
  add_value(action, "--database URL", options.database, "The same for a PostgreSQL database, postgresql://...");
}

ListForm token_form() {
  using Use = ListColumn::Use;
  using Kind = ListColumn::Kind;
  return {"tokens",
          {{"ID", "id"},
           {"ROLE", "role"},
           {"NAME", "name"},
           {"TEAM", "team", Use::roomy},
           {"JOB", "job", Use::table, Kind::id},
           {"AGE", "created_at_s", Use::table, Kind::age},
           {"EXPIRES", "expires_at_s", Use::table, Kind::age}},
          5};
}

}  // namespace

void add_token(CLI::App& app, Command& command) {
  auto* group = add_group(app, "token", "Manage API tokens and roles",
                          "  perseus token create --role infrastructure --data DIR\n"
                          "  perseus token create --role job --name team-a --server https://planner:7787\n");
  auto options = std::make_shared<TokenOptions>();
  auto* create = group->add_subcommand("create", "Create a token; the secret is printed once");
  const auto peer = add_server_options(*create);
  add_value(*create, "--role ROLE", options->token.role, "job, infrastructure or read-only",
            CLI::IsMember({"job", "infrastructure", "read-only"}).description(""))
      ->required();
  add_value(*create, "--job JOB", options->token.job, "Job to which the token is limited");
  add_value(*create, "--name TEXT", options->token.name, "Description of the token's owner");
  add_value(*create, "--team TEXT", options->token.team, "Team within which jobs share learned profiles");
  add_value(*create, "--expires-days DAYS", options->expires_days, "Days until the token expires (default: never)",
            CLI::Range(1e-3, 36500.0).description(""));
  add_store_options(*create, *options,
                    "Create the token in the database of this directory, before its server starts; replaces --server");
  add_json_flag(*create, command);
  set_run(*create, command, [peer, options, &command]() -> Result<int> {
    if (!options->data.empty() || !options->database.empty()) return create_token_in_store(*options, command.json);
    if (options->expires_days) options->token.expires_in_s = *options->expires_days * kDay_s;
    return print_secret(call_server(*peer, {"POST", "/v1/tokens", json_text(options->token)}), command.json);
  });
  add_list_action(*group, command, "list", "List tokens, without their secrets", token_form(),
                  [](const http::HttpPeer& server) {
                    return call_server(server, {"GET", "/v1/tokens", ""});
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
  set_run(*require, command, [options]() -> Result<int> {
    if (options->data.empty() && options->database.empty()) {
      return Error{ErrorCode::usage, "--data DIR or --database URL is required: this command does not call a server"};
    }
    if (!has_database(*options)) {
      return Error{ErrorCode::not_found, sqlite_file_in(options->data) + ": no such database"};
    }
    const Status changed = change_store(*options, [&](store::Store& store, store::Store::Done<Ok> done) {
      access::require_tokens(store, options->required == "on", std::move(done));
    });
    if (!changed) return changed.error();
    return 0;
  });
}

}  // namespace perseus::cli
