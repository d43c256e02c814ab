// The blocking HTTP client, mainly its event streams.
#include "io/http/http_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <csignal>
#include <future>
#include <limits>
#include <thread>

#include "io/http/http_server.h"
#include "io/http/tls.h"
#include "tests/support/certificate.h"
#include "tests/support/eventually.h"
#include "tests/support/scratch_folder.h"

namespace perseus::http {
namespace {

using ::testing::ElementsAre;
using testing::eventually;
using ::testing::HasSubstr;

/// An HTTP server on its own thread.
class HttpClientTest : public ::testing::Test {
 protected:
  void start(HttpHandler handler, HttpServerOptions options = {}, const std::string& host = "127.0.0.1") {
    server_ = std::make_unique<HttpServer>(io_, std::move(options), std::move(handler));
    const auto port = server_->listen({host, 0});
    if (!port && host == "::1") GTEST_SKIP() << "no IPv6 here: " << port.error().message;
    ASSERT_TRUE(port.ok());
    peer_.url = "http://" + format_host_port({host, *port});
    thread_ = std::thread([this] { io_.run(); });
  }
  ~HttpClientTest() override {
    boost::asio::post(io_, [this] {
      server_.reset();
      io_.stop();
    });
    if (thread_.joinable()) thread_.join();
  }
  /// Returns after the work is done, so the work may use local variables of the test.
  void on_io_thread(const std::function<void()>& work) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  std::size_t connections() {
    std::size_t count = 0;
    on_io_thread([&] { count = server_->counts().connections; });
    return count;
  }
  std::uint64_t accepted() {
    std::uint64_t count = 0;
    on_io_thread([&] { count = server_->counts().accepted; });
    return count;
  }
  boost::asio::io_context io_{1};
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  HttpPeer peer_;
};

TEST_F(HttpClientTest, ReadsAStreamOfEventsToItsEnd) {
  start([&](const HttpRequest&, const Responder& responder) {
    responder.open_stream();
    responder.event("8", "kind", "line 8\nand another");
    responder.event("9", "", "only");
    responder.end_stream();
  });
  const auto reply = http_call(peer_, {"GET", "/events", ""});
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->status, 200);
  EXPECT_THAT(reply->content_type, HasSubstr("text/event-stream"));
  EXPECT_THAT(reply->body, HasSubstr("id: 8\nevent: kind\ndata: line 8\ndata: and another\n\nid: 9\n"));
  EXPECT_THAT(reply->body, HasSubstr("data: only\n\n"));
}

/// Of a list of servers, the one that serves is found, and asked first from then on.
TEST_F(HttpClientTest, PassesOverServersThatAreGoneOrStandBy) {
  std::vector<std::string> asked;
  std::string serves = "/b";
  start([&](const HttpRequest& request, const Responder& responder) {
    asked.push_back(request.path);
    HttpResponse answer =
        request.path.starts_with(serves) ? json_response(200, "{}") : error_response(503, "stands by");
    if (answer.status == 503) answer.headers.emplace_back(kStandbyHeader, "1");
    responder.send(std::move(answer));
  });
  peer_.url = fmt::format("http://127.0.0.1:1,{0}/a,{0}/b", peer_.url);  // nobody listens on port 1
  HttpConnection connection(peer_);
  const auto status = [&] { return connection.call({"POST", "/jobs", "{}"}).value().status; };
  EXPECT_EQ(status(), 200);
  EXPECT_EQ(status(), 200);
  EXPECT_THAT(asked, ElementsAre("/a/jobs", "/b/jobs", "/b/jobs"));
  asked.clear();
  serves = "/a";
  EXPECT_EQ(status(), 200);
  EXPECT_THAT(asked, ElementsAre("/b/jobs", "/a/jobs"));
  serves = "nobody";
  const auto nobody = connection.call({"GET", "/jobs", ""});
  EXPECT_FALSE(nobody.ok() && nobody->status == 200);
  serves = "/b";
  EXPECT_EQ(status(), 200);
}

TEST_F(HttpClientTest, ASilentServerLeavesTheNextOneTimeForAGet) {
  std::vector<Responder> silent;
  start([&](const HttpRequest& request, const Responder& responder) {
    if (request.path.starts_with("/silent"))
      silent.push_back(responder);
    else
      responder.send(json_response(200, "{}"));
  });
  const std::string url = peer_.url;
  peer_.url = fmt::format("{0}/silent,{0}/b", url);
  peer_.timeout = std::chrono::milliseconds(400);
  EXPECT_TRUE(eventually([&] { return http_call(peer_, {"GET", "/jobs", ""}).ok(); }));
  EXPECT_FALSE(http_call(peer_, {"POST", "/jobs", "{}"}).ok());  // the first may have done it
  on_io_thread([&] { silent.clear(); });
}

TEST_F(HttpClientTest, AnAnswerThatHasBegunHasTheTimeOfAllServers) {
  std::unique_ptr<boost::asio::steady_timer> later;
  start([&](const HttpRequest&, const Responder& responder) {
    responder.open_stream();
    responder.event("1", "", "begins");
    later = std::make_unique<boost::asio::steady_timer>(io_, std::chrono::milliseconds(500));
    later->async_wait([responder](boost::system::error_code problem) {
      if (!problem) responder.end_stream();
    });
  });
  const std::string url = peer_.url;
  for (int k = 1; k < 150; ++k) peer_.url += "," + url;  // 0.4 s each
  const auto reply = http_call(peer_, {"GET", "/events", ""});
  EXPECT_TRUE(reply.ok()) << reply.error().message;
  on_io_thread([&] { later.reset(); });
}

TEST_F(HttpClientTest, AnAnswerWithMoreBytesThanAllowedIsAnError) {
  start([](const HttpRequest& request, const Responder& responder) {
    responder.send(json_response(200, std::string(request.path == "/large" ? 1001 : 1000, ' ')));
  });
  peer_.most_body_bytes = 1000;
  const auto fits = http_call(peer_, {"GET", "/small", ""});
  ASSERT_TRUE(fits) << fits.error().message;
  EXPECT_EQ(fits->body.size(), 1000);
  const auto large = http_call(peer_, {"GET", "/large", ""});
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::unavailable);
  EXPECT_THAT(large.error().message, HasSubstr("body limit exceeded"));
}

