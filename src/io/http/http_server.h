// An HTTP/1.1 server for very many mostly waiting clients.
//
// Problem: thousands of ranks keep a connection each, and most of them wait for an answer that comes minutes later.
// Input:   an io_context that one thread runs, and a handler that receives whole requests.
// Output:  one answer per request, in the order of a connection's requests, whenever the handler's Responder is used;
//          or a stream of server-sent events. Input that is not HTTP, too large or too slow is answered with 4xx and
//          closed before the handler sees it.
// Errors:  only of listening.
// Cost:    a waiting connection keeps about 1 kB (no buffers: all connections share one read buffer; TLS adds some 15
//          kB); a request some ten microseconds, most of them the kernel's.
// Threads: everything on the io_context's one thread, except one thread per address that only accepts.
// Source:  docs/decisions/0012, 0024.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/http/http_message.h"
#include "io/http/request_reader.h"
#include "io/http/tls.h"

namespace perseus::http {

class PendingAnswer;
class ServerCore;

/// The right to answer one request: copyable, used once, at any later time. When the last copy goes unused, the client
/// gets a 500. Answering a client that has gone away does nothing.
class Responder {
 public:
  explicit Responder(std::shared_ptr<PendingAnswer> exchange) : exchange_(std::move(exchange)) {}

  void send(HttpResponse response) const;
  /// Calls back once if the connection ends before its answer or before the end of the stream. `by_client`: the
  /// client's host has closed it, as it does when the client's process ends; false: it may only be cut off.
  void on_closed(std::function<void(bool by_client)> closed) const;
  /// Name of the request in statistics, for example "/v1/jobs/{id}"; must live as long as the server.
  void name(std::string_view route) const;

  /// Answers with a text/event-stream that stays open; comment lines keep it alive while there are no events.
  void open_stream() const;
  /// Sends a server-sent event formatted by event_text(), which any number of streams may share, in a later turn.
  /// False: the client has disconnected (or is too slow).
  bool event(std::shared_ptr<const std::string> text) const;
  bool event(std::string_view id, std::string_view name, std::string_view data) const;
  void end_stream() const;

  [[nodiscard]] bool open() const;

 private:
  std::shared_ptr<PendingAnswer> exchange_;
};

/// One server-sent event; empty id or name are left out.
std::shared_ptr<const std::string> event_text(std::string_view id, std::string_view name, std::string_view data);

using HttpHandler = std::function<void(HttpRequest, Responder)>;

/// An answered request, for metrics and logs.
struct ServedRequest {
  std::string_view route;  ///< see Responder::name(); "" for requests that never reached the handler
  int status;
  double took_s;
};

/// What HttpServer::set_limits() replaces.
struct HttpLimits {
  RequestLimits limits;
  std::size_t connections = 20000;
  std::size_t connections_per_address = SIZE_MAX;  ///< see io/http/address_counts.h; loopback has no limit
  std::chrono::milliseconds request_time{20000};   ///< from a request's first byte to its last; TLS handshake too
  bool operator==(const HttpLimits&) const = default;
};

struct HttpServerOptions : HttpLimits {
  /// True for requests that wait until pending requests of ranks are answered.
  std::function<bool(const HttpRequest&)> is_reader;
  std::size_t unfinished_bytes = 128U << 20U;  ///< of all incomplete bodies together
  /// Called when a head has arrived without its body: returns an answer, after which the connection is closed, or
  /// nothing.
  std::function<std::optional<HttpResponse>(const HttpRequest& head)> refuse;
  std::chrono::milliseconds response_time{30000};  ///< for the client to receive the answer
  std::size_t slowest_bytes_per_s = 64U << 10U;    ///< extends the time for large answers: size divided by this
  std::chrono::milliseconds idle_time{900000};     ///< without any request
  std::chrono::milliseconds comment_time{15000};   ///< between keep-alive comments on a stream
  std::size_t stream_bytes = 4U << 20U;            ///< may wait for a stream's reader before the stream is cut
  TlsContext tls;                                  ///< none: plain HTTP
  std::function<void(const ServedRequest&)> served;
};

struct HttpServerCounts {
  std::size_t connections = 0;  ///< open now
  std::size_t waiting = 0;      ///< of these, with a request that is not answered yet
  std::size_t streams = 0;      ///< of these, event streams
  std::uint64_t accepted = 0;
  std::uint64_t turned_away = 0;             ///< over the limit of connections
  std::uint64_t turned_away_of_address = 0;  ///< over the limit of connections of one address
  std::uint64_t timed_out = 0;
  std::optional<double> certificate_end_s;  ///< Unix seconds; nothing: plain HTTP
};

/// As a host: all addresses of this machine, of IPv4 and IPv6.
inline constexpr std::string_view kAnyHost = "*";

struct TakenAddress {
  std::vector<boost::asio::ip::tcp::acceptor> acceptors;  ///< one for each address of the host
  std::uint16_t port = 0;
  std::vector<std::string> missing;  ///< addresses that this machine lacks, with the reason
};
/// Binds all addresses of a host, of IPv4 and IPv6, on which listen() accepts later: until then connections are
/// refused. Error: unavailable.
Result<TakenAddress> take_address(boost::asio::io_context& io, const HostPort& address);

class HttpServer {
 public:
  HttpServer(boost::asio::io_context& io, HttpServerOptions options, HttpHandler handler);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();  ///< closes everything at once

  /// On all addresses of the host; port 0 takes a free one. Returns the port.
  Result<std::uint16_t> listen(const HostPort& address);
  Result<std::uint16_t> listen(TakenAddress taken);
  /// Closes idle connections and ends streams; the others close after their answer, or after `grace`. Connections are
  /// accepted until then, for probes; the handler sees HttpRequest::while_draining and rejects other requests.
  void drain(std::chrono::milliseconds grace, std::function<void()> done);
  [[nodiscard]] HttpServerCounts counts() const;
  /// Applies to new connections of a server that started with a certificate.
  void use_certificate(TlsContext tls);
  void set_limits(const HttpLimits& limits);

 private:
  std::shared_ptr<ServerCore> core_;
};

}  // namespace perseus::http
