// Sends any requests to all routes over a real connection: each gets one answer of HTTP and JSON or waits; none is a
// server error (500), and a rejected request changes nothing.
//
// Input:   requests, each "METHOD TARGET" on its own line followed by the body, separated by "\n---\n". The server
//          has a job of 2 x 2 ranks with its plan, "j_1", and a profile, "small".
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "io/formats/json_reader.h"
#include "tests/support/api_on_port.h"
#include "tests/support/test_store.h"

namespace {

using namespace perseus;
using namespace perseus::jobs;
using namespace perseus::service;
using namespace perseus::routes;
namespace asio = boost::asio;
using asio::ip::tcp;

class OnIo final : public work::Executor {
 public:
  explicit OnIo(asio::io_context& io) : io_(io) {}
  void submit(Kind, Work work) override {
    asio::post(io_, [work = std::move(work)] { work()(); });
  }

 private:
  asio::io_context& io_;
};

/// What errors must leave as it is.
std::string state_of(const testing::TestDatabase& database) {
  std::size_t events = 0;
  for (const store::JobIndexRow& job : database.jobs()) events += database.log(job.job).size();
  return fmt::format("{} jobs, {} events, {} blobs, {} tokens", database.jobs().size(), events, database.blobs().size(),
                     database.tokens().size());
}

/// A server on a database, with nothing before it.
class World : plans::ServerHost {
 public:
  /// Its jobs are j_(first_id + 1), ...
  World(asio::io_context& io, std::shared_ptr<testing::TestDatabase> database, int first_id)
      : io_(io), database_(std::move(database)), executor_(io), ids_(first_id) {
    store_ = std::make_unique<testing::TestStore>(
        [this](std::function<void()> work) { asio::post(io_, std::move(work)); }, database_);
    service::ServiceOptions options;
    options.plan_deadlines = 5;
    options.max_ranks = 64;
    options.max_computations = 1000;
    options.host = this;
    auto opened = service::Service::open(options, *store_, clock_, executor_);
    PERSEUS_CHECK(opened.ok(), "the service starts");
    service_ = *std::move(opened);
    tokens_ = std::make_unique<access::Tokens>(*store_);
    api_ = std::make_unique<testing::ApiOnPort>(io_, *service_, *tokens_, clock_);
    client_.connect({asio::ip::make_address("127.0.0.1"), api_->port()});
    client_.non_blocking(true);
    // Another thread accepts: wait until that has happened, then all is this one's.
    send("GET", "/healthz", "");
    while (heard().empty()) std::this_thread::yield();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() {
    api_.reset();
    io_.restart();
    io_.poll();  // what is posted still refers to the store
  }

  /// The answer as it came, empty while there is none.
  std::string ask(std::string_view method, std::string_view target, std::string_view body) {
    send(method, target, body);
    return heard();
  }
  [[nodiscard]] const testing::TestDatabase& database() const { return *database_; }

 private:
  std::string random_id() override { return fmt::format("{}", ++ids_); }
  void send(std::string_view method, std::string_view target, std::string_view body) {
    const std::string text = fmt::format(
        "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", method,
        target, body.size(), body);
    boost::system::error_code problem;
    asio::write(client_, asio::buffer(text), problem);
  }
  std::string heard() {
    io_.restart();
    while (io_.poll() > 0) {}
    std::string answer;
    std::array<char, 65536> bytes;
    boost::system::error_code problem;
    while (true) {
      const std::size_t count = client_.read_some(asio::buffer(bytes), problem);
      if (problem) break;
      answer.append(bytes.data(), count);
    }
    return answer;
  }

  asio::io_context& io_;
  std::shared_ptr<testing::TestDatabase> database_;
  HandTurnedClock clock_{1'800'000'000};
  OnIo executor_;
  int ids_;
  std::unique_ptr<testing::TestStore> store_;
  std::unique_ptr<service::Service> service_;
  std::unique_ptr<access::Tokens> tokens_;
  std::unique_ptr<testing::ApiOnPort> api_;
  tcp::socket client_{io_};
};

int status_of(const std::string& answer) {
  int status = 0;
  PERSEUS_CHECK(answer.starts_with("HTTP/1.1 "), "an answer of HTTP");
  std::from_chars(answer.data() + 9, answer.data() + 12, status);
  return status;
}

/// A database with a job that has its plan. Made once.
const testing::TestDatabase& prepared(asio::io_context& io) {
  static const std::shared_ptr<testing::TestDatabase> database = [&] {
    auto made = std::make_shared<testing::TestDatabase>();
    World world(io, made, 0);
    const auto done = [&](std::string_view method, std::string_view target, std::string_view body) {
      PERSEUS_CHECK(status_of(world.ask(method, target, body)) == 200, std::string(target).c_str());
    };
    std::string csv = "stage,instruction,frequency,time,energy\\n";
    for (int stage = 0; stage < 2; ++stage) {
      csv += fmt::format("{0},forward,1400,0.1,30\\n{0},forward,700,0.15,20\\n", stage);
      csv += fmt::format("{0},backward,1400,0.2,60\\n{0},backward,700,0.3,40\\n", stage);
    }
    done("PUT", "/v1/profiles/small",
         fmt::format(
             R"({{"profile_csv":"{}","pipeline":{{"schedule":"1f1b","microbatches":2,"blocking_power_w":70}}}})", csv));
    done("POST", "/v1/jobs", R"({"degrees":{"dp":2,"pp":2,"tp":1},"profile":"small"})");
    for (int rank = 0; rank < 3; ++rank) {
      done("POST", "/v1/jobs/j_1/ranks",
           fmt::format(R"({{"rank":{0},"dp_rank":{1},"pp_rank":{2},"tp_rank":0,"accelerator":"GPU-{0}"}})", rank,
                       rank / 2, rank % 2));
    }
    done("GET", "/v1/jobs/j_1/ranks/0/plan", "");
    return made;
  }();
  return *database;
}

void check_answer(const std::string& answer) {
  const int status = status_of(answer);
  PERSEUS_CHECK(status != 500 && status != 503 && status != 507, answer.c_str());
  const std::size_t head = answer.find("\r\n\r\n");
  PERSEUS_CHECK(head != std::string::npos, "a whole head");
  if (answer.substr(0, head).find("application/json") == std::string::npos) return;
  const std::string body = answer.substr(head + 4);
  if (body.empty()) return;  // of a HEAD
  const auto document = formats::parse_json(body, "answer");
  PERSEUS_CHECK(document.ok(), answer.c_str());
  if (status < 400) return;
  formats::JsonFields fields(document->root());
  PERSEUS_CHECK(!fields.string("detail").empty() && !fields.error(), answer.c_str());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static asio::io_context io{1};
  World world(io, std::make_shared<testing::TestDatabase>(prepared(io)), 100);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (int i = 0; i < 8 && !rest.empty(); ++i) {
    const std::string_view request = rest.substr(0, rest.find("\n---\n"));
    rest.remove_prefix(std::min(rest.size(), request.size() + 5));
    const std::string_view line = request.substr(0, request.find('\n'));
    const std::string_view body = request.substr(std::min(request.size(), line.size() + 1));
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string before = state_of(world.database());
    const std::string answer = world.ask(line.substr(0, space), line.substr(std::min(line.size(), space + 1)), body);
    if (answer.empty()) break;  // it waits
    check_answer(answer);
    if (status_of(answer) >= 400) PERSEUS_CHECK(state_of(world.database()) == before, answer.c_str());
    if (answer.find("Connection: close") != std::string::npos ||
        answer.find("text/event-stream") != std::string::npos) {
      break;
    }
  }
  return 0;
}
