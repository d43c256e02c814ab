// Pages of the list of jobs as answers: formatted and compressed once for everybody who asks for the same one.
//
// Input:   a page's query as text, who asks, and what makes the page.
// Output:  the answer with its entity tag; 304 where the client has it; no body for HEAD.
// Errors:  none.
// Cost:    a look-up where the page is known. A page is kept until the list changes, for a minute at most, since
//          savings that are estimated grow with time.
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
  /// `server`: differs from every other server's, and from the same one's after a restart.
  explicit ListPages(std::string server) : server_(std::move(server)) {}

  struct Wanted {
    std::string query;  ///< what differs between pages
    std::string whose;  ///< differs between tokens that see different jobs; empty: all jobs
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
  std::string of_;  ///< revision and minute of the pages that are kept
  std::map<std::string, Known> known_;
};

}  // namespace perseus::routes
