#include "io/http/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>

#include "base/error_table.h"
#include "base/json_writer.h"

namespace perseus::http {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::optional<std::string_view> first(const NamedValues& values, std::string_view name) {
  for (const auto& [key, value] : values) {
    if (same_without_case(key, name)) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> HttpRequest::parameter(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> HttpRequest::header(std::string_view name) const { return first(headers, name); }

HttpResponse json_response(int status, std::string body) {
  return {status, "application/json", std::make_shared<const std::string>(std::move(body)), {}};
}

HttpResponse error_response(int status, std::string_view message) {
  return json_response(status, json_object([&](JsonWriter& f) {
                         f.always("detail", message);
                         f.always("error", JsonObject{[&](JsonWriter& error) {
                                    error.always("code", entry_of(code_of_http_status(status)).name);
                                    error.always("message", message);
                                  }});
                       }));
}

bool same_without_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view reason_phrase(int status) {
  namespace beast_http = boost::beast::http;
  return beast_http::obsolete_reason(beast_http::int_to_status(static_cast<unsigned>(status)));
}

}  // namespace perseus::http
