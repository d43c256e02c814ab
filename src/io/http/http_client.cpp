#include "io/http/http_client.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <utility>

#include "base/split.h"
#include "io/http/tls.h"

namespace perseus::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

/// Receives the outcome of an operation that the caller starts and then waits for.
class Waited {
 public:
  Waited(asio::io_context& io, const std::stop_token& stop)
      : io_(io), stop_(stop), stopped_(stop, [&io] { io.stop(); }) {}
  auto operator()() {
    problem_ = asio::error::would_block;
    return [this](error_code problem, auto&&...) { problem_ = problem; };
  }
  error_code wait() {
    io_.restart();
    if (stop_.stop_requested()) return asio::error::operation_aborted;
    io_.run();
    return stop_.stop_requested() ? asio::error::operation_aborted : problem_;
  }

 private:
  asio::io_context& io_;
  std::stop_token stop_;
  error_code problem_;
  std::stop_callback<std::function<void()>> stopped_;
};

using Request = http::request<http::string_body>;

/// Progress of an exchange, and whether the connection is reusable.
struct Outcome {
  error_code problem;
  bool answered = false;  ///< a byte of an answer arrived
  bool reusable = false;
  bool passed_over = false;
};

/// Until when an answer must begin and end.
struct Limits {
  std::chrono::steady_clock::time_point begins, ends;
};

/// Sends the request and reads the answer; `passes_over`: not that of a server that stands by.
template <class Stream>
Outcome exchange(Stream& stream, Waited& waited, Limits limits, const Request& request, std::uint64_t most_bytes,
                 bool passes_over, HttpReply& reply) {
  beast::get_lowest_layer(stream).expires_at(limits.begins);
  http::async_write(stream, request, waited());
  if (const error_code problem = waited.wait()) return {problem};
  beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(most_bytes);
  if (request.method() == http::verb::head) parser.skip(true);
  http::async_read_header(stream, buffer, parser, waited());
  if (const error_code problem = waited.wait()) return {problem, parser.got_some()};
  const auto& head = parser.get();
  reply = {static_cast<int>(head.result_int()), std::string(head[http::field::content_type]), "",
           std::string(head[http::field::etag]), std::string(head[http::field::retry_after])};
  if (passes_over && head.find(kStandbyHeader) != head.end()) return {{}, true, false, true};
  beast::get_lowest_layer(stream).expires_at(limits.ends);
  std::array<char, 8192> bytes;
  while (!parser.is_done()) {
    parser.get().body() = {bytes.data(), bytes.size(), true};
    http::async_read_some(stream, buffer, parser, waited());
    error_code problem = waited.wait();
    reply.body.append(bytes.data(), bytes.size() - parser.get().body().size);
    if (problem == http::error::need_buffer) problem = {};
    // The stream's timer does not end an answer whose next bytes are always there.
    const bool late = std::chrono::steady_clock::now() >= limits.ends;
    if (!problem && !parser.is_done() && late) problem = beast::error::timeout;
    if (problem) return {problem, true};
  }
  return {{}, true, parser.keep_alive() && buffer.size() == 0};
}

}  // namespace

/// A connection to one of the servers, or none at present.
class HttpConnection::Transport {
 public:
  explicit Transport(HttpPeer peer) : peer_(std::move(peer)) {}

  HttpPeer& peer() { return peer_; }
  [[nodiscard]] int connections() const { return connections_; }

  [[nodiscard]] Error unavailable(std::string_view why) const {
    return {ErrorCode::unavailable,
            fmt::format("{}://{}: {}", url_.tls ? "https" : "http", format_host_port(url_.address), why)};
  }

  /// With the server of the last call. With the next one if it cannot be reached or stands by. After a call that was
  /// cut off, from the next call on; where there is none, a GET asks the next server if an answer has not begun after
  /// this one's share of the time.
  Result<HttpReply> talk(const HttpCall& call, bool keep, const std::stop_token& stop) {
    HttpReply reply;
    bool reusable = false;
    // Also after an exception: a pending operation is never continued.
    const auto tidy = std::unique_ptr<bool, std::function<void(bool*)>>(&reusable, [this](const bool* keeps) {
      if (!*keeps) close();
    });
    const auto urls = parse_urls(peer_.url);
    if (!urls) return urls.error();
    if (!io_) io_ = std::make_unique<asio::io_context>(1);
    Waited waited(*io_, stop);
    const auto ends = std::chrono::steady_clock::now() + peer_.timeout;
    for (std::size_t others = urls->size() - 1;; --others) {
      url_ = (*urls)[at_ % urls->size()];
      const Asked asked =
          ask(waited, {ends, others, !keep && call.method == "GET"}, request_of(call, keep), reply, stop);
      reusable = keep && asked.reusable;
      if (asked.status && !asked.not_begun) return reply;
      drop_streams();
      ++at_;
      if (others > 0 && asked.not_begun && !stop.stop_requested()) continue;
      return asked.status ? Result<HttpReply>(reply) : asked.status.error();
    }
  }

