#include <fmt/format.h>

#include <boost/json.hpp>
#include <utility>

#include "io/formats/boost_json_text.h"
#include "remote/server_call.h"

namespace perseus::cli {

namespace json = boost::json;

Result<std::string> pages_in_time(const http::HttpPeer& peer, const std::string& target, std::optional<double> from_s,
                                  const char* list) {
  json::array all;
  std::string page = from_s ? fmt::format("{}&from={:.0f}", target, *from_s) : target;
  while (true) {
    const auto body = call_server(peer, {"GET", page, ""});
    if (!body) return body.error();
    boost::system::error_code problem;
    json::value answer = json::parse(*body, problem);
    json::value* const rows = problem || !answer.is_object() ? nullptr : answer.get_object().if_contains(list);
    if (rows == nullptr || !rows->is_array()) {
      return Error{ErrorCode::unavailable, fmt::format("{} answered without a list of {}", peer.url, list)};
    }
    for (json::value& row : rows->get_array()) all.push_back(std::move(row));
    const json::value* const next = answer.get_object().if_contains("next_s");
    if (next == nullptr || !next->is_int64()) {
      answer.get_object()[list] = std::move(all);
      return formats::json_text(answer);
    }
    page = fmt::format("{}&from={}", target, next->get_int64());
  }
}

}  // namespace perseus::cli
