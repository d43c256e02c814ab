// The HTTP server over real sockets, byte for byte.
#include "io/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/http/http_client.h"
#include "io/http/request_reader.h"
#include "tests/support/eventually.h"

namespace perseus::http {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_until;
using ::testing::StartsWith;

/// A client that reads and writes bytes, on the same thread and io_context as the server.
class RawClient {
 public:
  RawClient(asio::io_context& io, std::uint16_t port) : io_(io), socket_(io) {
    socket_.connect({asio::ip::make_address("127.0.0.1"), port});
    read();
  }
  void write(std::string_view text) { asio::write(socket_, asio::buffer(text)); }
  /// Runs the server until the received bytes contain the text; removes and returns everything up to its end.
  std::string until(std::string_view end) {
    while (true) {
      const std::size_t at = text_.find(end);
      if (at != std::string::npos) {
        std::string taken = text_.substr(0, at + end.size());
        text_.erase(0, at + end.size());
        return taken;
      }
      if (closed_) return std::exchange(text_, {}) + "<closed>";
      constexpr std::chrono::minutes a_minute(1);  // a fault ends the test instead of hanging it
      if (io_.run_one_for(a_minute) == 0) return std::exchange(text_, {}) + "<nothing more>";
    }
  }
  std::string until_closed() {
    EXPECT_TRUE(run_until(io_, [this] { return closed_; }));
    return std::exchange(text_, {});
  }
  [[nodiscard]] bool has_heard() const { return !text_.empty(); }
  void half_close() { socket_.shutdown(asio::socket_base::shutdown_send); }
  void close() { socket_.close(); }

 private:
  void read() {
    socket_.async_read_some(asio::buffer(bytes_), [this](boost::system::error_code problem, std::size_t count) {
      text_.append(bytes_.data(), count);
      if (problem) {
        closed_ = true;
      } else {
        read();
      }
    });
  }
  asio::io_context& io_;
  asio::ip::tcp::socket socket_;
  std::array<char, 4096> bytes_{};
  std::string text_;
  bool closed_ = false;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void start(HttpServerOptions options = {}) {
    server_ = std::make_unique<HttpServer>(io_, std::move(options), [this](HttpRequest request, Responder responder) {
      ++handled_;
      if (handler_) return handler_(std::move(request), std::move(responder));
      responder.send(json_response(200, request.method + " " + request.path + " " + request.body));
    });
    const auto port = server_->listen({"127.0.0.1", 0});
    ASSERT_TRUE(port.ok()) << port.error().message;
    port_ = *port;
  }
  RawClient client() { return {io_, port_}; }
  /// Sends these bytes and returns the server's answer, up to the close of the connection.
  std::string answer_to(std::string_view bytes) {
    RawClient raw = client();
    raw.write(bytes);
    return raw.until_closed();
  }