TEST_F(HttpClientTest, AnAnswerWhoseBytesAlwaysComeTimesOut) {
  boost::asio::ip::tcp::acceptor acceptor(io_, {boost::asio::ip::address_v4::loopback(), 0});
  std::thread sending([&] {
    boost::asio::ip::tcp::socket socket = acceptor.accept();
    std::string bytes = "HTTP/1.1 200 OK\r\n\r\n" + std::string(1 << 20, 'x');
    boost::system::error_code gone;
    while (!gone) boost::asio::write(socket, boost::asio::buffer(bytes), gone);
  });
  peer_.url = fmt::format("http://127.0.0.1:{}", acceptor.local_endpoint().port());
  peer_.timeout = std::chrono::milliseconds(300);
  peer_.most_body_bytes = std::numeric_limits<std::uint64_t>::max();
  const auto reply = http_call(peer_, {"GET", "/", ""});
  sending.join();
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().message, HasSubstr("no answer within 0.3 s"));
}

TEST_F(HttpClientTest, WithoutFreeDescriptorsNamesThem) {
  start([](const HttpRequest&, const Responder& responder) { responder.send(json_response(200, "{}")); });
  HttpConnection connection(peer_);
  ASSERT_TRUE(connection.call({"GET", "/", ""}));
  peer_.url = "http://127.0.0.1:9";
  HttpConnection other(peer_);
  ASSERT_FALSE(other.call({"GET", "/", ""}));  // has its descriptors of asio
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto reply = other.call({"GET", "/", ""});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().message, HasSubstr("Too many open files"));
}