  void close() {
    drop_streams();
    io_.reset();  // with any pending operations
  }

 private:
  using Until = std::chrono::steady_clock::time_point;
  struct Patience {
    Until ends;
    std::size_t others;   ///< servers left to ask
    bool may_ask_others;  ///< what one has not answered
    /// A host that does not answer must leave time for the others.
    [[nodiscard]] Until connected_by() const {
      constexpr std::chrono::seconds longest{3};
      return others == 0 ? ends : std::min(ends, std::chrono::steady_clock::now() + longest);
    }
    [[nodiscard]] Until answered_by() const {
      const auto now = std::chrono::steady_clock::now();
      return may_ask_others ? now + (ends - now) / static_cast<int>(others + 1) : ends;
    }
  };
  struct Asked {
    Status status;
    bool not_begun = false;  ///< the server was not reached, stands by or was silent: another one may be asked
    bool reusable = false;
  };

  Asked ask(Waited& waited, const Patience& patience, const Request& request, HttpReply& reply,
            const std::stop_token& stop) {
    const bool kept = connected();
    if (Status made = connect(waited, patience.connected_by()); !made) return {made, true};
    Outcome outcome = exchange_by(waited, patience, request, reply);
    const bool closed_meanwhile = kept && outcome.problem && !outcome.answered && !stop.stop_requested() &&
                                  outcome.problem != beast::error::timeout;
    if (closed_meanwhile) {
      drop_streams();
      if (Status made = connect(waited, patience.connected_by()); !made) return {made, true};
      outcome = exchange_by(waited, patience, request, reply);
    }
    if (outcome.problem) return {cut_off(outcome), patience.may_ask_others && !outcome.answered};
    return {Ok{}, outcome.passed_over, outcome.reusable};
  }

  void drop_streams() {
    secure_.reset();
    plain_.reset();
  }
  [[nodiscard]] bool connected() const { return plain_ || secure_; }

  [[nodiscard]] Error failure(const error_code& problem) const {
    const std::string why =
        problem == beast::error::timeout ? fmt::format("no answer within {} s", timeout_s()) : problem.message();
    return unavailable(why);
  }
  [[nodiscard]] Error cut_off(const Outcome& outcome) const {
    const error_code& problem = outcome.problem;
    const bool closed = problem == asio::error::connection_reset || problem == http::error::end_of_stream;
    if (url_.tls || outcome.answered || !closed) return failure(problem);
    return unavailable("closed without an answer, as a server of https does");
  }
  /// With the reason for which the server's certificate was refused, if it was.
  [[nodiscard]] Error handshake_failure(const error_code& problem) {
    if (ERR_GET_REASON(problem.value()) == SSL_R_WRONG_VERSION_NUMBER) return unavailable("it speaks http, not https");
    const long verified = SSL_get_verify_result(secure_->native_handle());
    if (verified == X509_V_OK) return failure(problem);
    // Where its names are wrong, asio gives no reason.
    const std::string why = verified == X509_V_ERR_UNSPECIFIED ? fmt::format("it is not for {}", url_.address.host)
                                                               : std::string(X509_verify_cert_error_string(verified));
    return unavailable(fmt::format("{}: {}", problem.message(), why));
  }
  [[nodiscard]] double timeout_s() const { return static_cast<double>(peer_.timeout.count()) / 1000; }

  [[nodiscard]] Request request_of(const HttpCall& call, bool keep) const {
    Request request{http::string_to_verb(call.method), url_.path + call.target, 11};
    request.set(http::field::host, format_host_port(url_.address));
    request.set(http::field::user_agent, "perseus");
    if (!keep) request.set(http::field::connection, "close");
    const std::string_view token = trimmed(peer_.token.empty() ? url_.password : peer_.token);  // as `cat` of a file
    if (!token.empty()) request.set(http::field::authorization, fmt::format("Bearer {}", token));
    if (!call.authorization.empty()) request.set(http::field::authorization, call.authorization);
    if (!call.idempotency_key.empty()) request.set("Idempotency-Key", call.idempotency_key);
    if (!call.if_match.empty()) request.set(http::field::if_match, call.if_match);
    if (!call.body.empty()) request.set(http::field::content_type, call.content_type);
    request.body() = call.body;
    request.prepare_payload();
    return request;
  }

