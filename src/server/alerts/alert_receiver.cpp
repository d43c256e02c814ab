#include "server/alerts/alert_receiver.h"

#include <algorithm>

#include "io/http/url.h"

namespace perseus::alerts {
namespace {

std::size_t end_of_host(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  return std::min(url.find_first_of("/?#", begin), url.size());
}

}  // namespace

std::string host_of_receiver(const std::string& url) { return url.substr(0, end_of_host(url)); }

std::string target_of_receiver(const std::string& url) {
  std::string target = url.substr(end_of_host(url));
  target.resize(std::min(target.find('#'), target.size()));
  return target.starts_with('/') ? target : "/" + target;
}

Status check_receiver_url(const std::string& url) {
  const std::string host = host_of_receiver(url);
  if (host.find('@') != std::string::npos) {
    return Error{ErrorCode::usage, "the URL contains a user; allowed: a URL without one, and a bearer token in a file"};
  }
  if (const auto parsed = http::parse_url(host); !parsed) return parsed.error();
  const bool is_text = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f; });
  if (is_text) return Ok{};
  return Error{ErrorCode::usage, "the URL contains a space or a character that is not ASCII; allowed: %XX"};
}

}  // namespace perseus::alerts
