#include "remote/server_call.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/error_table.h"
#include "io/formats/boost_json_text.h"
#include "remote/answer_text.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr int kUnauthorized = 401;

Error error_of(const http::HttpPeer& peer, const http::HttpReply& reply) {
  if (reply.status == kUnauthorized && peer.token.empty()) {
    return {ErrorCode::unauthorized, fmt::format("{} requires a token; give --token or set PERSEUS_TOKEN", peer.url)};
  }
  boost::system::error_code problem;
  const json::value body = json::parse(reply.body, problem);
  const auto* object = problem ? nullptr : body.if_object();
  const auto* detail = object != nullptr ? object->if_contains("detail") : nullptr;
  std::string message = detail != nullptr && detail->is_string()
                            ? std::string(detail->get_string().c_str())
                            : fmt::format("the server answered {} {}", reply.status, http::reason_phrase(reply.status));
  return {code_of_http_status(reply.status), std::move(message)};
}

}  // namespace

std::shared_ptr<http::HttpPeer> add_server_options(CLI::App& subcommand) {
  auto peer = std::make_shared<http::HttpPeer>();
  peer->url = "http://127.0.0.1:7787";
  subcommand
      .add_option("--server", peer->url,
                  "URL of the server, or several with commas between (default http://127.0.0.1:7787)")
      ->envname("PERSEUS_SERVER")
      ->type_name("URL");
  subcommand.add_option("--token", peer->token, "API token, if the server requires one")
      ->envname("PERSEUS_TOKEN")
      ->type_name("TOKEN");
  subcommand.add_option("--ca", peer->ca_file, "Certificates to trust instead of the system's (PEM)")
      ->type_name("FILE");
  return peer;
}

Result<http::HttpReply> reply_of_server(const http::HttpPeer& peer, const http::HttpCall& call) {
  auto reply = http::http_call(peer, call);
  if (reply && reply->status >= 300) return error_of(peer, *reply);
  return reply;
}

Result<std::string> call_server(const http::HttpPeer& peer, const http::HttpCall& call) {
  auto reply = reply_of_server(peer, call);
  if (!reply) return reply.error();
  return std::move(reply->body);
}

Result<std::string> call_server_with(const std::string& file, const http::HttpPeer& peer, const http::HttpCall& call) {
  auto reply = http::http_call(peer, call);
  if (!reply) return reply.error();
  if (reply->status < 300) return std::move(reply->body);
  Error refused = error_of(peer, *reply);
  if (refused.code == ErrorCode::usage || refused.code == ErrorCode::invalid_input) {
    refused = {ErrorCode::invalid_input, fmt::format("{}: {}", file, refused.message)};
  }
  return refused;
}

Result<std::string> call_pages(const http::HttpPeer& peer, const http::HttpCall& call, std::string_view list) {
  json::array all;
  http::HttpCall page = call;
  while (true) {
    const auto body = call_server(peer, page);
    if (!body) return body.error();
    boost::system::error_code problem;
    json::value value = json::parse(*body, problem);
    json::value* const rows = problem || !value.is_object() ? nullptr : value.get_object().if_contains(list);
    if (rows == nullptr || !rows->is_array()) {
      return Error{ErrorCode::unavailable, fmt::format("{} answered without a list of {}", peer.url, list)};
    }
    for (json::value& row : rows->get_array()) all.push_back(std::move(row));
    const json::value* const next = value.get_object().if_contains("next");
    if (next == nullptr || !(next->is_string() || next->is_int64())) {
      value.get_object()[list] = std::move(all);
      return formats::json_text(value);
    }
    const std::string after = next->is_string() ? std::string(next->get_string().c_str()) : formats::json_text(*next);
    page.target =
        call.target + (call.target.find('?') == std::string::npos ? "?" : "&") + "after=" + http::percent_encode(after);
  }
}

Result<int> print_answer(const http::HttpPeer& peer, const Result<std::string>& body, bool as_json) {
  if (!body) return body.error();
  if (as_json) {
    print(*body + "\n");
    return 0;
  }
  boost::system::error_code problem;
  const json::value value = json::parse(*body, problem);
  if (problem) return Error{ErrorCode::unavailable, fmt::format("{} sent an answer that is not JSON", peer.url)};
  print(value.is_object() && value.get_object().empty() ? "done\n" : answer_text(value));
  return 0;
}

}  // namespace perseus::cli
