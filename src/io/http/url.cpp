#include "io/http/url.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace perseus::http {
namespace {

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

}  // namespace

namespace {

Result<std::vector<std::string>> decoded_segments(std::string_view path) {
  std::vector<std::string> segments;
  segments.reserve(static_cast<std::size_t>(std::ranges::count(path, '/')));
  while (!path.empty()) {
    path.remove_prefix(1);  // '/'
    const std::size_t end = std::min(path.find('/'), path.size());
    Result<std::string> segment = percent_decode(path.substr(0, end), false);
    if (!segment) return segment.error();
    segments.push_back(*std::move(segment));
    path.remove_prefix(end);
  }
  return segments;
}

}  // namespace

std::vector<std::string> path_segments(std::string_view path) { return decoded_segments(path).value(); }

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
  auto segments = decoded_segments(target.substr(0, question));
  if (!segments) return segments.error();
  HttpTarget parsed{std::string(target.substr(0, question)), *std::move(segments), {}};
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

std::optional<HostText> split_host(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  const std::size_t end = std::min(text.find(bracketed ? ']' : ':'), text.size());
  std::string_view host = text.substr(0, end), rest = text.substr(end);
  if (bracketed) {
    if (rest.empty()) return std::nullopt;
    host.remove_prefix(1);
    rest.remove_prefix(1);
  }
  if (host.empty()) return std::nullopt;
  if (rest.empty()) return HostText{host, std::nullopt};
  if (!rest.starts_with(':') || rest.find(':', 1) != std::string_view::npos) return std::nullopt;
  return HostText{host, rest.substr(1)};
}

Result<HostPort> parse_host_port(std::string_view text) {
  const auto parts = split_host(text);
  if (!parts || !parts->port) {
    return Error{ErrorCode::usage,
                 fmt::format("'{}' is not HOST:PORT, for example 127.0.0.1:7787 or [::1]:7787", text)};
  }
  const Result<std::uint16_t> port = parse_port(*parts->port, text);
  if (!port) return port.error();
  return HostPort{std::string(parts->host), *port};
}

bool is_loopback_host(std::string_view host) {
  const bool is_number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "::1" || (is_number && host.starts_with("127."));
}

bool is_address_literal(const std::string& host) {
  const std::string address = host.substr(0, host.find('%'));  // without the interface of a link-local one
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, address.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1;
}

std::string format_host_port(const HostPort& address) {
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", address.host, address.port)
                 : fmt::format("{}:{}", address.host, address.port);
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
  const auto parts = split_host(rest);
  if (parts && parts->host.find(',') != std::string_view::npos) {
    return Error{ErrorCode::usage,
                 fmt::format("'{}' is not a URL: between URLs a comma is followed by the next", rest)};
  }
  if (parts && !parts->port) {
    parsed.address = {std::string(parts->host), static_cast<std::uint16_t>(parsed.tls ? 443 : 80)};
    return parsed;
  }
  Result<HostPort> address = parse_host_port(rest);
  if (!address) return Error{ErrorCode::usage, fmt::format("'{}' is not a URL: {}", rest, address.error().message)};
  parsed.address = std::move(*address);
  return parsed;
}

namespace {

/// A comma may also be part of a password or a path.
std::vector<std::string_view> urls_of(std::string_view list) {
  std::vector<std::string_view> urls;
  for (std::size_t from = 0;;) {
    const std::size_t comma = std::min(list.find(",http://", from), list.find(",https://", from));
    urls.push_back(list.substr(from, comma - from));
    if (comma == std::string_view::npos) return urls;
    from = comma + 1;
  }
}

std::string one_without_user(std::string_view url) {
  const std::size_t scheme_end = url.find("://");
  const std::size_t begin = scheme_end == std::string_view::npos ? 0 : scheme_end + 3;
  const std::string_view authority = url.substr(begin, url.find('/', begin) - begin);
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return std::string(url);
  return std::string(url.substr(0, begin)) + std::string(url.substr(begin + at + 1));
}

}  // namespace

Result<std::vector<Url>> parse_urls(std::string_view urls) {
  std::vector<Url> parsed;
  for (const std::string_view url : urls_of(urls)) {
    auto one = parse_url(url);
    if (!one) return one.error();
    parsed.push_back(*std::move(one));
  }
  return parsed;
}

std::string without_user(std::string_view urls) {
  std::string shown;
  for (const std::string_view url : urls_of(urls)) shown += (shown.empty() ? "" : ",") + one_without_user(url);
  return shown;
}

}  // namespace perseus::http
