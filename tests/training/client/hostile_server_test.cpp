// What a server may send to a rank: whatever it is, training is at most 1 % slower after its first iterations, and the
// log has few lines. On a hand-turned clock: the server's answers, the client's guard, follower and log; a computation
// takes as long as its clock says. What a server may do to HTTP comes by a socket and the client's session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/training/client/scripted_server.h"
#include "training/client/complaints.h"
#include "training/client/job_messages.h"
#include "training/client/messages.h"
#include "training/client/session.h"
#include "training/client/shape_guards.h"

namespace perseus::client::hostile {
namespace {

constexpr int kHighest = 1410, kLowest = 235;  // 6 times slower
constexpr int kMicrobatches = 4;
constexpr double kIteration_s = 0.5;  // at the highest clock

/// A rank as TrainingClient runs it, without threads, device and network.
class ServedRank {
 public:
  ServedRank() {
    facts_.clocks_mhz = {kHighest, 1200, 900, kLowest};
    follower_.set_maximum(kHighest);
  }

  void receives(const std::string& answer) {
    auto plan = read_plan(answer, facts_);
    if (!plan) return complaints_.raise(Cause::server, "an invalid plan: " + plan.error().message);
    complaints_.clear(Cause::server, "the server answers again");
    if (*plan != nullptr) takes(*std::move(plan));
  }
  void takes(std::unique_ptr<ClockPlan> plan) {
    if (const auto message = messages_.arrived("j1", *plan)) complaints_.note(news_of(plan->kind), *message);
    guard_.arrives(*plan);
    hold();
    follower_.put(std::move(plan));
  }
  /// The session with a server at that URL.
  [[nodiscard]] std::unique_ptr<Session> session(const std::string& url) {
    ClientOptions options;
    options.server = url;
    options.timing = hasty();
    options.timing.answer_s = 0.2;
    options.report_interval_s = 0.05;
    SessionListener listener;
    listener.on_job = [](const std::string&) {};
    listener.on_plan = [this](std::unique_ptr<ClockPlan> plan) { takes(std::move(plan)); };
    listener.on_held = [this](bool held) { follower_.hold_maximum(held); };
    listener.iteration = [] { return 7; };
    return std::make_unique<Session>(options, facts_, std::move(listener), complaints_);
  }

  void iterates() {
    Step step;
    follower_.begin_step(iteration_, kMicrobatches);
    const ClockPlan* const plan = follower_.plan();
    step.iteration = iteration_++;
    step.microbatches = kMicrobatches;
    step.plan_version = plan == nullptr ? 0 : plan->version;
    step.at_maximum = plan == nullptr || plan->kind == ClockPlan::Kind::maximum_clock || follower_.over();
    step.begin_mark = ns();
    for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
      computes(step, model::Instruction::forward, microbatch, kIteration_s / 3);
      computes(step, model::Instruction::backward, microbatch, 2 * kIteration_s / 3);
    }
    follower_.end_step();
    step.followed = follower_.followed();
    step.end_mark = ns();
    step.count = step.computations.size();
    // The idle time between steps.
    now_s += 0.02 * kIteration_s;
    GuardedIteration iteration = guarded_iteration(step, kHighest);
    iteration.time_s = now_s - 1e-9 * static_cast<double>(step.begin_mark);
    guard_.take(iteration);
    if (const auto remark = guard_.take_remark()) complaints_.note(News::trial, *remark);
    if (const auto dropped = guard_.take_dropped()) complaints_.raise_again(Cause::slowdown, dropped->text);
    if (step.followed && !step.at_maximum && !guard_.paused()) complaints_.clear(Cause::slowdown, "it runs");
    complaints_.remind();
    hold();
  }

  std::atomic<double> now_s{100};
  std::map<int, int> lines_in_minute;
  int lines = 0;

