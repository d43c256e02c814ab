#include "io/http/http_server.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <ctime>
#include <utility>

#include "io/http/connection.h"

namespace perseus::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

/// Flushes in a row, about half a millisecond; then other work has its turn.
constexpr int kMostFlushes = 64;
constexpr int kMostTakenIn = 64;

template <int name>
using TcpSetting = asio::detail::socket_option::integer<IPPROTO_TCP, name>;
/// TCP keep-alive detects a dead host within a minute: three probes without an answer, or data that are not
/// acknowledged. Linux's defaults are two hours and a quarter of an hour.
constexpr int kKeepAliveAfter_s = 30, kKeepAliveEvery_s = 10, kKeepAliveTimes = 3;
constexpr auto kTakenWithin = 60s;

/// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date() { return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(std::time(nullptr))); }

Error cannot_listen(const HostPort& address, const error_code& problem) {
  return {ErrorCode::unavailable, fmt::format("cannot listen on {}: {}", format_host_port(address), problem.message())};
}

}  // namespace

ServerCore::ServerCore(asio::io_context& context, HttpServerOptions settings, HttpHandler request_handler)
    : io(context),
      options(std::move(settings)),
      handler(std::move(request_handler)),
      turns(context),
      date(http_date()),
      timer_(context) {}

namespace {

/// `only_v6`: another acceptor has the same port of IPv4.
error_code bind_to(tcp::acceptor& taken, const tcp::endpoint& endpoint, bool only_v6) {
  error_code problem;
  taken.open(endpoint.protocol(), problem);
  if (!problem) taken.set_option(asio::socket_base::reuse_address(true), problem);
  if (!problem && only_v6) taken.set_option(asio::ip::v6_only(true), problem);
  // On Linux accepted sockets inherit these.
  if (!problem) taken.set_option(tcp::no_delay(true), problem);
  if (!problem) taken.set_option(asio::socket_base::keep_alive(true), problem);
  if (!problem) taken.set_option(TcpSetting<TCP_KEEPIDLE>(kKeepAliveAfter_s), problem);
  if (!problem) taken.set_option(TcpSetting<TCP_KEEPINTVL>(kKeepAliveEvery_s), problem);
  if (!problem) taken.set_option(TcpSetting<TCP_KEEPCNT>(kKeepAliveTimes), problem);
  if (!problem) {
    taken.set_option(TcpSetting<TCP_USER_TIMEOUT>(static_cast<int>(std::chrono::milliseconds(kTakenWithin).count())),
                     problem);
  }
  if (!problem) taken.bind(endpoint, problem);
  return problem;
}

/// IPv4 or IPv6 is off on this machine, or lacks this address.
bool is_missing(const error_code& problem) {
  return problem == asio::error::address_family_not_supported || problem == boost::system::errc::address_not_available;
}

/// Of all interfaces for kAnyHost; each once, as a name may have an address twice in /etc/hosts.
std::vector<asio::ip::address> addresses_of(asio::io_context& io, const std::string& host, error_code& problem) {
  if (host == kAnyHost) return {asio::ip::address_v6::any(), asio::ip::address_v4::any()};
  std::vector<asio::ip::address> addresses;
  tcp::resolver resolver(io);
  for (const auto& found : resolver.resolve(host, "", tcp::resolver::passive, problem)) {
    const asio::ip::address address = found.endpoint().address();
    if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
  }
  return addresses;
}

}  // namespace

Result<TakenAddress> take_address(asio::io_context& io, const HostPort& address) {
  error_code problem;
  const auto addresses = addresses_of(io, address.host, problem);
  if (problem || addresses.empty()) return cannot_listen(address, problem);
  TakenAddress taken{{}, address.port, {}};
  for (const asio::ip::address& one : addresses) {
    tcp::acceptor acceptor(io);
    const HostPort shown{one.to_string(), taken.port};
    problem = bind_to(acceptor, {one, taken.port}, addresses.size() > 1 && one.is_v6());
    if (is_missing(problem)) {
      taken.missing.push_back(fmt::format("{}: {}", format_host_port(shown), problem.message()));
      continue;
    }
    if (problem) return cannot_listen(shown, problem);
    taken.port = acceptor.local_endpoint().port();  // the same for all
    taken.acceptors.push_back(std::move(acceptor));
  }
  if (taken.acceptors.empty()) return cannot_listen(address, problem);
  return taken;
}