  asio::io_context io_{1};
  HttpHandler handler_;
  int handled_ = 0;
  std::uint16_t port_ = 0;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ARequestDuringManyAnswersIsServed) {
  std::vector<Responder> waiting;
  handler_ = [&](const HttpRequest& request, Responder responder) {
    if (request.path == "/wait") return waiting.push_back(std::move(responder));
    responder.send(json_response(200, "other"));
  };
  start();
  RawClient other = client();
  other.write("GET /other HTTP/1.1\r\nHost: h\r\n\r\n");
  other.until("other");  // its connection is accepted
  constexpr std::ptrdiff_t many = 300;
  std::vector<std::unique_ptr<RawClient>> clients;
  while (std::ssize(clients) < many) {
    clients.push_back(std::make_unique<RawClient>(io_, port_));
    clients.back()->write("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
    ASSERT_TRUE(run_until(io_, [&] { return waiting.size() >= clients.size(); }));
  }
  other.write("GET /other HTTP/1.1\r\nHost: h\r\n\r\n");
  for (const Responder& one : waiting) one.send(json_response(200, "at last"));
  other.until("other");
  EXPECT_LT(std::ranges::count_if(clients, [](const auto& one) { return one->has_heard(); }), many);
  for (const auto& one : clients) EXPECT_THAT(one->until("at last"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, AnswersAndKeepsTheConnection) {
  start();
  RawClient raw = client();
  raw.write("POST /a%20b?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_THAT(raw.until("POST /a%20b abc"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Length: 15\r\n")));
  raw.write("GET /again HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(raw.until("GET /again "), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(server_->counts().accepted, 1);
}

TEST_F(HttpServerTest, RequestsMayComeByteByByteOrSeveralAtOnce) {
  start();
  RawClient raw = client();
  const std::string request =
      "POST /1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  for (const char byte : request) {
    raw.write({&byte, 1});
    io_.poll();
  }
  EXPECT_THAT(raw.until("POST /1 abcde"), StartsWith("HTTP/1.1 200"));
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\n\r\n";
  raw.write(many);
  for (int i = 0; i < 2000; ++i) EXPECT_THAT(raw.until("GET /" + std::to_string(i) + " "), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AnswersComeInTheOrderOfTheRequests) {
  std::vector<Responder> parked;
  handler_ = [&](HttpRequest request, Responder responder) {
    if (request.path == "/slow") {
      parked.push_back(responder);
    } else {
      responder.send(json_response(200, "fast"));
    }
  };
  start();
  RawClient raw = client();
  raw.write("GET /slow HTTP/1.1\r\nHost: h\r\n\r\nGET /fast HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(io_, [&] { return !parked.empty(); }));
  io_.poll();
  EXPECT_EQ(handled_, 1) << "the second request waits for the first one's answer";
  EXPECT_EQ(server_->counts().waiting, 1);
  parked.front().send(json_response(200, "slow"));
  parked.front().send(json_response(500, "twice"));
  EXPECT_THAT(raw.until("slow"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(raw.until("fast"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, BytesThatAreNotHttpGetOneErrorAndAreClosed) {
  HttpServerOptions options;
  options.limits = {.head_bytes = 1000, .body_bytes = 100};
  start(options);
  std::string many_trailers;
  for (int i = 0; i < 5000; ++i) many_trailers += "X" + std::to_string(i) + ": y\r\n";
  const std::vector<std::pair<std::string, int>> cases{
      {"what is this\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET nowhere HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET / HTTP/3.0\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(2000, 'x') + "\r\n\r\n", 431},
      {"GET /" + std::string(2000, 'x') + " HTTP/1.1\r\nHost: h\r\n\r\n", 431},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n" + std::string(200, 'x'), 413},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {std::string("\0\0\0\0\r\n\r\n", 8), 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nOrigin: a\r\nORIGIN: b\r\n\r\n", 400},
      {"GET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n\tb\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 5\r\n\r\nabcde", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nabcde", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;x=" + std::string(20000, 'x'), 413},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + many_trailers, 413},
  };
  for (const auto& [bytes, status] : cases) {
    const std::string answer = answer_to(bytes);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + std::to_string(status))) << bytes;
    EXPECT_THAT(answer, AllOf(HasSubstr("Connection: close\r\n"), HasSubstr("{\"detail\":\""))) << bytes;
  }
  EXPECT_EQ(handled_, 0);
}

TEST(RequestReader, RefusesAFoldedHeaderInAnyPieces) {
  const std::string bytes = "GET / HTTP/1.1\r\nX: a\r\n\tb\r\nHost: h\r\n\r\n";
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    RequestReader reader(RequestLimits{});
    reader.put(bytes.substr(0, cut));
    if (!reader.error()) reader.put(bytes.substr(cut));
    ASSERT_TRUE(reader.error()) << cut;
    EXPECT_EQ(reader.error()->status, 400) << cut;
  }
}

TEST(RequestReader, TakesABodyThatBeginsLikeAFoldedHeader) {
  const std::string bytes = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\n\ta\r\n b\r\n";
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    RequestReader reader(RequestLimits{});
    reader.put(bytes.substr(0, cut));
    reader.put(bytes.substr(cut));
    ASSERT_TRUE(reader.done()) << cut;
    EXPECT_EQ(reader.take().body, "\ta\r\n b\r\n") << cut;
  }
}

TEST_F(HttpServerTest, ARefusedHeadRequestGetsNoBody) {
  start();
  const std::string answer = answer_to("HEAD /%zz HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("Content-Length: "), EndsWith("\r\n\r\n")));
}

TEST_F(HttpServerTest, CloseHoldsAgainstKeepAliveInHttp10) {
  start();
  const std::string request = "GET / HTTP/1.0\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n";
  EXPECT_THAT(answer_to(request + request), HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(handled_, 1);
}

TEST_F(HttpServerTest, UnauthorizedRequestsAreRefusedBeforeTheirBody) {
  HttpServerOptions options;
  options.refuse = [](const HttpRequest& head) -> std::optional<HttpResponse> {
    if (head.header("Authorization") == "right") return std::nullopt;
    return error_response(401, "no");
  };
  start(options);
  const std::string head = "POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n";
  EXPECT_THAT(answer_to(head + "\r\n"), AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("Connection: close\r\n")));
  RawClient raw = client();
  raw.write(head + "Authorization: right\r\n\r\n");
  EXPECT_THAT(raw.until("\r\n\r\n"), StartsWith("HTTP/1.1 100"));
  raw.write(std::string(1000000, 'x'));
  EXPECT_THAT(raw.until("\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(handled_, 1);
}

TEST_F(HttpServerTest, UnfinishedBodiesShareAMemoryLimit) {
  HttpServerOptions options;
  options.unfinished_bytes = 10000;
  start(options);
  const std::string most = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 6000\r\n\r\n" + std::string(5999, 'x');
  RawClient first = client();
  first.write(most);
  const auto room_is_taken = [&] {
    EXPECT_THAT(answer_to(most), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 1\r\n")));
  };
  room_is_taken();
  room_is_taken();
  first.write("x");
  EXPECT_THAT(first.until("\r\n"), StartsWith("HTTP/1.1 200"));
  RawClient second = client();  // below the connection limit again
  second.write(most + "x");
  EXPECT_THAT(second.until("\r\n"), StartsWith("HTTP/1.1 200"));
  second.write(most);
  second.close();  // a closed connection no longer counts toward the limit
  RawClient third = client();
  third.write(most);
  third.write("x");
  EXPECT_THAT(third.until("\r\n"), StartsWith("HTTP/1.1 200"));
}

/// The kernel's timers of connections accepted on that port, from /proc/net/tcp: the kind of timer (2: keep-alive),
/// and the seconds until it expires.
std::vector<std::pair<int, double>> timers_of(std::uint16_t port) {
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::vector<std::pair<int, double>> timers;
  while (std::getline(table, line)) {
    unsigned local = 0, state = 0, which = 0, ticks = 0;
    // sl local_address rem_address st tx_queue:rx_queue tr:tm->when
    if (std::sscanf(line.c_str(), " %*d: %*x:%x %*x:%*x %x %*x:%*x %x:%x", &local, &state, &which, &ticks) != 4)
      continue;
    constexpr unsigned established = 1;
    if (local == port && state == established) {
      timers.emplace_back(which, static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK)));
    }
  }
  return timers;
}

TEST_F(HttpServerTest, ProbesSilentConnections) {
  start();
  RawClient raw = client();
  raw.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(raw.until("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  const auto timers = timers_of(port_);
  ASSERT_EQ(timers.size(), 1U);
  EXPECT_EQ(timers[0].first, 2);
  EXPECT_GT(timers[0].second, 0);
  EXPECT_LE(timers[0].second, 31);
}

TEST_F(HttpServerTest, SlowClientsAreCut) {
  HttpServerOptions options;
  options.request_time = 20ms;
  options.idle_time = 20ms;
  start(options);
  EXPECT_THAT(answer_to("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab"), StartsWith("HTTP/1.1 408"));
  EXPECT_EQ(answer_to(""), "") << "who never says anything is closed";
  RawClient raw = client();
  raw.write("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(raw.until_closed(), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("GET /1")));
  EXPECT_EQ(server_->counts().connections, 0);
  EXPECT_EQ(handled_, 1);
}

TEST_F(HttpServerTest, AClientThatDoesNotReadIsCut) {
  HttpServerOptions options;
  options.response_time = 1ms;
  options.slowest_bytes_per_s = 1U << 30U;
  handler_ = [](HttpRequest, Responder responder) { responder.send(json_response(200, std::string(50'000'000, 'x'))); };
  start(options);
  asio::ip::tcp::socket silent(io_);
  silent.connect({asio::ip::make_address("127.0.0.1"), port_});
  asio::write(silent, asio::buffer(std::string_view("GET / HTTP/1.1\r\nHost: h\r\n\r\n")));
  ASSERT_TRUE(run_until(io_, [&] { return server_->counts().timed_out > 0; }));
  EXPECT_EQ(server_->counts().connections, 0);
}

TEST_F(HttpServerTest, AVanishedClientIsNoticedAndItsAnswerGoesNowhere) {
  std::vector<Responder> parked;
  int closed = 0;
  handler_ = [&](HttpRequest, Responder responder) {
    responder.on_closed([&](bool by_client) { closed += by_client ? 1 : 100; });
    parked.push_back(std::move(responder));
  };
  start();
  RawClient raw = client();
  raw.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(io_, [&] { return !parked.empty(); }));
  EXPECT_TRUE(parked.front().open());
  raw.close();
  ASSERT_TRUE(run_until(io_, [&] { return closed > 0; }));
  EXPECT_FALSE(parked.front().open());
  parked.front().send(json_response(200, ""));
  parked.clear();
  EXPECT_EQ(closed, 1);
  EXPECT_EQ(server_->counts().connections, 0);
}

TEST_F(HttpServerTest, ADroppedRequestIsAnswered) {
  handler_ = [](HttpRequest, Responder) {};
  start();
  RawClient raw = client();
  raw.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(raw.until("}"), StartsWith("HTTP/1.1 500"));
}

TEST_F(HttpServerTest, HeadExpectAndOldHttp) {
  start();
  EXPECT_THAT(answer_to("HEAD /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
              ::testing::EndsWith("Connection: close\r\n\r\n"));
  EXPECT_THAT(answer_to("GET /x HTTP/1.0\r\n\r\n"), HasSubstr("Connection: close\r\n"));
  RawClient raw = client();
  raw.write("POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(raw.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  raw.write("ab");
  EXPECT_THAT(raw.until("POST /x ab"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, StreamsOfEvents) {
  std::vector<Responder> streams;
  HttpServerOptions options;
  options.comment_time = 20ms;
  handler_ = [&](HttpRequest, Responder responder) {
    responder.open_stream();
    streams.push_back(std::move(responder));
  };
  start(options);
  RawClient raw = client();
  raw.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(raw.until("\r\n\r\n"), AllOf(HasSubstr("text/event-stream"), HasSubstr("chunked")));
  EXPECT_TRUE(streams.front().event("7", "plan", "two\nlines"));
  EXPECT_THAT(raw.until("\n\n\r\n"), HasSubstr("id: 7\nevent: plan\ndata: two\ndata: lines\n\n"));
  EXPECT_THAT(raw.until("\n\n"), HasSubstr(": keep-alive"));
  EXPECT_EQ(server_->counts().streams, 1);
  streams.clear();  // releasing the last handle closes it
  EXPECT_THAT(raw.until("0\r\n\r\n"), ::testing::Not(HasSubstr("<closed>")));
  EXPECT_EQ(server_->counts().streams, 0);
}

TEST_F(HttpServerTest, AStreamWithoutAReaderIsClosed) {
  std::vector<Responder> streams;
  HttpServerOptions options;
  options.stream_bytes = 1000;
  handler_ = [&](HttpRequest, Responder responder) {
    responder.open_stream();
    streams.push_back(std::move(responder));
  };
  start(options);
  asio::ip::tcp::socket silent(io_);
  silent.connect({asio::ip::make_address("127.0.0.1"), port_});
  asio::write(silent, asio::buffer(std::string_view("GET / HTTP/1.1\r\nHost: h\r\n\r\n")));
  ASSERT_TRUE(run_until(io_, [&] { return !streams.empty(); }));
  const std::string data(900, 'x');
  int sent = 0;
  while (streams.front().event("", "", data)) ASSERT_LT(++sent, 100'000);
  EXPECT_FALSE(streams.front().open());
}

TEST_F(HttpServerTest, TooManyConnectionsAreTurnedAway) {
  HttpServerOptions options;
  options.connections = 1;
  start(options);
  RawClient first = client();
  first.write("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n");
  first.until("GET /1");
  EXPECT_THAT(client().until_closed(), StartsWith("HTTP/1.1 503"));
  EXPECT_EQ(server_->counts().turned_away, 1);
}

TEST_F(HttpServerTest, DrainingAnswersPendingRequestsAndClosesIdleConnections) {
  std::vector<Responder> parked;
  handler_ = [&](HttpRequest request, Responder responder) {
    if (request.path == "/wait") return parked.push_back(std::move(responder));
    responder.send(json_response(200, "idle"));
  };
  start();
  RawClient idle = client();
  idle.write("GET /idle HTTP/1.1\r\nHost: h\r\n\r\n");
  idle.until("idle");
  RawClient waiting = client();
  waiting.write("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(io_, [&] { return !parked.empty(); }));
  bool drained = false;
  server_->drain(10s, [&] { drained = true; });
  EXPECT_EQ(idle.until_closed(), "");
  EXPECT_FALSE(drained);
  parked.front().send(json_response(200, "late"));
  EXPECT_THAT(waiting.until("late"), HasSubstr("Connection: close\r\n"));
  waiting.close();
  ASSERT_TRUE(run_until(io_, [&] { return drained; }));
  asio::ip::tcp::socket refused(io_);
  boost::system::error_code problem;
  refused.connect({asio::ip::make_address("127.0.0.1"), port_}, problem);
  EXPECT_TRUE(problem);
}

TEST_F(HttpServerTest, AcceptsProbesWhileItDrains) {
  std::vector<Responder> parked;
  handler_ = [&](HttpRequest request, Responder responder) {
    if (request.path == "/wait") return parked.push_back(std::move(responder));
    responder.send(json_response(200, request.while_draining ? "draining" : "before"));
  };
  start();
  RawClient waiting = client();
  waiting.write("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(io_, [&] { return !parked.empty(); }));
  bool drained = false;
  server_->drain(10s, [&] { drained = true; });
  EXPECT_THAT(answer_to("GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n"), HasSubstr("draining"));
  EXPECT_FALSE(drained);
  parked.front().send(json_response(200, "late"));
  waiting.until("late");
  waiting.close();
  ASSERT_TRUE(run_until(io_, [&] { return drained; }));
}

TEST_F(HttpServerTest, DrainingDoesNotWaitForEver) {
  std::vector<Responder> parked;
  handler_ = [&](HttpRequest, Responder responder) { parked.push_back(std::move(responder)); };
  HttpServerOptions options;
  options.comment_time = 20ms;  // short, so that the server sweeps often
  start(options);
  RawClient waiting = client();
  waiting.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(io_, [&] { return !parked.empty(); }));
  bool drained = false;
  server_->drain(1ms, [&] { drained = true; });
  ASSERT_TRUE(run_until(io_, [&] { return drained; }));
  EXPECT_EQ(waiting.until_closed(), "");
}

TEST_F(HttpServerTest, ReportsAnAddressInUse) {
  start();
  const auto again = server_->listen({"127.0.0.1", port_});
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().message, HasSubstr("cannot listen on 127.0.0.1:" + std::to_string(port_)));
  EXPECT_EQ(again.error().code, ErrorCode::unavailable) << "what the caller asked for is not wrong";
}

TEST_F(HttpServerTest, ReservesAnAddressBeforeAccepting) {
  auto taken = take_address(io_, {"127.0.0.1", 0});
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  const std::uint16_t port = taken->port;
  boost::system::error_code refused;
  boost::asio::ip::tcp::socket early(io_);
  early.connect(taken->acceptors.front().local_endpoint(), refused);
  EXPECT_EQ(refused, boost::asio::error::connection_refused);
  start();
  EXPECT_EQ(server_->listen(std::move(*taken)).value(), port);
  EXPECT_FALSE(take_address(io_, {"127.0.0.1", port}).ok()) << "another server has it";
}

TEST_F(HttpServerTest, ListensOnAllAddressesOfAHost) {
  start();
  const std::uint16_t port = server_->listen({"*", 0}).value();
  EXPECT_EQ(take_address(io_, {"*", port}).ok(), false) << "it is taken";
  const auto localhost = take_address(io_, {"localhost", 0});
  ASSERT_TRUE(localhost.ok()) << localhost.error().message;
  for (const auto& acceptor : localhost->acceptors) {
    EXPECT_EQ(acceptor.local_endpoint().port(), localhost->port);
    boost::system::error_code problem;
    boost::asio::ip::tcp::socket client(io_);
    client.connect({acceptor.local_endpoint().address(), port}, problem);
    EXPECT_FALSE(problem) << acceptor.local_endpoint() << ": " << problem.message();
  }
}

TEST_F(HttpServerTest, AConnectionThatPipelinesGivesUpTheThreadAfterEachRequest) {
  start();
  RawClient pipelining = client(), other = client();
  other.write("GET /first HTTP/1.1\r\nHost: h\r\n\r\n");
  other.until("GET /first");  // both clients are connected
  handled_ = 0;
  constexpr int many = 200;
  std::string all;
  for (int i = 0; i < many; ++i) all += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\n\r\n";
  pipelining.write(all);
  other.write("GET /other HTTP/1.1\r\nHost: h\r\n\r\n");
  other.until("GET /other");
  EXPECT_LT(handled_, 64) << "as many answers as are written in a row";
  for (int i = 0; i < many; ++i) pipelining.until("GET /" + std::to_string(i) + " ");
}

TEST_F(HttpServerTest, RequestsOfReadersWaitForThoseOfRanks) {
  int lists = 0;
  handler_ = [&](const HttpRequest& request, const Responder& responder) {
    lists += request.path == "/list" ? 1 : 0;
    responder.send(json_response(200, request.path));
  };
  HttpServerOptions options;
  options.is_reader = [](const HttpRequest& request) { return request.path == "/list"; };
  start(options);
  constexpr std::ptrdiff_t many = 50;
  std::vector<std::unique_ptr<RawClient>> readers;
  while (std::ssize(readers) < many) readers.push_back(std::make_unique<RawClient>(io_, port_));
  RawClient rank = client();
  rank.write("GET /first HTTP/1.1\r\nHost: h\r\n\r\n");
  rank.until("/first");  // all clients are connected
  for (const auto& reader : readers) reader->write("GET /list HTTP/1.1\r\nHost: h\r\n\r\n");
  rank.write("GET /plan HTTP/1.1\r\nHost: h\r\n\r\n");
  rank.until("/plan");
  EXPECT_LT(lists, many / 2);
  for (const auto& reader : readers) reader->until("/list");
}

TEST_F(HttpServerTest, ANoticeIsAnsweredBeforeItsEventsAreWritten) {
  std::vector<Responder> streams;
  const auto event = event_text("1", "notice", "{}");
  handler_ = [&](const HttpRequest& request, const Responder& responder) {
    if (request.path == "/events") {
      responder.open_stream();
      return streams.push_back(responder);
    }
    for (const Responder& stream : streams) stream.event(event);
    responder.send(json_response(200, "acknowledged"));
  };
  start();
  constexpr std::ptrdiff_t many = 100;
  std::vector<std::unique_ptr<RawClient>> readers;
  while (std::ssize(readers) < many) {
    readers.push_back(std::make_unique<RawClient>(io_, port_));
    readers.back()->write("GET /events HTTP/1.1\r\nHost: h\r\n\r\n");
    readers.back()->until("\r\n\r\n");
  }
  RawClient notice = client();
  notice.write("POST /notice HTTP/1.1\r\nHost: h\r\n\r\n");
  notice.until("acknowledged");
  EXPECT_LT(std::ranges::count_if(readers, [](const auto& one) { return one->has_heard(); }), many / 2);
  for (const auto& reader : readers) EXPECT_THAT(reader->until("data: {}\n\n"), HasSubstr("event: notice\n"));
}

TEST_F(HttpServerTest, AStreamEndsAfterItsLastEvent) {
  std::optional<Responder> stream;
  handler_ = [&](const HttpRequest&, const Responder& responder) {
    responder.open_stream();
    for (int i = 0; i < 5000; ++i) responder.event(std::to_string(i), "", std::string(50, 'x'));
    responder.end_stream();
    EXPECT_FALSE(responder.event("5000", "", "after its end"));
    EXPECT_FALSE(responder.open());
    stream = responder;
  };
  start();
  RawClient raw = client();
  raw.write("GET /events HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string text = raw.until("0\r\n\r\n");
  for (const char* const id : {"id: 0\n", "id: 2500\n", "id: 4999\n"}) EXPECT_THAT(text, HasSubstr(id));
  EXPECT_THAT(text, Not(HasSubstr("after its end")));
  handler_ = nullptr;
  raw.write("GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(raw.until("GET /next "), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, AHeadNeedsNoBodyToBeMeasured) {
  handler_ = [](const HttpRequest&, const Responder& responder) { responder.send({200, "text/plain", nullptr, {}}); };
  start();
  RawClient raw = client();
  raw.write("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(raw.until("\r\n\r\n"), Not(HasSubstr("Content-Length")));
  raw.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(raw.until("\r\n\r\n"), HasSubstr("Content-Length: 0"));
}

}  // namespace
}  // namespace perseus::http
