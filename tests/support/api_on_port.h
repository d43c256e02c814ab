// A service's API on a free port of this machine, as `perseus serve` puts it together, without its settings.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <utility>

#include "base/clock.h"
#include "io/http/http_server.h"
#include "server/routes/api.h"

namespace perseus::testing {

class ApiOnPort {
 public:
  ApiOnPort(boost::asio::io_context& io, service::Service& service, service::Tokens& tokens, const Clock& clock)
      : api_(service, tokens, clock, without_bound()),
        http_(io, {}, [this](http::HttpRequest request, http::Responder responder) {
          api_.handle(std::move(request), std::move(responder));
        }) {
    const auto listening = http_.listen({"127.0.0.1", 0});
    PERSEUS_CHECK(listening.ok(), "a free port");
    port_ = *listening;
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Sends what event streams wait for; to be called now and then where there are any.
  void tick() { api_.tick(); }

 private:
  /// Waits as the service's own: a test that turns the clock by an hour does not want them to end by themselves.
  static routes::ApiOptions without_bound() {
    routes::ApiOptions options;
    options.longest_wait_s = 1e9;
    return options;
  }
  routes::Api api_;
  http::HttpServer http_;
  std::uint16_t port_ = 0;
};

}  // namespace perseus::testing