  Status connect(Waited& waited, Until ends) {
    if (connected()) return Ok{};
    error_code problem;
    asio::ip::tcp::resolver resolver(*io_);
    const auto found = resolver.resolve(url_.address.host, std::to_string(url_.address.port), problem);
    if (problem) return failure(problem);
    beast::tcp_stream stream(*io_);
    stream.expires_at(ends);
    stream.async_connect(found, waited());
    problem = waited.wait();
    // So asio reports a socket that cannot be opened: this one gives the reason.
    if (problem == asio::error::operation_aborted && !stream.socket().is_open()) {
      stream.socket().open(found->endpoint().protocol(), problem);
    }
    if (problem) return failure(problem);
    error_code ignored;
    stream.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    // the connection may outlive many child processes
    (void)fcntl(stream.socket().native_handle(), F_SETFD, FD_CLOEXEC);
    ++connections_;
    if (!url_.tls) {
      plain_.emplace(std::move(stream));
      return Ok{};
    }
    if (!tls_) {
      auto context = client_tls(peer_.ca_file);
      if (!context) return context.error();
      tls_ = *std::move(context);
    }
    secure_.emplace(std::move(stream), *tls_);
    secure_->set_verify_callback(asio::ssl::host_name_verification(url_.address.host));
    // RFC 6066, section 3: no address literals; some servers end the handshake at one.
    if (!is_address_literal(url_.address.host)) {
      SSL_set_tlsext_host_name(secure_->native_handle(), url_.address.host.c_str());
    }
    secure_->async_handshake(asio::ssl::stream_base::client, waited());
    if ((problem = waited.wait())) return handshake_failure(problem);
    return Ok{};
  }

  Outcome exchange_by(Waited& waited, const Patience& patience, const Request& request, HttpReply& reply) {
    const bool passes_over = patience.others > 0;
    const Limits limits{patience.answered_by(), patience.ends};
    return secure_ ? exchange(*secure_, waited, limits, request, peer_.most_body_bytes, passes_over, reply)
                   : exchange(*plain_, waited, limits, request, peer_.most_body_bytes, passes_over, reply);
  }

  HttpPeer peer_;
  Url url_;                               ///< of the server of the last call
  std::size_t at_ = 0;                    ///< its place in the list, modulo the list's length
  std::unique_ptr<asio::io_context> io_;  ///< none before the first call: making it may fail
  TlsContext tls_;
  std::optional<beast::tcp_stream> plain_;
  std::optional<beast::ssl_stream<beast::tcp_stream>> secure_;
  int connections_ = 0;
};

HttpConnection::HttpConnection(HttpPeer peer) : transport_(std::make_unique<Transport>(std::move(peer))) {}
HttpConnection::HttpConnection(HttpConnection&&) noexcept = default;
HttpConnection& HttpConnection::operator=(HttpConnection&&) noexcept = default;
HttpConnection::~HttpConnection() = default;

void HttpConnection::set_timeout(std::chrono::milliseconds timeout) { transport_->peer().timeout = timeout; }
int HttpConnection::connections() const { return transport_->connections(); }
void HttpConnection::close() { transport_->close(); }

namespace {

Result<HttpReply> whole_reply(HttpConnection::Transport& transport, const HttpCall& call, bool keep,
                              const std::stop_token& stop) {
  try {
    return transport.talk(call, keep, stop);
  } catch (const std::exception& error) {  // usually a temporary lack of descriptors or memory
    return transport.unavailable(fmt::format("cannot connect: {}", error.what()));
  }
}

}  // namespace

Result<HttpReply> HttpConnection::call(const HttpCall& call, const std::stop_token& stop) {
  return whole_reply(*transport_, call, true, stop);
}

Result<HttpReply> http_call(const HttpPeer& peer, const HttpCall& call, const std::stop_token& stop) {
  HttpConnection::Transport transport(peer);
  return whole_reply(transport, call, false, stop);
}

}  // namespace perseus::http