Result<std::uint16_t> ServerCore::listen(tcp::acceptor taken) {
  error_code problem;
  const tcp::endpoint endpoint = taken.local_endpoint(problem);
  if (!problem) taken.listen(asio::socket_base::max_listen_connections, problem);
  const int listening = problem ? -1 : taken.release(problem);
  if (problem) return cannot_listen({endpoint.address().to_string(), endpoint.port()}, problem);
  listeners_.push_back(std::make_unique<Listener>(io, listening, [weak = weak_from_this()] {
    if (const auto core = weak.lock()) core->take_in_some();
  }));
  return endpoint.port();
}

void ServerCore::take_in_some() {
  bool all = true;
  for (const auto& listener : listeners_) {
    int taken = 0;
    for (; taken < kMostTakenIn; ++taken) {
      auto next = listener->dequeue();
      if (!next) break;
      take_in(std::move(next->socket), next->peer);
    }
    all = all && taken < kMostTakenIn;
  }
  if (all) return;
  asio::post(io, [weak = weak_from_this()] {
    if (const auto core = weak.lock()) core->take_in_some();
  });
}

void ServerCore::take_in(tcp::socket socket, const tcp::endpoint& peer) {
  ++totals.accepted;
  if (connections_.size() >= options.connections) {
    ++totals.turned_away;
    return turn_away(socket, 503, "the server's limit of connections is reached");
  }
  std::string address = peer.address().to_string();
  if (!per_address_.take(address, options.connections_per_address)) {
    ++totals.turned_away_of_address;
    return turn_away(socket, 429,
                     fmt::format("connections from {}: {}; allowed: {}", counted_address(address),
                                 options.connections_per_address, options.connections_per_address));
  }
  const auto connection = options.tls
                              ? make_tls_connection(shared_from_this(), std::move(socket), std::move(address))
                              : make_plain_connection(shared_from_this(), std::move(socket), std::move(address));
  connection->place = connections_.insert(connections_.end(), connection);
  connection->begin();
}

void ServerCore::turn_away(tcp::socket& socket, int status, std::string_view why) const {
  if (options.tls) return;
  const HttpResponse refusal = error_response(status, why);
  const std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
      "Retry-After: 1\r\nConnection: close\r\n\r\n{}",
      status, reason_phrase(status), refusal.body->size(), *refusal.body);
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
}

void ServerCore::forget(Connection& connection) {
  per_address_.give_back(connection.peer());
  connections_.erase(connection.place);
  if (draining && connections_.empty()) asio::post(io, [keep = shared_from_this()] { keep->finish_drain(); });
}

void ServerCore::flush_in_turn(Connection& connection) {
  if (flushed_ < kMostFlushes) {
    ++flushed_;
    return connection.flush();
  }
  to_flush_.push_back(connection.weak_from_this());
  flush_later();
}

void ServerCore::flush_later() {
  if (std::exchange(will_flush_, true)) return;
  asio::post(io, [weak = weak_from_this()] {
    if (const auto core = weak.lock()) core->flush_some();
  });
}

void ServerCore::flush_some() {
  will_flush_ = false;
  begin_turn();
  for (int i = 0; i < kMostFlushes && !to_flush_.empty(); ++i) {
    const auto connection = to_flush_.front().lock();
    to_flush_.pop_front();
    if (connection) connection->flush();
  }
  if (!to_flush_.empty()) flush_later();
}

void ServerCore::start_sweeping() {
  const auto shortest =
      std::min({options.request_time, options.response_time, options.idle_time, options.comment_time});
  timer_.expires_after(std::clamp(shortest / 4, 5ms, 1000ms));
  timer_.async_wait([keep = std::weak_ptr(shared_from_this())](error_code problem) {
    const auto core = keep.lock();
    if (problem || !core) return;
    core->sweep();
    core->start_sweeping();
  });
}

void ServerCore::sweep() {
  const auto now = steady_clock::now();
  if (now >= next_date_) {
    date = http_date();
    next_date_ = now + 1s;
  }
  for (auto next = connections_.begin(); next != connections_.end();) {
    const std::shared_ptr<Connection> connection = *next++;
    connection->check_time(now);
  }
  if (now >= drained_by_) close_all();
}