TEST_F(HttpClientTest, KeepsItsConnection) {
  start([](const HttpRequest& request, const Responder& responder) {
    responder.send(json_response(200, fmt::format("{} {}", request.path, request.body)));
  });
  HttpConnection connection(peer_);
  for (int i = 0; i < 5; ++i) {
    const auto reply = connection.call({"POST", fmt::format("/{}", i), "body"});
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_EQ(reply->body, fmt::format("/{} body", i));
  }
  EXPECT_EQ(connection.connections(), 1);
}

TEST_F(HttpClientTest, NamesAnIpv6HostInBrackets) {
  start(
      [](const HttpRequest& request, const Responder& responder) {
        responder.send(json_response(200, std::string(request.header("Host").value_or(""))));
      },
      {}, "::1");
  if (IsSkipped()) return;
  const auto reply = http_call(peer_, {"GET", "/", ""});
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ("http://" + reply->body, peer_.url);
}

TEST_F(HttpClientTest, ConnectsAgainWhenTheServerHasClosed) {
  start([](const HttpRequest&, const Responder& responder) {
    HttpResponse response = json_response(200, "{}");
    response.headers.emplace_back("Connection", "close");
    responder.send(std::move(response));
  });
  HttpConnection connection(peer_);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(connection.call({"GET", "/", "", ""}).ok());
}

TEST_F(HttpClientTest, ATokenFromAFileMayEndWithALineBreak) {
  std::string seen;
  start([&](const HttpRequest& request, const Responder& responder) {
    seen = request.header("Authorization").value_or("");
    responder.send(json_response(200, "{}"));
  });
  peer_.token = "secret\r\n";
  EXPECT_TRUE(http_call(peer_, {"GET", "/", "", ""}).ok());
  EXPECT_EQ(seen, "Bearer secret");
}

TEST_F(HttpClientTest, AKeptConnectionThatTheServerDroppedIsMadeAnew) {
  HttpServerOptions options;
  options.idle_time = std::chrono::seconds(1);  // long enough for a request on a busy machine
  start([](const HttpRequest&, const Responder& responder) { responder.send(json_response(200, "{}")); }, options);
  HttpConnection connection(peer_);
  ASSERT_TRUE(connection.call({"GET", "/", "", ""}).ok());
  // The server has closed its side once it counts no connection.
  ASSERT_TRUE(eventually([&] { return connections() == 0; }));
  const auto reply = connection.call({"GET", "/", "", ""});
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(connection.connections(), 2);
}

TEST_F(HttpClientTest, ACallThatWasStoppedLeavesAConnectionThatWorks) {
  std::vector<Responder> parked;
  std::promise<void> asked;
  start([&](const HttpRequest& request, const Responder& responder) {
    if (request.path != "/parked") return responder.send(json_response(200, "{}"));
    parked.push_back(responder);
    asked.set_value();
  });
  HttpConnection connection(peer_);
  ASSERT_TRUE(connection.call({"GET", "/", "", ""}).ok());
  std::stop_source stop;
  std::thread stopping([&] {
    asked.get_future().wait();
    stop.request_stop();
  });
  EXPECT_FALSE(connection.call({"GET", "/parked", "", ""}, stop.get_token()).ok());
  stopping.join();
  EXPECT_TRUE(connection.call({"GET", "/", "", ""}).ok());
  connection.set_timeout(std::chrono::milliseconds(20));
  asked = {};
  EXPECT_FALSE(connection.call({"GET", "/parked", "", ""}).ok()) << "no server answers";
  connection.set_timeout(std::chrono::seconds(20));
  EXPECT_TRUE(connection.call({"GET", "/", "", ""}).ok());
  on_io_thread([&] { parked.clear(); });
}

