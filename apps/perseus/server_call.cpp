#include "server_call.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

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

void append_lines(std::string& text, const json::value& value, const std::string& indent) {
  if (const auto* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      const bool nested =
          (member.is_object() && !member.get_object().empty()) || (member.is_array() && !member.get_array().empty());
      text += fmt::format("{}{}:", indent, std::string_view(key.data(), key.size()));
      if (nested) text += '\n';
      if (!nested) text += ' ';
      append_lines(text, member, nested ? indent + "  " : "");
    }
  } else if (const auto* array = value.if_array(); array != nullptr && !array->empty()) {
    for (const json::value& element : *array) {
      const bool nested = element.is_object();
      text += nested ? fmt::format("{}-\n", indent) : indent + "- ";
      append_lines(text, element, nested ? indent + "  " : "");
    }
  } else if (const auto* string = value.if_string()) {
    text += std::string_view(string->data(), string->size());
    text += '\n';
  } else {
    text += json::serialize(value) + "\n";
  }
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
  std::string text;
  append_lines(text, value, "");
  print(text.empty() || *body == "{}" ? "done\n" : text);
  return 0;
}

}  // namespace perseus