void ServerCore::drain(std::chrono::milliseconds grace, std::function<void()> done) {
  draining = true;
  drained_by_ = steady_clock::now() + grace;
  drained_ = std::move(done);
  const std::vector<std::shared_ptr<Connection>> open(connections_.begin(), connections_.end());
  for (const auto& connection : open) connection->drain();
  if (connections_.empty()) asio::post(io, [keep = shared_from_this()] { keep->finish_drain(); });
}

void ServerCore::finish_drain() {
  if (!connections_.empty()) return;  // a connection was opened meanwhile
  listeners_.clear();
  if (const auto done = std::exchange(drained_, {})) done();
}

void ServerCore::close_all() {
  listeners_.clear();
  const std::vector<std::shared_ptr<Connection>> open(connections_.begin(), connections_.end());
  for (const auto& connection : open) connection->close();
}

HttpServerCounts ServerCore::counts() const {
  HttpServerCounts now = totals;
  now.connections = connections_.size();
  for (const auto& connection : connections_) {
    now.waiting += connection->active() ? 1 : 0;
    now.streams += connection->streaming() ? 1 : 0;
  }
  return now;
}

HttpServer::HttpServer(asio::io_context& io, HttpServerOptions options, HttpHandler handler)
    : core_(std::make_shared<ServerCore>(io, std::move(options), std::move(handler))) {
  core_->start_sweeping();
}

HttpServer::~HttpServer() {
  core_->close_all();
  core_->handler = {};
}

Result<std::uint16_t> HttpServer::listen(TakenAddress taken) {
  for (tcp::acceptor& acceptor : taken.acceptors) {
    if (const auto port = core_->listen(std::move(acceptor)); !port) return port.error();
  }
  return taken.port;
}

Result<std::uint16_t> HttpServer::listen(const HostPort& address) {
  auto taken = take_address(core_->io, address);
  if (!taken) return taken.error();
  return listen(std::move(*taken));
}

void HttpServer::drain(std::chrono::milliseconds grace, std::function<void()> done) {
  core_->drain(grace, std::move(done));
}

void HttpServer::use_certificate(TlsContext tls) {
  PERSEUS_CHECK(core_->options.tls && tls, "a server speaks TLS from its start or never");
  core_->options.tls = std::move(tls);
}

void HttpServer::set_limits(const HttpLimits& limits) { static_cast<HttpLimits&>(core_->options) = limits; }

HttpServerCounts HttpServer::counts() const {
  HttpServerCounts counts = core_->counts();
  counts.certificate_end_s = certificate_end_s(core_->options.tls);
  return counts;
}

void Responder::send(HttpResponse response) const {
  if (const auto connection = exchange_->connection.lock()) connection->answer(*exchange_, response);
}

void Responder::on_closed(std::function<void(bool by_client)> closed) const {
  if (open()) {
    exchange_->closed = std::move(closed);
  } else {
    closed(false);
  }
}

void Responder::name(std::string_view route) const { exchange_->route = route; }

void Responder::open_stream() const {
  if (const auto connection = exchange_->connection.lock()) connection->open_stream(*exchange_);
}

bool Responder::event(std::shared_ptr<const std::string> text) const {
  const auto connection = exchange_->connection.lock();
  return exchange_->stream && connection && connection->stream_event(std::move(text));
}

bool Responder::event(std::string_view id, std::string_view name, std::string_view data) const {
  return event(event_text(id, name, data));
}

std::shared_ptr<const std::string> event_text(std::string_view id, std::string_view name, std::string_view data) {
  std::string text;
  if (!id.empty()) text += fmt::format("id: {}\n", id);
  if (!name.empty()) text += fmt::format("event: {}\n", name);
  while (true) {  // one "data:" line per line of text
    const std::size_t end = data.find('\n');
    text += fmt::format("data: {}\n", data.substr(0, end));
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + 1);
  }
  text += '\n';
  return std::make_shared<const std::string>(std::move(text));
}

void Responder::end_stream() const {
  const auto connection = exchange_->connection.lock();
  if (exchange_->stream && connection) connection->end_stream();
}

bool Responder::open() const {
  const auto connection = exchange_->connection.lock();
  return connection && !connection->closed() &&
         (!exchange_->answered || (exchange_->stream && connection->streaming()));
}

}  // namespace perseus::http
