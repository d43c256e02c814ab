// A service's API on a free port of this machine, set up as `perseus serve` does it, with default settings.
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
  ApiOnPort(boost::asio::io_context& io, service::Service& service, access::Tokens& tokens, const Clock& clock)
      : api_(service, tokens, clock, without_bound()),
        http_(io, {}, [this](http::HttpRequest request, http::Responder responder) {
          api_.handle(std::move(request), std::move(responder));
        }) {
    const auto listening = http_.listen({"127.0.0.1", 0});
    PERSEUS_CHECK(listening.ok(), "a free port");
    port_ = *listening;
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Sends pending events to event streams; tests with event streams call it regularly.
  void tick() { api_.tick(); }

 private:
  /// Waits practically without a time limit, so that they do not end when a test advances the clock by an hour.
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
