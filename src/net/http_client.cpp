#include "net/http_client.h"

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

#include "net/tls.h"

namespace perseus {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

constexpr std::uint64_t most_body_bytes = std::uint64_t{1} << 30U;

/// Where an operation's outcome goes; each is started and then waited for.
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
/// Called with a stream that is connected; `start` and `wait` run one operation.
using OnHead = std::function<bool(int status, std::string_view content_type)>;
using OnBytes = std::function<bool(std::string_view)>;

/// Sends the request and gives the answer's body in pieces, as long as `on_bytes` wants them.
template <class Stream>
error_code exchange(Stream& stream, Waited& waited, const Request& request, bool endless, const OnHead& on_head,
                    const OnBytes& on_bytes) {
  http::async_write(stream, request, waited());
  if (const error_code problem = waited.wait()) return problem;
  beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(endless ? boost::none : boost::optional<std::uint64_t>(most_body_bytes));
  http::async_read_header(stream, buffer, parser, waited());
  if (const error_code problem = waited.wait()) return problem;
  const auto& head = parser.get();
  const std::string content_type(head[http::field::content_type]);
  if (on_head(head.result_int(), content_type)) beast::get_lowest_layer(stream).expires_never();
  std::array<char, 8192> bytes;
  while (!parser.is_done()) {
    parser.get().body() = {bytes.data(), bytes.size(), true};
    http::async_read_some(stream, buffer, parser, waited());
    error_code problem = waited.wait();
    const std::size_t count = bytes.size() - parser.get().body().size;
    if (count > 0 && !on_bytes({bytes.data(), count})) return {};
    if (problem == http::error::need_buffer) problem = {};
    if (problem) return problem;
  }
  return {};
}

Result<int> talk(const HttpPeer& peer, const HttpCall& call, const std::string& last_id, const OnHead& on_head,
                 const OnBytes& on_bytes, bool endless, const std::stop_token& stop) {
  const auto url = parse_url(peer.url);
  if (!url) return url.error();
  const auto fail = [&](const error_code& problem) {
    const std::string why = problem == beast::error::timeout
                                ? fmt::format("no answer within {} s", static_cast<double>(peer.timeout.count()) / 1000)
                                : problem.message();
    return Error{ErrorCode::unavailable,
                 fmt::format("{}://{}:{}: {}", url->tls ? "https" : "http", url->host, url->port, why)};
  };
  Request request{http::string_to_verb(call.method), url->path + call.target, 11};
  request.set(http::field::host, fmt::format("{}:{}", url->host, url->port));
  request.set(http::field::user_agent, "perseus");
  request.set(http::field::connection, "close");
  const std::string& token = peer.token.empty() ? url->password : peer.token;
  if (!token.empty()) request.set(http::field::authorization, "Bearer " + token);
  if (!last_id.empty()) request.set("Last-Event-ID", last_id);
  if (!call.body.empty()) request.set(http::field::content_type, call.content_type);
  request.body() = call.body;
  request.prepare_payload();

  asio::io_context io(1);
  Waited waited(io, stop);
  error_code problem;
  asio::ip::tcp::resolver resolver(io);
  const auto found = resolver.resolve(url->host, std::to_string(url->port), problem);
  if (problem) return fail(problem);
  beast::tcp_stream stream(io);
  stream.expires_after(peer.timeout);
  stream.async_connect(found, waited());
  if ((problem = waited.wait())) return fail(problem);
  if (!url->tls) {
    problem = exchange(stream, waited, request, endless, on_head, on_bytes);
    if (problem) return fail(problem);
    return 0;
  }
  const auto context = client_tls(peer.ca_file);
  if (!context) return context.error();
  beast::ssl_stream<beast::tcp_stream> secure(std::move(stream), **context);
  secure.set_verify_callback(asio::ssl::host_name_verification(url->host));
  SSL_set_tlsext_host_name(secure.native_handle(), url->host.c_str());
  secure.async_handshake(asio::ssl::stream_base::client, waited());
  if ((problem = waited.wait())) return fail(problem);
  problem = exchange(secure, waited, request, endless, on_head, on_bytes);
  if (problem) return fail(problem);
  return 0;
}

}  // namespace

Result<HttpReply> http_call(const HttpPeer& peer, const HttpCall& call, const std::stop_token& stop) {
  HttpReply reply;
  const auto on_head = [&](int status, std::string_view content_type) {
    reply.status = status;
    reply.content_type = content_type;
    return false;
  };
  const auto on_bytes = [&](std::string_view bytes) {
    reply.body += bytes;
    return true;
  };
  const auto done = talk(peer, call, {}, on_head, on_bytes, false, stop);
  if (!done) return done.error();
  return reply;
}

Result<HttpReply> follow_events(const HttpPeer& peer, const std::string& target, const std::string& after,
                                const std::function<bool(const ServerSentEvent&)>& on_event) {
  HttpReply reply;
  EventReader reader;
  bool stream = false;
  const auto on_head = [&](int status, std::string_view content_type) {
    reply.status = status;
    reply.content_type = content_type;
    stream = status == 200 && content_type.starts_with("text/event-stream");
    return stream;
  };
  const auto on_bytes = [&](std::string_view bytes) {
    if (!stream) {
      reply.body += bytes;
      return true;
    }
    reader.put(bytes);
    while (const auto event = reader.next()) {
      if (!on_event(*event)) return false;
    }
    return true;
  };
  const auto done = talk(peer, {"GET", target, "", ""}, after, on_head, on_bytes, true, {});
  if (!done) return done.error();
  return reply;
}

void EventReader::put(std::string_view bytes) { text_ += bytes; }

std::optional<ServerSentEvent> EventReader::next() {
  while (true) {
    const std::size_t end = text_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) {
      if (!std::exchange(has_data_, false)) continue;
      ServerSentEvent event = std::exchange(event_, {});
      event_.id = event.id;  // holds until another one comes
      return event;
    }
    const std::size_t colon = line.find(':');
    const std::string field = line.substr(0, colon);
    std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.erase(0, 1);
    if (field == "id") event_.id = value;
    if (field == "event") event_.name = value;
    if (field == "data") {
      if (has_data_) event_.data += '\n';
      event_.data += value;
      has_data_ = true;
    }
  }
}

}  // namespace perseus