 private:
  void hold() { follower_.allow_shapes(guard_.allowed()); }
  [[nodiscard]] std::uint64_t ns() const { return static_cast<std::uint64_t>(1e9 * now_s); }
  void computes(Step& step, model::Instruction instruction, int microbatch, double share_s) {
    const int clock = follower_.clock_for(instruction, microbatch, 0);
    follower_.begun(instruction, microbatch, 0);
    if (clock != 0) clock_ = clock;
    RecordedComputation computation;
    computation.begin = ns();
    now_s += share_s / kMicrobatches * kHighest / clock_;
    computation.end = ns();
    computation.clock = clock_;
    computation.instruction = instruction;
    computation.microbatch = microbatch;
    step.computations.push_back(computation);
  }

  RankFacts facts_;
  ShapeGuards guard_{0.01};
  PlanFollower follower_;
  PlanMessages messages_{true};
  Complaints complaints_{[this](LogLevel, const std::string&) {
                           ++lines;
                           ++lines_in_minute[static_cast<int>(now_s / 60)];
                         },
                         PauseLimits{}, [this] { return now_s.load(); }};
  std::int64_t iteration_ = 0;
  int clock_ = kHighest;
};

struct Plan {
  std::int64_t version = 1;
  std::function<int(int)> clock = [](int) { return kLowest; };  ///< of the computation at that place
  std::string kind = "plan";
  double promised_s = kIteration_s, at_maximum_s = kIteration_s;
  int computations = 2 * kMicrobatches;
  std::string more = {};
};

std::string text(const Plan& plan) {
  std::string clocks;
  for (int i = 0; i < plan.computations; ++i) {
    clocks += std::string(i == 0 ? "" : ",") + "[\"" + (i % 2 == 0 ? "forward" : "backward") + "\"," +
              std::to_string(plan.clock(i)) + "]";
  }
  return R"({"rank":0,"version":)" + std::to_string(plan.version) + R"(,"kind":")" + plan.kind +
         R"(","from_iteration":0,"iteration_time_s":)" + std::to_string(plan.promised_s) +
         R"(,"maximum_clock_time_s":)" + std::to_string(plan.at_maximum_s) + R"(,"reason":"because")" + plan.more +
         R"(,"clocks":[)" + clocks + "]}";
}

/// Answers before an iteration of that number; none: the server holds the request.
using Answers = std::function<std::vector<std::string>(int iteration)>;
struct Mode {
  std::string name;
  Answers answers;
};

Answers always(const std::function<std::string(int)>& answer) {
  return [answer](int iteration) { return std::vector{answer(iteration)}; };
}
/// Versions that change every so many iterations; `bad` says which ones are at the lowest clock.
Answers versions(int every, const std::function<bool(int)>& bad, int slow_mhz = kLowest) {
  return [=](int iteration) {
    if (iteration % every != 0) return std::vector<std::string>();
    const int version = iteration / every + 1;
    return std::vector{text({version, [=](int) { return bad(version) ? slow_mhz : kHighest; }})};
  };
}
bool all(int) { return true; }

std::string window(int version, int mhz, const std::string& more) {
  return text({version, [=](int) { return mhz; }, "profiling_window", kIteration_s, kIteration_s, 2 * kMicrobatches,
               R"(,"window":)" + std::to_string(version) + more});
}