/// The same with TLS, and a certificate generated for the test.
class HttpOverTls : public HttpClientTest {
 protected:
  void start(HttpHandler handler, HttpServerOptions options = {}) {
    std::signal(SIGPIPE, SIG_IGN);
    const testing::Certificate certificate = testing::make_certificate(folder_.path(), ends_in_s_);
    auto tls = server_tls(certificate.file, certificate.key_file);
    ASSERT_TRUE(tls.ok()) << tls.error().message;
    options.tls = *tls;
    HttpClientTest::start(std::move(handler), std::move(options));
    peer_.url.replace(0, 4, "https");
    peer_.ca_file = certificate.file;
  }
  std::string error_of_call() {
    const auto reply = http_call(peer_, {"GET", "/", "", ""});
    return reply.ok() ? "" : reply.error().message;
  }
  testing::ScratchFolder folder_;
  long ends_in_s_ = 3600;  ///< of its certificate
};

TEST_F(HttpOverTls, AnErrorSaysWhyTheCertificateIsRefused) {
  ends_in_s_ = -3600;
  start([](const HttpRequest&, const Responder& responder) { responder.send(json_response(200, "{}")); });
  EXPECT_THAT(error_of_call(), HasSubstr("certificate verify failed (SSL routines): certificate has expired"));
}

TEST_F(HttpOverTls, AnErrorSaysThatTheCertificateIsNotTrustedOrForAnotherServer) {
  start([](const HttpRequest&, const Responder& responder) { responder.send(json_response(200, "{}")); });
  EXPECT_EQ(error_of_call(), "");
  const std::string address = "127.0.0.1";
  HttpPeer good = peer_;
  peer_.url.replace(peer_.url.find(address), address.size(), "127.1");
  EXPECT_THAT(error_of_call(), HasSubstr("certificate verify failed (SSL routines): it is not for 127.1"));
  peer_ = good;
  peer_.ca_file.clear();
  EXPECT_THAT(error_of_call(), HasSubstr("certificate verify failed (SSL routines): self-signed certificate"));
}

TEST_F(HttpOverTls, AnErrorSaysWhichOfHttpAndHttpsAServerSpeaks) {
  start([](const HttpRequest&, const Responder& responder) { responder.send(json_response(200, "{}")); });
  peer_.url.replace(0, 5, "http");
  EXPECT_THAT(error_of_call(), HasSubstr("closed without an answer, as a server of https does"));
  boost::asio::io_context io;
  HttpServer plain(io, {},
                   [](const HttpRequest&, const Responder& responder) { responder.send(json_response(200, "{}")); });
  const auto port = plain.listen({"127.0.0.1", 0});
  ASSERT_TRUE(port.ok());
  std::thread serving([&] { io.run(); });
  peer_.url = fmt::format("https://127.0.0.1:{}", *port);
  EXPECT_THAT(error_of_call(), HasSubstr("it speaks http, not https"));
  io.stop();
  serving.join();
}

TEST_F(HttpOverTls, DoubtsACertificateByItsDates) {
  const testing::Certificate certificate = testing::make_certificate(folder_.path());
  const auto tls = server_tls(certificate.file, certificate.key_file);
  ASSERT_TRUE(tls.ok()) << tls.error().message;
  const double end_s = *certificate_end_s(*tls);
  EXPECT_THAT(certificate_doubt(*tls, end_s + 1), ::testing::MatchesRegex("expired on .*T.*Z: clients refuse it"));
  EXPECT_THAT(certificate_doubt(*tls, end_s - 60), ::testing::MatchesRegex("expires on .*T.*Z"));
  EXPECT_THAT(certificate_doubt(*tls, end_s - 9000),
              ::testing::MatchesRegex("valid from .*T.*Z on: clients refuse it"));
  const testing::Certificate later = testing::make_certificate(folder_.path(), 15 * 24 * 3600);
  EXPECT_EQ(certificate_doubt(*server_tls(later.file, later.key_file), end_s - 3600), "");
}

