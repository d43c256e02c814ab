// The I/O thread, the workers and the store's writer together, under concurrent clients; mainly for the thread
// sanitizer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <thread>

#include "base/clock.h"
#include "io/formats/json_reader.h"
#include "io/http/http_client.h"
#include "server/sqlite/sqlite_store.h"
#include "server/work/worker_pool.h"
#include "tests/support/api_on_port.h"
#include "tests/support/eventually.h"
#include "tests/support/scratch_folder.h"

namespace perseus::http {
namespace {

namespace asio = boost::asio;

/// Assembled as `perseus serve` does it.
class Running {
 public:
  explicit Running(const std::string& database) {
    auto opened = sqlite::open_sqlite_store(database, post_);
    PERSEUS_CHECK(opened.ok(), "the store opens");
    store_ = *std::move(opened);
    workers_ = std::make_unique<work::WorkerPool>(2, post_);
    service::ServiceOptions options;
    options.plan_deadlines = 20;
    auto service = service::Service::open(options, *store_, clock_, *workers_);
    PERSEUS_CHECK(service.ok(), "the service opens");
    service_ = *std::move(service);
    tokens_ = std::make_unique<access::Tokens>(*store_);
    api_ = std::make_unique<testing::ApiOnPort>(io_, *service_, *tokens_, clock_);
    peer.url = fmt::format("http://127.0.0.1:{}", api_->port());
    tick();
    thread_ = std::thread([this] { io_.run(); });
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    asio::post(io_, [this] { io_.stop(); });
    thread_.join();
    api_.reset();
    service_.reset();
    workers_.reset();  // finishes work that has begun
    store_.reset();
  }

  HttpPeer peer;

 private:
  void tick() {
    timer_.expires_after(std::chrono::milliseconds(5));
    timer_.async_wait([this](boost::system::error_code stopped) {
      if (stopped) return;
      service_->tick();
      api_->tick();
      tick();
    });
  }

  asio::io_context io_{1};
  store::Post post_ = [this](std::function<void()> work) { asio::post(io_, std::move(work)); };
  SystemClock clock_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<work::WorkerPool> workers_;
  std::unique_ptr<service::Service> service_;
  std::unique_ptr<access::Tokens> tokens_;
  std::unique_ptr<testing::ApiOnPort> api_;
  asio::steady_timer timer_{io_};
  std::thread thread_;
};

std::string profile_json(double scale) {
  std::string csv = "stage,instruction,frequency,time,energy\\n";
  for (int stage = 0; stage < 2; ++stage) {
    for (const auto& [instruction, work] : {std::pair{"forward", 0.1}, {"backward", 0.2}}) {
      for (const int clock : {1400, 1200, 1000, 800}) {
        csv += fmt::format("{},{},{},{:.6f},{:.6f}\\n", stage, instruction, clock, scale * work * 1400 / clock,
                           work * (100 + 2e-4 * clock * clock));
      }
    }
  }
  return fmt::format(
      R"({{"profile_csv":"{}","pipeline":{{"schedule":"1f1b","microbatches":6,"blocking_power_w":70}}}})", csv);
}

/// The body of an answer; its status must be 200.
std::string asked(const HttpPeer& peer, const std::string& method, const std::string& target,
                  const std::string& body = "") {
  const auto reply = http_call(peer, {method, target, body});
  EXPECT_TRUE(reply.ok()) << reply.error().message;
  if (!reply) return "{}";
  EXPECT_EQ(reply->status, 200) << method << " " << target << ": " << reply->body;
  return reply->body;
}

std::string text_in(const std::string& body, std::string_view member) {
  const auto document = formats::parse_json(body, "answer");
  EXPECT_TRUE(document.ok()) << body;
  if (!document) return "";
  return std::string(formats::JsonFields(document->root()).string(member));
}

int number_in(const std::string& body, std::string_view member) {
  const auto document = formats::parse_json(body, "answer");
  return document ? formats::JsonFields(document->root()).integer(member) : -1;
}

/// One job from registration to end, with a straggler that takes effect in between.
void live_through(const HttpPeer& peer, int number) {
  const std::string job = text_in(asked(peer, "POST", "/v1/jobs", R"({"degrees":{"dp":2,"pp":2,"tp":1}})"), "job");
  const std::string path = "/v1/jobs/" + job;
  std::vector<std::thread> ranks;
  std::atomic<int> planned{0};
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&, rank] {
      asked(peer, "POST", path + "/ranks",
            fmt::format(R"({{"rank":{0},"dp_rank":{1},"pp_rank":{2},"tp_rank":0,"accelerator":"GPU-{3}-{0}"}})", rank,
                        rank / 2, rank % 2, number));
      const auto plan_after = [&](int version) {
        return number_in(asked(peer, "GET", fmt::format("{}/ranks/{}/plan?have={}", path, rank, version)), "version");
      };
      const int first = plan_after(0);
      ++planned;
      EXPECT_GT(plan_after(first), first) << "the straggler's";
      asked(peer, "POST", path + "/iterations",
            fmt::format(R"({{"rank":{},"iteration_time_s":[1.5],"last_iteration":{}}})", rank, 10 + rank));
    });
  }
  asked(peer, "PUT", path + "/profile", profile_json(1 + 0.01 * number));
  EXPECT_TRUE(testing::eventually([&] {
    asked(peer, "GET", path);
    return planned >= 4;
  }));
  asked(peer, "POST", path + "/stragglers", R"({"pipeline":1,"degree":1.2,"delay_s":0.05})");
  for (std::thread& rank : ranks) rank.join();
  asked(peer, "POST", path + "/finish");
}

TEST(ServiceThreads, ClientsFromEverywhereAtOnce) {
  const testing::ScratchFolder folder;
  const std::string database = folder.path("perseus.db");
  constexpr int jobs = 4;
  {
    Running server(database);
    std::thread reader([&] {
      // The first event of this name.
      asio::io_context io;
      asio::ip::tcp::socket socket(io);
      const auto port = static_cast<std::uint16_t>(std::stoi(server.peer.url.substr(server.peer.url.rfind(':') + 1)));
      socket.connect({asio::ip::make_address("127.0.0.1"), port});
      const std::string request = "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
      asio::write(socket, asio::buffer(request));
      std::string read;
      EXPECT_GT(asio::read_until(socket, asio::dynamic_buffer(read), "event: straggler_in_force"), 0U);
    });
    EXPECT_TRUE(testing::eventually(
        [&] { return asked(server.peer, "GET", "/metrics").find("perseus_subscriptions 1\n") != std::string::npos; }));
    std::vector<std::thread> clients;
    for (int number = 0; number < jobs; ++number) {
      clients.emplace_back([&, number] { live_through(server.peer, number); });
    }
    for (std::thread& client : clients) client.join();
    reader.join();
    // The server is destroyed while its workers run.
    const std::string job =
        text_in(asked(server.peer, "POST", "/v1/jobs", R"({"degrees":{"dp":1,"pp":2,"tp":1}})"), "job");
    asked(server.peer, "PUT", "/v1/jobs/" + job + "/profile", profile_json(3));
  }
  Running again(database);
  const std::string all = asked(again.peer, "GET", "/v1/jobs");
  std::size_t finished = 0;
  for (std::size_t at = all.find("\"finished\""); at != std::string::npos; at = all.find("\"finished\"", at + 1))
    ++finished;
  EXPECT_EQ(finished, jobs);
}

}  // namespace
}  // namespace perseus::http
