#include "server/routes/list_pages.h"

#include <fmt/format.h>

#include <cmath>

#include "io/http/content_coding.h"

namespace perseus::routes {
namespace {

constexpr std::size_t kMostKept = 64;           // pages
constexpr std::size_t kLeastCompressed = 1024;  // bytes
constexpr double kMinute = 60;

}  // namespace

http::HttpResponse ListPages::answer(const http::HttpRequest& request, const Wanted& wanted,
                                     const std::function<std::string()>& make) {
  const std::string state = fmt::format("{}-{}", wanted.revision, std::floor(wanted.now_s / kMinute));
  if (state != of_) known_.clear();
  of_ = state;
  const std::string tag = fmt::format("W/\"{}-{}{}{}\"", server_, state, wanted.whose.empty() ? "" : "-", wanted.whose);
  http::HttpResponse response{200, "application/json", nullptr, {}};
  response.headers = {{"Cache-Control", "private, no-cache"}, {"ETag", tag}, {"Vary", "Accept-Encoding"}};
  if (request.header("If-None-Match") == tag) {
    response.status = 304;
    return response;
  }
  if (request.method == "HEAD") return response;
  const std::string key = wanted.whose + " " + wanted.query;
  auto known = known_.find(key);
  if (known == known_.end()) {
    if (known_.size() >= kMostKept) known_.clear();
    known = known_.emplace(key, Known{std::make_shared<const std::string>(make()), nullptr}).first;
  }
  Known& page = known->second;
  response.body = page.plain;
  if (page.plain->size() < kLeastCompressed || !http::accepts_gzip(request)) return response;
  if (!page.compressed) page.compressed = std::make_shared<const std::string>(http::gzipped(*page.plain, 1));
  response.body = page.compressed;
  response.headers.emplace_back("Content-Encoding", "gzip");
  return response;
}

}  // namespace perseus::routes
