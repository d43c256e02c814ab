// Connects all ranks of a host to the server over one connection.
//
// Problem: with one or two TLS connections per rank, a cluster's server spends most of its memory and time on
//          connections, and a notice has to be sent over all of them. The ranks of a host connect to this relay
//          instead of the server; it sends one request at a time for all of them (POST /v1/exchange).
// Input:   the ranks' requests to /v1/jobs. Each is forwarded with its own token; the relay has none.
// Output:  the server's answers. The relay parks a rank that waits for a plan; its wait, and reports of iterations,
//          go with the next exchange, which takes `exchange_s` at most. A wait whose time is over ends with the
//          exchange that it is in. Everything else, and reports of profiling windows, is forwarded at once over a
//          second connection, which closes after some idle seconds. Of a rank whose process ends while it waits, the
//          relay tells the server.
// Errors:  503 with the reason where the server does not answer, so that clients behave as without a server; 404 for
//          requests that a relay does not forward (dashboards, event streams, clients of Zeus); 403 for pages of
//          other sites.
// Cost:    a host of 8 ranks: one request each 3 s; six waiting threads. More than four tokens take turns.
// Threads: everything on the io thread except waiting for the server.
// Source:  docs/decisions (0036).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "io/http/cross_site.h"
#include "io/http/http_client.h"
#include "io/http/http_server.h"

namespace perseus::relay {

struct RelayOptions {
  http::HttpPeer server;  ///< its token is not used
  double exchange_s = 3;  ///< longest; below the 5 s after which a client gives up on a report
  double answer_s = 10;   ///< additional time for the server's answer
  std::function<void(const std::string&)>
      log;  ///< reports that the server does not answer, and that it answers again; may be empty
};

class Relay {
 public:
  Relay(boost::asio::io_context& io, RelayOptions options);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  /// Abandons requests without an answer. The io_context must not run afterwards.
  ~Relay();

  void handle(http::HttpRequest request, http::Responder responder);

 private:
  using Time = std::chrono::steady_clock::time_point;
  /// A rank that waits for a plan.
  struct Wait {
    std::string job, rank, have, iteration, epoch;  ///< as in the request, numbers
    std::optional<Time> until;
    http::Responder responder;
    bool left_waiting = false;  ///< by an exchange that the server answered
  };
  /// A registration or a report of iterations.
  struct Posted {
    std::string job, body;
    http::Responder responder;
  };
  /// The contents of one request; the waits by number.
  struct Asked {
    std::vector<std::uint64_t> waits;
    std::vector<Posted> ranks, reports;
    std::string body;
  };
  /// The ranks with one token; exists while it has something to send.
  struct Group {
    std::map<std::uint64_t, Wait> waits;
    std::deque<Posted> ranks, reports;
    bool asking = false;  ///< a thread is sending its request
    Time asked_at;
    http::HttpConnection connection;
  };
  using Groups = std::map<std::string, Group>;  ///< by Authorization header
  /// A request of its own, and who gets the answer.
  struct Direct {
    http::HttpCall call;
    std::optional<http::Responder> responder;
    std::optional<Wait> wait;  ///< parked if its plan is unchanged
  };

  void wait_for_plan(std::string job, std::string rank, const http::HttpRequest& request, http::Responder responder);
  void park(const std::string& authorization, Wait wait);
  Group& group_of(const std::string& authorization);
  void pass_on(http::HttpCall call, const http::Responder& responder);
  void ask_directly(Direct direct);
  void answered(Direct direct, const Result<http::HttpReply>& reply);
  void end_waits();
  void exchanged(const std::string& authorization, Asked asked, const Result<http::HttpReply>& reply);
  void leave_waiting(const std::string& authorization, std::uint64_t wait);
  std::optional<http::Responder> take_wait(const std::string& authorization, std::uint64_t wait);
  void forget_if_idle(Groups::iterator group);
  void heard(const Result<http::HttpReply>& reply);

  // These run on threads of their own.
  void exchange(const std::stop_token& stop);
  Groups::iterator next_group();
  static Asked next_asked(Group& group, double exchange_s);
  void pass_on_directly(const std::stop_token& stop);

  boost::asio::io_context& io_;
  RelayOptions options_;
  http::KnownHosts hosts_;
  boost::asio::steady_timer timer_;
  std::uint64_t last_wait_ = 0;
  bool silent_ = false;

  std::mutex mutex_;  ///< guards the following
  std::condition_variable_any changed_;
  Groups groups_;
  std::deque<Direct> directs_;
  std::vector<std::jthread> threads_;
};

}  // namespace perseus::relay
