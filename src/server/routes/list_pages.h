// Cache of the list of jobs as HTTP answers: each page is formatted and compressed once for all clients.
//
// Input:   a page's query as text, the caller, and a function that makes the page.
// Output:  the answer with its entity tag; 304 where the client has it; no body for HEAD.
// Errors:  none.
// Cost:    a lookup for a cached page. A page is cached until the list changes, for a minute at most, since estimated
//          savings grow with time.
// Threads: io thread.
// Source:  docs/decisions/0034.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "io/http/http_message.h"

namespace perseus::routes {

class ListPages {
 public:
  /// `server`: unique per server and start.
  explicit ListPages(std::string server) : server_(std::move(server)) {}

  struct Wanted {
    std::string query;  ///< distinguishes pages
    std::string whose;  ///< distinguishes tokens that see different jobs; empty: all jobs
    std::uint64_t revision = 0;
    double now_s = 0;
  };
  http::HttpResponse answer(const http::HttpRequest& request, const Wanted& wanted,
                            const std::function<std::string()>& make);

 private:
  struct Known {
    std::shared_ptr<const std::string> plain, compressed;
  };
  std::string server_;
  std::string of_;  ///< revision and minute of the cached pages
  std::map<std::string, Known> known_;
};

}  // namespace perseus::routes
