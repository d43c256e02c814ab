#include "io/http/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <charconv>

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

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return Error{ErrorCode::usage, fmt::format("'{}' in the request's target is not %XX", text.substr(i, 3))};
      }
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

Result<std::uint16_t> parse_port(std::string_view text, std::string_view whole) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    return Error{ErrorCode::usage, fmt::format("'{}': '{}' is not a port from 0 to 65535", whole, text)};
  }
  return port;
}

ErrorCode code_of(int status) {
  for (const ErrorEntry& entry : error_table()) {
    if (entry.http_status == status) return entry.code;
  }
  if (status == 431) return ErrorCode::too_large;
  return status < 500 ? ErrorCode::usage : ErrorCode::internal;
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
                                    error.always("code", entry_of(code_of(status)).name);
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

std::vector<std::string_view> path_segments(std::string_view path) {
  std::vector<std::string_view> segments;
  while (!path.empty()) {
    path.remove_prefix(1);  // '/'
    const std::size_t end = std::min(path.find('/'), path.size());
    segments.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return segments;
}

Result<HttpTarget> parse_target(std::string_view target) {
  if (target.starts_with("http://") || target.starts_with("https://")) {  // the absolute form that proxies get
    const std::size_t slash = target.find('/', target.find("//") + 2);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  if (!target.starts_with('/')) {
    return Error{ErrorCode::usage, fmt::format("the request's target is '{}'; it must start with '/'", target)};
  }
  target = target.substr(0, target.find('#'));
  const std::size_t question = target.find('?');
  Result<std::string> path = percent_decode(target.substr(0, question), false);
  if (!path) return path.error();
  HttpTarget parsed{std::move(*path), {}};
  std::string_view rest = question == std::string_view::npos ? "" : target.substr(question + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    Result<std::string> name = percent_decode(pair.substr(0, equals), true);
    if (!name) return name.error();
    Result<std::string> value = percent_decode(equals == std::string_view::npos ? "" : pair.substr(equals + 1), true);
    if (!value) return value.error();
    parsed.query.emplace_back(std::move(*name), std::move(*value));
  }
  return parsed;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kept = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string encoded;
  for (const char c : text) {
    if (kept.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

Result<Url> parse_url(std::string_view url) {
  Url parsed;
  std::string_view rest = url;
  if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
    parsed.tls = true;
  } else {
    return Error{ErrorCode::usage,
                 fmt::format("'{}' is not a URL: it must start with http:// or https://", without_user(url))};
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  parsed.path = rest.substr(slash);
  while (parsed.path.ends_with('/')) parsed.path.pop_back();
  rest = rest.substr(0, slash);
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    const std::size_t colon = rest.find(':');
    const auto password = percent_decode(colon < at ? rest.substr(colon + 1, at - colon - 1) : "", false);
    if (!password) return Error{ErrorCode::usage, "the URL's password is not percent-encoded"};
    parsed.password = *password;
    rest.remove_prefix(at + 1);
  }
  const bool has_port = rest.rfind(':') != std::string_view::npos && !rest.ends_with(']');
  Result<HostPort> address =
      parse_host_port(has_port ? std::string(rest) : fmt::format("{}:{}", rest, parsed.tls ? 443 : 80));
  if (!address) return Error{ErrorCode::usage, fmt::format("'{}' is not a URL: {}", rest, address.error().message)};
  parsed.host = std::move(address->host);
  parsed.port = address->port;
  return parsed;
}

std::string without_user(std::string_view url) {
  const std::size_t scheme_end = url.find("://");
  const std::size_t begin = scheme_end == std::string_view::npos ? 0 : scheme_end + 3;
  const std::string_view authority = url.substr(begin, url.find('/', begin) - begin);
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return std::string(url);
  return std::string(url.substr(0, begin)) + std::string(url.substr(begin + at + 1));
}

Result<HostPort> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, std::min(colon, text.size()));
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (colon == std::string_view::npos || host.empty() || (!bracketed && host.find(':') != std::string_view::npos)) {
    return Error{ErrorCode::usage,
                 fmt::format("'{}' is not HOST:PORT, for example 127.0.0.1:7787 or [::1]:7787", text)};
  }
  const Result<std::uint16_t> port = parse_port(text.substr(colon + 1), text);
  if (!port) return port.error();
  if (bracketed) host = host.substr(1, host.size() - 2);
  return HostPort{std::string(host), *port};
}

bool is_loopback_host(std::string_view host) {
  const bool is_number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "::1" || (is_number && host.starts_with("127."));
}

std::string format_host_port(const HostPort& address) {
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", address.host, address.port)
                 : fmt::format("{}:{}", address.host, address.port);
}

}  // namespace perseus::http