TEST_F(HttpOverTls, KeepsItsConnection) {
  start([](const HttpRequest& request, const Responder& responder) {
    EXPECT_TRUE(request.tls);
    responder.send(json_response(200, request.body));
  });
  HttpConnection connection(peer_);
  for (int i = 0; i < 5; ++i) {
    const auto reply = connection.call({"POST", "/", fmt::format("body {}", i)});
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_EQ(reply->body, fmt::format("body {}", i));
  }
  EXPECT_EQ(connection.connections(), 1);
}

TEST_F(HttpOverTls, CarriesBodiesOfManyRecordsBothWays) {
  HttpServerOptions options;
  options.limits.body_bytes = std::size_t{32} << 20U;
  start(
      [](const HttpRequest& request, const Responder& responder) { responder.send(json_response(200, request.body)); },
      options);
  HttpConnection connection(peer_);
  for (const std::size_t size : {std::size_t{16383}, std::size_t{16384}, std::size_t{16385}, std::size_t{20} << 20U}) {
    std::string body(size, 'x');
    for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>('a' + i % 23);
    const auto reply = connection.call({"POST", "/", body});
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_TRUE(reply->body == body) << size;
  }
  EXPECT_EQ(connection.connections(), 1);
}

TEST_F(HttpOverTls, ReadsAStreamOfEventsToItsEnd) {
  start([](const HttpRequest&, const Responder& responder) {
    responder.open_stream();
    for (int i = 0; i < 1000; ++i) responder.event(std::to_string(i), "", std::string(1000, 'x'));
    responder.end_stream();
  });
  const auto reply = http_call(peer_, {"GET", "/events", ""});
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_THAT(reply->body, HasSubstr("id: 999\n"));
  EXPECT_GT(reply->body.size(), 1'000'000U);
}

TEST_F(HttpOverTls, AClientThatLeavesInTheMiddleIsForgotten) {
  std::vector<Responder> parked;
  start([&](const HttpRequest&, const Responder& responder) { parked.push_back(responder); });
  HttpConnection connection(peer_);
  connection.set_timeout(std::chrono::milliseconds(200));
  EXPECT_FALSE(connection.call({"GET", "/", "", ""}).ok());
  ASSERT_TRUE(eventually([&] { return connections() == 0; }));
  on_io_thread([&] {
    for (const Responder& responder : parked) responder.send(json_response(200, "{}"));
    parked.clear();
  });
}

TEST_F(HttpOverTls, ClosesConnectionsWithoutAHandshake) {
  HttpServerOptions options;
  options.request_time = std::chrono::milliseconds(300);
  start([](const HttpRequest&, const Responder& responder) { responder.send(json_response(200, "{}")); }, options);
  HttpPeer plain = peer_;
  plain.url.replace(0, 5, "http");
  EXPECT_FALSE(http_call(plain, {"GET", "/", "", ""}).ok());
  const std::uint64_t before = accepted();
  boost::asio::io_context io;
  boost::asio::ip::tcp::socket silent(io);
  const auto port = static_cast<std::uint16_t>(std::stoi(peer_.url.substr(peer_.url.rfind(':') + 1)));
  silent.connect({boost::asio::ip::make_address("127.0.0.1"), port});
  ASSERT_TRUE(eventually([&] { return accepted() > before && connections() == 0; }));
  // On a busy machine a handshake may take too long as well.
  EXPECT_TRUE(eventually([&] { return http_call(peer_, {"GET", "/", "", ""}).ok(); }));
}

TEST_F(HttpClientTest, ErrorsNameAServerThatDoesNotAnswer) {
  peer_.url = "http://127.0.0.1:1";
  const auto reply = http_call(peer_, {"GET", "/", "", ""});
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, ErrorCode::unavailable);
  EXPECT_THAT(reply.error().message, HasSubstr("http://127.0.0.1:1"));
}

}  // namespace
}  // namespace perseus::http