std::vector<Mode> modes() {
  std::vector<Mode> modes;
  const auto add = [&](const std::string& name, Answers answers) { modes.push_back({name, std::move(answers)}); };
  // Rates of versions.
  for (const int every : {1, 2, 3, 5, 6, 7, 13, 20, 60, 200}) {
    add("LowestClockAVersionEvery" + std::to_string(every), versions(every, all));
  }
  for (const int every : {1, 4, 7, 30}) {
    add("SlowByAQuarterAVersionEvery" + std::to_string(every), versions(every, all, 1200));
  }
  add("TenVersionsPerIteration", [](int iteration) {
    std::vector<std::string> answers;
    for (int i = 1; i <= 10; ++i) answers.push_back(text({10 * iteration + i}));
    return answers;
  });
  add("OneVersion", [](int iteration) { return iteration == 0 ? std::vector{text({1})} : std::vector<std::string>(); });
  add("TheSameVersionAgainAndAgain", always([](int) { return text({1}); }));
  add("TheSameVersionWithOtherClocks", always([](int i) {
        return text({1, [=](int) { return i % 2 == 0 ? kHighest : kLowest; }});
      }));
  add("VersionsThatDecrease", always([](int i) { return text({1'000'000 - i}); }));
  add("TwoVersionsInTurn", always([](int i) { return text({1 + i % 2}); }));
  add("HugeVersions", always([](int i) { return text({8'000'000'000'000'000 + i}); }));
  // Slow ones among good ones.
  for (const int one_of : {2, 3, 5, 10, 40, 300}) {
    add("OneSlowVersionOf" + std::to_string(one_of), versions(1, [=](int version) { return version % one_of == 0; }));
  }
  add("TwoSlowThenFiveGood", versions(1, [](int version) { return version % 7 < 2; }));
  add("FiveSlowThenSixtyGood", versions(1, [](int version) { return version % 65 < 5; }));
  add("GoodUntilTheTrialIsOver", versions(1, [](int version) { return version > 100; }));
  // Clocks.
  add("Alternating", versions(1, all, 900));
  add("AlternatingWithinAPlan", always([](int i) {
        return text({i + 1, [](int at) { return at % 2 ? kLowest : kHighest; }});
      }));
  add("OneComputationAtTheLowest", always([](int i) {
        return text({i + 1, [](int at) { return at == 3 ? kLowest : kHighest; }});
      }));
  add("Unsupported", always([](int i) { return text({i + 1, [](int) { return 1111; }}); }));
  add("Negative", always([](int i) { return text({i + 1, [](int) { return -5; }}); }));
  add("OutOfTheTable", always([](int i) { return text({i + 1, [](int) { return 999'999'999; }}); }));
  add("ZeroMhz", always([](int i) { return text({i + 1, [](int) { return 0; }}); }));
  // Promises.
  add("AnHonestPromiseOfSixTimesAsLong", always([](int i) {
        return text({i + 1, [](int) { return kLowest; }, "plan", 3});
      }));
  add("APromiseOfALittleLess", always([](int i) { return text({i + 1, [](int) { return 1200; }, "plan", 0.59}); }));
  for (const double most_s : {kIteration_s, 0.0}) {
    const std::string because = R"(,"slower_because":"max_slowdown 6.0")", name = most_s > 0 ? "" : "WithoutATime";
    add("SixTimesAsLongForAReason" + name, always([=](int i) {
          return text({i + 1, [](int) { return kLowest; }, "plan", 3, most_s, 8, because});
        }));
    add("OneVersionOfSixTimesAsLongForAReason" + name, always([=](int) {
          return text({1, [](int) { return kLowest; }, "plan", 3, most_s, 8, because});
        }));
  }
  add("SixTimesAsLongAsAWrongTimeForAReason", always([](int i) {
        return text({i + 1, [](int) { return kLowest; }, "plan", 3, 2.9, 8, R"(,"slower_because":"a straggler")"});
      }));
  add("NoPromise", always([](int i) { return text({i + 1, [](int) { return kLowest; }, "plan", 0, 0}); }));
  add("ANegativePromise", always([](int i) { return text({i + 1, [](int) { return kLowest; }, "plan", -1, -1}); }));
  add("AHugeTimeAtTheHighestClock", always([](int i) {
        return text({i + 1, [](int) { return kLowest; }, "plan", 1, 1e9});
      }));
  // Shapes.
  for (const int computations : {0, 1, 7, 9, 100}) {
    add(std::to_string(computations) + "Computations", always([=](int i) {
          return text({i + 1, [](int) { return kLowest; }, "plan", kIteration_s, kIteration_s, computations});
        }));
  }
  add("WrongMicrobatches", always([](int i) {
        return text({i + 1, [](int) { return kLowest; }, "plan", kIteration_s, kIteration_s, 8,
                     R"(,"computations":[[9,0],[9,0],[9,0],[9,0],[9,0],[9,0],[9,0],[9,0]])"});
      }));
  add("ThePlanOfAnotherRank", always([](int i) {
        std::string plan = text({i + 1});
        return plan.replace(plan.find("\"rank\":0"), 8, "\"rank\":7");
      }));
  // Kinds.
  add("NoPlanAgainAndAgain", always([](int i) { return text({i + 1, [](int) { return kLowest; }, "maximum_clock"}); }));
  add("WindowsAtTheLowestClock", always([](int i) { return window(i + 1, kLowest, ""); }));
  add("WindowsForEver", always([](int i) { return window(i + 1, 1200, R"(,"iterations":1)"); }));
  add("OneEndlessWindow", always([](int) { return window(1, 1200, R"(,"iterations":1000000)"); }));
  add("WindowsThatEnd",
      always([](int i) { return window(i + 1, kLowest, R"(,"iterations":2,"then":"maximum_clock")"); }));
  add("WindowsThatSetNoClock", always([](int i) { return window(i + 1, 0, ""); }));
  add("WindowsAndPlansInTurn", always([](int i) { return i % 2 ? window(i + 1, kLowest, "") : text({i + 1}); }));
  add("AnUnknownKind", always([](int i) { return text({i + 1, [](int) { return kLowest; }, "slow"}); }));
  // When.
  add("PlansThatNeverBegin", always([](int i) {
        std::string plan = text({i + 1});
        return plan.replace(plan.find("\"from_iteration\":0"), 18, "\"from_iteration\":8000000000000000");
      }));
  add("PlansOfThePast", always([](int i) {
        std::string plan = text({i + 1});
        return plan.replace(plan.find("\"from_iteration\":0"), 18, "\"from_iteration\":-100");
      }));
  // Garbage.
  for (const std::string garbage :
       {"", "null", "[]", "{", "{}", "\"plan\"", "<html>502</html>", "{\"version\":\"one\"}", "\xff\xfe\x00"}) {
    add("Garbage" + std::to_string(modes.size()), always([=](int) { return garbage; }));
  }
  add("HalfAPlan", always([](int i) { return text({i + 1}).substr(0, 90); }));
  add("DeeplyNested", always([](int) { return std::string(100'000, '['); }));
  add("AHugeReason", [](int iteration) {
    if (iteration % 100 != 0) return std::vector<std::string>();
    return std::vector{text({iteration + 1, [](int) { return kLowest; }, "plan", kIteration_s, kIteration_s, 8,
                             R"(,"more":")" + std::string(1'000'000, 'x') + "\""})};
  });
  add("GarbageAndPlansInTurn", always([](int i) { return i % 2 ? std::string("{") : text({i + 1}); }));
  return modes;
}

class HostileServer : public ::testing::TestWithParam<Mode> {};

TEST_P(HostileServer, SlowsTrainingByNoMoreThanOnePercentAndFillsNoLog) {
  constexpr int first = 15, iterations = 4000;
  constexpr double usual_s = 1.02 * kIteration_s;
  ServedRank rank;
  double from_s = 0;
  for (int i = 0; i < first + iterations; ++i) {
    if (i == first) from_s = rank.now_s;
    for (const std::string& answer : GetParam().answers(i)) rank.receives(answer);
    rank.iterates();
  }
  EXPECT_LE(rank.now_s - from_s, 1.01 * iterations * usual_s);
  EXPECT_LE(from_s - 100, first * 6 * usual_s);
  // Several causes, each with a line a minute at most.
  for (const auto& [minute, lines] : rank.lines_in_minute) EXPECT_LE(lines, 4) << minute;
  EXPECT_LE(rank.lines, 3 * (rank.now_s - 100) / 60 + 4);
}

INSTANTIATE_TEST_SUITE_P(Modes, HostileServer, ::testing::ValuesIn(modes()),
                         [](const ::testing::TestParamInfo<Mode>& mode) { return mode.param.name; });

/// What a server does to one request for a plan.
struct Wire {
  std::string name;
  std::string bytes;      ///< "": closes the connection
  bool slowly = false;    ///< byte by byte, until the client gives up
  bool holds = false;     ///< then neither more bytes nor an end
  bool ends_job = false;  ///< no more requests follow
};

/// Answers registrations as a server does, and requests for a plan as one of these.
class WireServer {
 public:
  explicit WireServer(Wire wire) : wire_(std::move(wire)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    (void)::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size);
    (void)::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    (void)::listen(listener_, 16);
    port_ = ntohs(address.sin_port);
    accepting_ = std::thread([this] { accept_all(); });
  }
  WireServer(const WireServer&) = delete;
  WireServer& operator=(const WireServer&) = delete;
  ~WireServer() {
    stopping_ = true;
    (void)::shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    for (std::thread& one : connections_) one.join();
    (void)::close(listener_);
  }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int asked() const { return asked_; }

 private:
  void accept_all() {
    while (!stopping_) {
      const int client = ::accept(listener_, nullptr, nullptr);
      if (client >= 0) connections_.emplace_back([this, client] { serve(client); });
    }
  }
  /// Waits for bytes; false: the connection has ended.
  bool read_some(int client, std::string& into) const {
    while (!stopping_) {
      pollfd ready{client, POLLIN, 0};
      if (::poll(&ready, 1, 20) <= 0) continue;
      std::array<char, 4096> bytes{};
      const ssize_t got = ::recv(client, bytes.data(), bytes.size(), 0);
      if (got <= 0) return false;
      into.append(bytes.data(), static_cast<std::size_t>(got));
      return true;
    }
    return false;
  }
  static void send_all(int client, const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t now = ::send(client, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (now <= 0) return;
      sent += static_cast<std::size_t>(now);
    }
  }
  void serve(int client) {
    std::string read;
    while (true) {
      std::size_t head = read.find("\r\n\r\n");
      while (head == std::string::npos && read_some(client, read)) head = read.find("\r\n\r\n");
      if (head == std::string::npos) break;
      const std::string request = read.substr(0, head);
      const std::size_t length = request.find("Content-Length: ");
      const std::size_t body = length == std::string::npos ? 0 : std::stoul(request.substr(length + 16));
      while (read.size() < head + 4 + body && read_some(client, read)) {}
      read.erase(0, head + 4 + body);
      if (!answers(client, request)) break;
    }
    (void)::close(client);
  }
  /// False: the connection is to be closed.
  bool answers(int client, const std::string& request) {
    if (request.find("/plan?") == std::string::npos) {
      const std::string body = request.starts_with("POST /v1/jobs HTTP") ? R"({"job":"j1","state":"deployed"})"
                                                                         : R"({"registered":1,"expected":1})";
      send_all(client, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
                           std::to_string(body.size()) + "\r\n\r\n" + body);
      return true;
    }
    ++asked_;
    std::string ignored;
    for (std::size_t i = 0; wire_.slowly && i < wire_.bytes.size(); ++i) {
      send_all(client, wire_.bytes.substr(i, 1));
      pollfd closed{client, POLLRDHUP, 0};
      if (stopping_ || ::poll(&closed, 1, 20) > 0) return false;
    }
    if (!wire_.slowly) send_all(client, wire_.bytes);
    while (wire_.holds && read_some(client, ignored)) {}
    return !wire_.holds && !wire_.bytes.empty();
  }

  Wire wire_;
  int listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int> asked_{0};
  std::thread accepting_;
  std::vector<std::thread> connections_;
};

std::vector<Wire> wires() {
  const std::string plan = text({1});  // at the lowest clock: none may run for long
  const std::string length = "Content-Length: " + std::to_string(plan.size()) + "\r\n";
  const std::string json = "Content-Type: application/json\r\n";
  std::vector<Wire> wires;
  for (const char* status :
       {"204 No Content", "301 Moved Permanently", "307 Temporary Redirect", "400 Bad Request", "401 Unauthorized",
        "403 Forbidden", "404 Not Found", "418 I'm a teapot", "429 Too Many Requests", "500 Internal Server Error",
        "502 Bad Gateway", "503 Service Unavailable", "599 Unknown", "999 Unknown"}) {
    wires.push_back({"Status" + std::string(status).substr(0, 3),
                     "HTTP/1.1 " + std::string(status) + "\r\nLocation: /v1/jobs/j1/ranks/0/plan?have=0\r\n" + json +
                         length + "\r\n" + plan});
  }
  wires.push_back({"TheJobIsOver", "HTTP/1.1 409 Conflict\r\n" + json + length + "\r\n" + plan, false, false, true});
  wires.push_back({"APlan", "HTTP/1.1 200 OK\r\n" + json + length + "\r\n" + plan});
  wires.push_back({"NoContentType", "HTTP/1.1 200 OK\r\n" + length + "\r\n" + plan});
  wires.push_back(
      {"ALengthThatIsTooLong", "HTTP/1.1 200 OK\r\n" + json + "Content-Length: 100000\r\n\r\n" + plan, false, true});
  wires.push_back({"ALengthThatIsTooShort", "HTTP/1.1 200 OK\r\n" + json + "Content-Length: 10\r\n\r\n" + plan});
  wires.push_back({"ANegativeLength", "HTTP/1.1 200 OK\r\n" + json + "Content-Length: -5\r\n\r\n" + plan});
  wires.push_back({"TwoLengths", "HTTP/1.1 200 OK\r\n" + json + length + "Content-Length: 3\r\n\r\n" + plan});
  wires.push_back({"GarbageChunks", "HTTP/1.1 200 OK\r\n" + json + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + plan});
  wires.push_back({"AnEndlessChunk",
                   "HTTP/1.1 200 OK\r\n" + json + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n" + plan, false,
                   true});
  wires.push_back({"HeadersAlone", "HTTP/1.1 200 OK\r\n", false, true});
  wires.push_back({"NoAnswer", " ", false, true});
  wires.push_back({"ItHangsUp", ""});
  wires.push_back({"SlowBytes", "HTTP/1.1 200 OK\r\n" + json + length + "\r\n" + plan, true});
  wires.push_back({"ContinueForEver", "HTTP/1.1 100 Continue\r\n\r\n", false, true});
  wires.push_back({"NoHttp", "SSH-2.0-OpenSSH_9.2\r\n", false, true});
  wires.push_back(
      {"ManyHeaders", "HTTP/1.1 200 OK\r\nX: " + std::string(1'000'000, 'x') + "\r\n" + length + "\r\n" + plan});
  wires.push_back(
      {"AHugeBody", "HTTP/1.1 200 OK\r\n" + json + "Content-Length: 20000000\r\n\r\n" + std::string(20'000'000, '[')});
  return wires;
}

class HostileWire : public ::testing::TestWithParam<Wire> {};

TEST_P(HostileWire, SlowsTrainingByNoMoreThanOnePercentAndFillsNoLog) {
  constexpr int first = 15, iterations = 3000;
  constexpr double usual_s = 1.02 * kIteration_s;
  ServedRank rank;
  WireServer server(GetParam());
  const auto session = rank.session(server.url());
  for (int i = 0; i < 5; ++i) rank.iterates();
  const int wanted = GetParam().ends_job ? 1 : 5;
  EXPECT_TRUE(eventually([&] { return server.asked() >= wanted; }));
  for (int i = 5; i < first; ++i) rank.iterates();
  const double from_s = rank.now_s;
  for (int i = 0; i < iterations; ++i) rank.iterates();
  session->stop(0);
  EXPECT_LE(rank.now_s - from_s, 1.01 * iterations * usual_s);
  EXPECT_LE(rank.lines, 3 * (rank.now_s - 100) / 60 + 4);
}

INSTANTIATE_TEST_SUITE_P(Wires, HostileWire, ::testing::ValuesIn(wires()),
                         [](const ::testing::TestParamInfo<Wire>& wire) { return wire.param.name; });

}  // namespace
}  // namespace perseus::client::hostile
