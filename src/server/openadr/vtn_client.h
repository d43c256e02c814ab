// Calls of an OpenADR 3.1 client (VEN) to a utility's server (VTN).
//
// Input:   the server's URL, client credentials, optionally a program's name and targets.
// Output:  complete lists of events. The token comes from the URL that the server names (GET /auth/server) by OAuth2
//          client credentials; it is renewed before it expires, and once after an answer of 401. Lists are read page by
//          page until one has nothing new, since a server may make pages smaller than asked for.
// Errors:  unavailable with the call and the reason: no answer in time, another status, text that is no list, more
//          events than allowed, a program that is not there. Secrets and tokens are in no message.
// Cost:    programs and events: two calls each, and one more per page; at most kMostPages pages and kMostBytes each.
// Threads: one; blocks.
// Source:  OpenADR 3.1.0; RFC 6749, section 4.4.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "io/http/http_client.h"
#include "server/openadr/event_follower.h"
#include "server/openadr/event_reporter.h"

namespace perseus::openadr {

struct VtnOptions {
  http::HttpPeer peer;  ///< its token is not used
  std::string client_id, client_secret, scope;
  std::string token_url;  ///< empty: the server names it
  std::string program;    ///< its name; empty: all programs
  std::vector<std::string> targets;
};

class VtnClient final : public EventSource, public ReportReceiver {
 public:
  static constexpr int kMostPages = 200;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20U, kMostPageBytes = std::size_t{8} << 20U;

  /// `clock`: for the expiry of tokens; never stepped.
  VtnClient(VtnOptions options, const Clock& clock);
  Result<ListedEvents> events() override;
  Result<std::optional<GridEvent>> event(const std::string& id) override;
  /// Reports: with the token of a client that may have their scope; one without it still has its limits followed.
  Result<std::vector<StoredReport>> reports(const std::string& event, const std::string& client_name) override;
  Status create(const std::string& report) override;
  Status replace(const std::string& id, const std::string& report) override;
  /// Of the last call, or of its token: the Retry-After of an answer of 429 or 503, if it is in seconds.
  [[nodiscard]] double asked_wait_s() const override { return asked_wait_s_; }
  /// Any other call, with a token; `what` names it in messages. An answer other than 2xx is an error, except that of
  /// `also`; with 404 also 403.
  /// A POST has a connection of its own: a kept one could send it twice.
  Result<http::HttpReply> call(const http::HttpCall& call, int also = 0);
  /// A list, read page by page, with each object once, to the page with an object that is the last one needed; `target`
  /// ends in '?' or '&'. `pages`: that had something new.
  template <class Object, class Parse, class IsLast = bool (*)(const Object&)>
  Result<std::vector<Object>> list(
      const std::string& target, Parse parse, int* pages = nullptr,
      IsLast is_last = [](const Object&) { return false; }) {
    std::vector<Object> all;
    std::set<std::string> ids;
    const Status read = visit_pages(target, [&](const std::string& body) -> Result<bool> {
      Result<std::vector<Object>> page = parse(body);
      if (!page) return page.error();
      const std::size_t before = ids.size();
      for (Object& object : *page) {
        if (ids.insert(object.id).second) all.push_back(std::move(object));
      }
      const bool any_new = ids.size() > before;
      if (pages != nullptr) *pages += any_new ? 1 : 0;
      return any_new && std::ranges::none_of(all, is_last);
    });
    if (!read) return read.error();
    return all;
  }

 private:
  Result<std::string> token();
  Result<std::string> token_url();
  Error wrong_status(const std::string& what, const http::HttpReply& reply);
  /// `visit` returns whether a page had something new.
  Status visit_pages(const std::string& target, const std::function<Result<bool>(const std::string& body)>& visit);
  [[nodiscard]] std::string filters() const;
  [[nodiscard]] bool concerns_us(const GridEvent& event) const;

  VtnOptions options_;
  const Clock& clock_;
  http::HttpConnection connection_;
  std::string token_, program_id_;
  double renew_at_s_ = 0, asked_wait_s_ = 0;
};

/// Seconds of a Retry-After, at most a day; 0: it is a date, or something else.
double parse_retry_after(std::string_view text);
/// The URL of the token endpoint in an answer of GET /auth/server.
Result<std::string> parse_token_url(const std::string& body);
struct AccessToken {
  std::string token;
  double expires_in_s = 0;
};
/// An answer of the token endpoint.
Result<AccessToken> parse_access_token(const std::string& body);

}  // namespace perseus::openadr
