#include "server_call.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "answer_text.h"
#include "base/error_table.h"

namespace perseus {
namespace {

namespace json = boost::json;

Error error_of(const HttpReply& reply) {
  boost::system::error_code problem;
  const json::value body = json::parse(reply.body, problem);
  const auto* object = problem ? nullptr : body.if_object();
  const auto* detail = object != nullptr ? object->if_contains("detail") : nullptr;
  std::string message = detail != nullptr && detail->is_string()
                            ? std::string(detail->get_string().c_str())
                            : fmt::format("the server answered {} {}", reply.status, reason_phrase(reply.status));
  for (const ErrorEntry& entry : error_table()) {
    if (entry.http_status == reply.status) return {entry.code, std::move(message)};
  }
  return {reply.status >= 500 ? ErrorCode::unavailable : ErrorCode::usage, std::move(message)};
}

}  // namespace

std::shared_ptr<HttpPeer> add_server_options(CLI::App& subcommand) {
  auto peer = std::make_shared<HttpPeer>();
  peer->url = "http://127.0.0.1:7787";
  subcommand.add_option("--server", peer->url, "Where 'perseus serve' is (default http://127.0.0.1:7787)")
      ->envname("PERSEUS_SERVER")
      ->type_name("URL");
  subcommand.add_option("--token", peer->token, "Who asks, if the server wants to know")
      ->envname("PERSEUS_TOKEN")
      ->type_name("TOKEN");
  subcommand.add_option("--ca", peer->ca_file, "Certificates to trust instead of the system's (PEM)")
      ->type_name("FILE");
  return peer;
}

Result<std::string> call_server(const HttpPeer& peer, const HttpCall& call) {
  auto reply = http_call(peer, call);
  if (!reply) return reply.error();
  if (reply->status >= 300) return error_of(*reply);
  return std::move(reply->body);
}

Result<int> print_answer(const HttpPeer& peer, const HttpCall& call, bool as_json) {
  const auto body = call_server(peer, call);
  if (!body) return body.error();
  if (as_json) {
    print(*body + "\n");
    return 0;
  }
  boost::system::error_code problem;
  const json::value value = json::parse(*body, problem);
  if (problem) return Error{ErrorCode::unavailable, fmt::format("{} answered what is no JSON", peer.url)};
  print(value.is_object() && value.get_object().empty() ? "done\n" : answer_text(value));
  return 0;
}

}  // namespace perseus
