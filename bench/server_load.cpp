// Measures the speed of `perseus serve`: its own server and thousands of keep-alive connections from one epoll loop,
// both on this machine's cores. Prints the table of docs/measurements/server.md. The databases are in TMPDIR.
//
// usage: server_load PERSEUS PROFILE.csv [RANKS] [--json] [--only PART]
//   RANKS: default 8192; the profile must have 8 stages or 4; PART: serving, stall, start, hosts, traffic, or readers
//   (the cost of lists, dashboards and event streams for ranks)
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

[[noreturn]] void fail(const std::string& what) {
  fmt::print(stderr, "server_load: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

/// The server as a child process.
struct Server {
  pid_t pid = 0;
  std::uint16_t port = 0;
  Server(const char* program, const std::string& data, const std::vector<std::string>& more) {
    int out[2];
    if (pipe(out) != 0) fail("pipe");
    pid = fork();
    if (pid == 0) {
      dup2(out[1], 1);
      std::freopen("/dev/null", "w", stderr);
      std::vector<const char*> arguments{program, "serve", "--listen", "127.0.0.1:0", "--data", data.c_str()};
      for (const std::string& argument : more) arguments.push_back(argument.c_str());
      arguments.push_back(nullptr);
      execv(program, const_cast<char* const*>(arguments.data()));
      _exit(127);
    }
    close(out[1]);
    std::string line;
    for (char c = 0; read(out[0], &c, 1) == 1 && c != '\n';) line += c;
    port = static_cast<std::uint16_t>(std::atoi(line.substr(line.rfind(':') + 1).c_str()));
    if (port == 0) fail("the server did not start");
  }
  ~Server() {
    kill(pid, SIGTERM);
    waitpid(pid, nullptr, 0);
  }
  /// User and system time so far.
  [[nodiscard]] double cpu_s() const {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string text;
    std::getline(file, text);
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    double user = 0, system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  [[nodiscard]] double resident_mb() const {
    std::ifstream file(fmt::format("/proc/{}/status", pid));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("VmRSS:")) return std::atof(line.substr(6).c_str()) / 1024;
    }
    return 0;
  }
};

/// Keep-alive connections; each has one request under way and a function that receives the body of the response.
class Clients {
 public:
  Clients(std::uint16_t port, int count, bool tls = false, bool greet = false) : connections_(count) {
    epoll_ = epoll_create1(0);
    SSL_CTX* const context = tls ? SSL_CTX_new(TLS_client_method()) : nullptr;
    for (int i = 0; i < count; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("connect");
      const int yes = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      if (tls) {
        SSL* const ssl = connections_[i].ssl = SSL_new(context);
        SSL_set_fd(ssl, fd);
        if (SSL_connect(ssl) != 1) fail("TLS");
        if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) fail("fcntl");  // SSL_read() may find only half of a record
      }
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u32 = static_cast<std::uint32_t>(i);
      epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
      connections_[i].fd = fd;
      // Connecting thousands takes longer than a connection may be silent before its first request.
      if (greet) ask(i, "GET", "/healthz", "", [](const std::string&) {});
    }
    SSL_CTX_free(context);
    run();
  }
  ~Clients() {
    for (const Connection& connection : connections_) {
      SSL_free(connection.ssl);
      close(connection.fd);
    }
    close(epoll_);
  }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  using Answer = std::function<void(const std::string& body)>;
  void ask(int client, const std::string& method, const std::string& target, const std::string& body, Answer answer) {
    Connection& connection = connections_[client];
    connection.answer = std::move(answer);
    const std::string text = fmt::format(
        "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", method,
        target, body.size(), body);
    const auto size = static_cast<ssize_t>(text.size());
    if (connection.ssl != nullptr ? SSL_write(connection.ssl, text.data(), static_cast<int>(size)) != size
                                  : write(connection.fd, text.data(), text.size()) != size) {
      fail("write");
    }
    ++under_way_;
  }
  /// Runs until every request has its response.
  void run() {
    while (under_way_ > 0) take(-1);
  }
  /// Handles available responses and waits up to wait_ms milliseconds for the first; -1: without limit.
  void take(int wait_ms = 0) {
    const int count = epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()), wait_ms);
    for (int i = 0; i < count; ++i) take_from(connections_[events_[i].data.u32]);
  }
  /// Runs until every request has its response, but drops the handlers, so that no connection repeats its request.
  void run_out() {
    for (Connection& connection : connections_) {
      if (connection.answer) connection.answer = [](const std::string&) {};
    }
    run();
  }
  std::string once(const std::string& method, const std::string& target, const std::string& body) {
    std::string result;
    ask(0, method, target, body, [&](const std::string& answer) { result = answer; });
    run();
    return result;
  }

 private:
  struct Connection {
    int fd = -1;
    SSL* ssl = nullptr;
    std::string text;
    Answer answer;
  };
  void take_from(Connection& connection) {
    ssize_t got = 0;
    if (connection.ssl != nullptr) {
      got = SSL_read(connection.ssl, bytes_.data(), static_cast<int>(bytes_.size()));
      if (got <= 0 && SSL_get_error(connection.ssl, static_cast<int>(got)) == SSL_ERROR_WANT_READ) return;
    } else {
      got = read(connection.fd, bytes_.data(), bytes_.size());
    }
    if (got <= 0)
      fail(
          fmt::format("the server closed connection {} of {}", &connection - connections_.data(), connections_.size()));
    connection.text.append(bytes_.data(), static_cast<std::size_t>(got));
    const std::size_t head = connection.text.find("\r\n\r\n");
    if (head == std::string::npos) return;
    const std::size_t at = connection.text.find("Content-Length: ");
    const std::size_t length = std::strtoul(connection.text.c_str() + at + 16, nullptr, 10);
    if (connection.text.size() < head + 4 + length) return;
    if (!connection.text.starts_with("HTTP/1.1 200")) {
      fmt::print(stderr, "{}\n", connection.text);
      std::exit(1);
    }
    const std::string body = connection.text.substr(head + 4);
    std::string().swap(connection.text);
    --under_way_;
    const Answer answer = std::exchange(connection.answer, {});
    answer(body);
  }

  int epoll_;
  int under_way_ = 0;
  std::vector<Connection> connections_;
  std::vector<epoll_event> events_{1024};
  std::vector<char> bytes_ = std::vector<char>(1 << 16);
};

/// Connections that send one request each and drop the data received, on a thread of their own.
class Readers {
 public:
  Readers(std::uint16_t port, int count, const std::string& request) {
    epoll_ = epoll_create1(0);
    for (int i = 0; i < count; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("connect");
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.fd = fd;
      epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
      fds_.push_back(fd);
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { drop_all(stop); });
    for (const int fd : fds_) {
      for (std::size_t at = 0; at < request.size();) {
        const ssize_t sent = write(fd, request.data() + at, request.size() - at);
        if (sent <= 0) fail("write");
        at += static_cast<std::size_t>(sent);
      }
    }
  }
  ~Readers() {
    thread_.request_stop();
    thread_.join();
    for (const int fd : fds_) close(fd);
    close(epoll_);
  }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;
  /// Number of times that the text has arrived.
  [[nodiscard]] std::size_t answers() const { return answers_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void drop_all(const std::stop_token& stop) {
    std::vector<char> bytes(1 << 20);
    std::vector<epoll_event> events(256);
    while (!stop.stop_requested()) {
      const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 20);
      for (int i = 0; i < count; ++i) {
        const ssize_t got = read(events[i].data.fd, bytes.data(), bytes.size());
        if (got <= 0) {
          epoll_ctl(epoll_, EPOLL_CTL_DEL, events[i].data.fd, nullptr);
          continue;
        }
        bytes_ += static_cast<std::size_t>(got);
        const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
        for (std::size_t at = 0; (at = text.find("HTTP/1.1 200", at)) != std::string_view::npos; ++at) ++answers_;
      }
    }
  }
  int epoll_;
  std::vector<int> fds_;
  std::atomic<std::size_t> answers_ = 0, bytes_ = 0;
  std::jthread thread_;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (c != '\r') {
      out += c;
    }
  }
  return out + '"';
}

std::string member(const std::string& json, const std::string& name) {
  const std::size_t at = json.find("\"" + name + "\":") + name.size() + 3;
  const std::size_t end = json.find_first_of(",}", at);
  std::string value = json.substr(at, end - at);
  std::erase(value, '"');
  return value;
}

struct Row {
  std::string what, unit;
  double value, must, aim;
};

struct Load {
  const char* program;
  std::string csv;
  int ranks, stages;
  std::string data;  ///< a folder of its own
};

std::string pipeline_json(const std::string& csv, int microbatches) {
  return fmt::format(R"({{"profile_csv":{},"pipeline":{{"schedule":"1f1b","microbatches":{},"blocking_power_w":80}}}})",
                     quoted(csv), microbatches);
}

std::string job_json(int dp, int pp, const std::string& more) {
  return fmt::format(R"({{"degrees":{{"dp":{},"pp":{},"tp":1}}{}}})", dp, pp, more);
}

std::string rank_json(int rank, int stages) {
  return fmt::format(R"({{"rank":{},"dp_rank":{},"pp_rank":{},"tp_rank":0,"accelerator":"GPU-{}","host":"node{}"}})",
                     rank, rank / stages, rank % stages, rank, rank / 8);
}

/// The same profile with all times longer by this factor, which gives another frontier.
std::string scaled(const std::string& csv, double factor) {
  std::istringstream lines(csv);
  std::string line, text;
  std::getline(lines, line);
  text = line + "\n";
  while (std::getline(lines, line)) {
    const std::size_t energy = line.rfind(',');
    const std::size_t time = line.rfind(',', energy - 1);
    text += fmt::format("{},{:.6f}{}\n", line.substr(0, time), factor * std::atof(line.c_str() + time + 1),
                        line.substr(energy));
  }
  return text;
}

/// All ranks register, get their plan, and wait for the next one, which a straggler triggers.
void measure_serving(const Load& load, std::vector<Row>& rows) {
  const Server server(load.program, load.data + "/serving", {"--plan-deadlines", "100"});
  std::string job;
  {
    Clients one(server.port, 1);
    one.once("PUT", "/v1/profiles/load", pipeline_json(load.csv, 32));  // 64 instructions a rank
    const auto new_job = [&](int dp) {
      return member(one.once("POST", "/v1/jobs", job_json(dp, load.stages, R"(,"profile":"load")")), "job");
    };
    // Characterize before the measurement starts: the original server does not plan here.
    const std::string first = new_job(1);
    for (int rank = 0; rank < load.stages; ++rank) {
      one.once("POST", "/v1/jobs/" + first + "/ranks", rank_json(rank, load.stages));
    }
    one.once("GET", "/v1/jobs/" + first + "/ranks/0/plan", "");
    job = new_job(load.ranks / load.stages);
  }
  const double cpu = server.cpu_s();
  const auto begin = Clock::now();
  Clients clients(server.port, load.ranks);
  std::vector<std::string> versions(load.ranks);
  int asked_again = 0;
  const std::string path = "/v1/jobs/" + job + "/ranks";
  for (int rank = 0; rank < load.ranks; ++rank) {
    clients.ask(rank, "POST", path + "?plan=true", rank_json(rank, load.stages), [&, rank](const std::string& answer) {
      if (answer.find("\"plan\"") != std::string::npos) {
        versions[rank] = member(answer, "version");
        return;
      }
      ++asked_again;
      clients.ask(rank, "GET", fmt::format("{}/{}/plan", path, rank), "",
                  [&, rank](const std::string& plan) { versions[rank] = member(plan, "version"); });
    });
  }
  clients.run();
  rows.push_back({"register and hand out: last rank served", "s", since(begin), 1, 0.3});
  rows.push_back({"register and hand out: ranks that had to ask again for a plan", "", double(asked_again), 0, 0});
  rows.push_back({"register and hand out: server CPU", "s", server.cpu_s() - cpu, 15.3 / 20, 15.3 / 60});

  double last = 0;
  Clock::time_point notice;
  for (int rank = 0; rank < load.ranks; ++rank) {
    clients.ask(rank, "GET", fmt::format("{}/{}/plan?have={}", path, rank, versions[rank]), "",
                [&](const std::string&) { last = since(notice); });
  }
  Clients other(server.port, 1);
  while (true) {  // until all of them wait
    const std::string metrics = other.once("GET", "/metrics", "");
    if (metrics.find(fmt::format("perseus_waiting_ranks {}\n", load.ranks)) != std::string::npos) break;
  }
  rows.push_back({"memory, all ranks waiting", "MB", server.resident_mb(), 150, 64});
  const double before = server.cpu_s();
  notice = Clock::now();
  other.once("POST", "/v1/jobs/" + job + "/stragglers", R"({"pipeline":0,"degree":1.1})");
  clients.run();
  rows.push_back({"straggler notice to last waiting rank's plan", "s", last, 1, 0.2});
  rows.push_back({"straggler notice: server CPU", "s", server.cpu_s() - before, 0, 0});
}

/// Registers jobs, uploads a profile for each and characterizes them, while all their ranks wait and requests continue.
void measure_stall(const Load& load, std::vector<Row>& rows) {
  constexpr int jobs = 100;
  constexpr int ranks = 64;  // each
  const Server server(load.program, load.data + "/stall", {});
  std::map<std::string, std::vector<double>> took_s;  // by kind of request
  const auto timed = [&](Clients& clients, const std::string& kind, const std::string& method,
                         const std::string& target, const std::string& body) {
    const auto begin = Clock::now();
    clients.once(method, target, body);
    took_s[kind].push_back(since(begin));
  };
  Clients one(server.port, 1);
  Clients waiting(server.port, jobs * ranks);
  std::vector<std::string> ids;
  for (int j = 0; j < jobs; ++j) {
    ids.push_back(member(one.once("POST", "/v1/jobs", job_json(ranks / load.stages, load.stages, "")), "job"));
  }
  for (int i = 0; i < jobs * ranks; ++i) {
    const std::string path = "/v1/jobs/" + ids[i / ranks] + "/ranks";
    waiting.ask(i, "POST", path, rank_json(i % ranks, load.stages), [](const std::string&) {});
  }
  waiting.run();
  const auto began = Clock::now();
  int planned = 0;
  std::vector<bool> has_plan(static_cast<std::size_t>(jobs * ranks));
  const std::function<void(int, const std::string&)> wait = [&](int i, const std::string& have) {
    if (have != "0" && !has_plan[i]) has_plan[i] = true, ++planned;
    const std::string target = fmt::format("/v1/jobs/{}/ranks/{}/plan?have={}", ids[i / ranks], i % ranks, have);
    waiting.ask(i, "GET", target, "", [&, i](const std::string& plan) { wait(i, member(plan, "version")); });
  };
  for (int i = 0; i < jobs * ranks; ++i) wait(i, "0");
  int turn = 0;
  while (planned < jobs * ranks) {  // the waiting ranks increment it
    const std::string job = "/v1/jobs/" + ids[static_cast<std::size_t>(turn) * 7 % jobs];
    if (turn < jobs) {
      timed(one, "upload a profile", "PUT", "/v1/jobs/" + ids[turn] + "/profile",
            pipeline_json(scaled(load.csv, 1 + 0.001 * turn), 24));
    }
    timed(one, "look at a job", "GET", job, "");
    timed(one, "ask for a plan", "GET", job + "/ranks/5/plan?wait_s=0", "");
    timed(one, "report an iteration", "POST", job + "/iterations", R"({"rank":1,"iteration_time_s":[4.5]})");
    timed(one, "straggler notice", "POST", job + "/stragglers",
          fmt::format(R"({{"pipeline":1,"degree":{}}})", 1.02 + 0.001 * (turn % 97)));  // a new degree every time
    timed(one, "list jobs", "GET", "/v1/jobs", "");
    waiting.take(2);  // continues the requests, but leaves the cores to others
    ++turn;
  }
  for (auto& [kind, times] : took_s) {
    std::sort(times.begin(), times.end());
    rows.push_back({fmt::format("100 jobs of 64 ranks characterized: worst of {} times '{}' (median {:.2g})",
                                times.size(), kind, 1e3 * times[times.size() / 2]),
                    "ms", 1e3 * times.back(), 100, 20});
  }
  rows.push_back({"100 jobs of 64 ranks characterized: all of it", "s", since(began), 0, 0});
  if (std::getenv("PERSEUS_LOAD_METRICS") != nullptr) fmt::print(stderr, "{}", one.once("GET", "/metrics", ""));
}

/// A relay's request for the ranks of its host.
std::string exchange_json(const std::string& job, int first, int count, const std::string& have) {
  std::string text = R"({"wait_s":60,"waits":[)";
  for (int rank = first; rank < first + count; ++rank) {
    text += fmt::format(R"({}{{"job":"{}","rank":{},"have":{}}})", rank == first ? "" : ",", job, rank, have);
  }
  return text + "]}";
}

/// Interval of each rank's reports, and of a client's requests for plans.
constexpr double iteration_s = 5, poll_s = 10;

std::string report_json(int rank, int iteration) {
  return fmt::format(
      R"({{"rank":{},"last_iteration":{},"plan_version":1,"iteration_time_s":[4.5],"iteration_energy_j":[1200]}})",
      rank, iteration);
}

/// Load of the ranks during training: each waits for a plan, and reports every iteration. They connect through relays
/// of 8 ranks, or each by itself on two persistent connections.
void measure_steady(const Load& load, bool tls, bool relays, std::vector<Row>& rows) {
  constexpr int ranks_of_a_host = 8;
  constexpr double lasts_s = 20;
  std::vector<std::string> more{"--plan-deadlines", "100"};
  if (tls) {
    const std::string key = load.data + "/key.pem", certificate = load.data + "/certificate.pem";
    const std::string make =
        fmt::format("openssl req -x509 -newkey rsa:2048 -nodes -keyout {} -out {} -subj /CN=localhost 2>/dev/null", key,
                    certificate);
    if (std::system(make.c_str()) != 0) return;
    more.insert(more.end(), {"--tls-certificate", certificate, "--tls-key", key});
  }
  const Server server(load.program, fmt::format("{}/steady_{}_{}", load.data, tls, relays), more);
  const int hosts = load.ranks / ranks_of_a_host;
  Clients clients(server.port, relays ? hosts : 2 * load.ranks, tls, true);
  clients.once("PUT", "/v1/profiles/load", pipeline_json(load.csv, 32));
  const std::string job = member(
      clients.once("POST", "/v1/jobs", job_json(load.ranks / load.stages, load.stages, R"(,"profile":"load")")), "job");
  const std::string path = "/v1/jobs/" + job;
  for (int rank = 0; rank < load.ranks; ++rank) { clients.once("POST", path + "/ranks", rank_json(rank, load.stages)); }
  const std::string version = member(clients.once("GET", path + "/ranks/0/plan", ""), "version");

  const auto begin = Clock::now();
  const double cpu = server.cpu_s();
  // Iterations end at different moments on different hosts, as in jobs with different start times.
  const auto iteration_of = [&](int rank) {
    return static_cast<int>((since(begin) + iteration_s * (rank / ranks_of_a_host) / hosts) / iteration_s);
  };
  std::vector<int> reported(static_cast<std::size_t>(load.ranks));
  for (int rank = 0; rank < load.ranks; ++rank) reported[rank] = iteration_of(rank);
  std::int64_t reports = 0;
  bool ends = false;
  const std::function<void(int)> exchange = [&](int host) {
    if (ends) return;
    std::string text = R"({"wait_s":3,"reports":[)", waits;
    for (int rank = host * ranks_of_a_host; rank < (host + 1) * ranks_of_a_host; ++rank) {
      waits += fmt::format(R"({}{{"job":"{}","rank":{},"have":{}}})", waits.empty() ? "" : ",", job, rank, version);
      if (const int now = iteration_of(rank); now > reported[rank]) {
        text += fmt::format(R"({}{{"job":"{}","body":{}}})", text.back() == '[' ? "" : ",", job,
                            quoted(report_json(rank, reported[rank] = now)));
        ++reports;
      }
    }
    clients.ask(host, "POST", "/v1/exchange", text + R"(],"waits":[)" + waits + "]}",
                [&, host](const std::string&) { exchange(host); });
  };
  const std::function<void(int)> wait = [&](int rank) {
    if (ends) return;
    clients.ask(rank, "GET", fmt::format("{}/ranks/{}/plan?have={}&wait_s={}", path, rank, version, poll_s), "",
                [&, rank](const std::string&) { wait(rank); });
  };
  std::vector<bool> reporting(static_cast<std::size_t>(load.ranks));
  if (relays) {
    for (int host = 0; host < hosts; ++host) exchange(host);
  } else {
    for (int rank = 0; rank < load.ranks; ++rank) wait(rank);
  }
  while (since(begin) < lasts_s) {
    clients.take(5);
    for (int rank = 0; !relays && rank < load.ranks; ++rank) {
      if (reporting[rank] || iteration_of(rank) == reported[rank]) continue;
      reporting[rank] = true;
      ++reports;
      clients.ask(load.ranks + rank, "POST", path + "/iterations",
                  report_json(rank, reported[rank] = iteration_of(rank)),
                  [&, rank](const std::string&) { reporting[rank] = false; });
    }
  }
  const std::string what = fmt::format("steady traffic of {} ranks, {}{}", load.ranks,
                                       relays ? "a relay a host" : "two connections a rank", tls ? ", TLS" : "");
  rows.push_back({what + ": server", "cores", (server.cpu_s() - cpu) / since(begin), relays && tls ? 0.1 : 0,
                  relays && tls ? 0.03 : 0});
  rows.push_back({what + ": memory", "MB", server.resident_mb(), 0, 0});
  rows.push_back({what + ": reports", "1/s", static_cast<double>(reports) / since(begin), 0, 0});
  ends = true;
  clients.run();
}

void measure_traffic(const Load& load, std::vector<Row>& rows) {
  measure_steady(load, true, true, rows);
  measure_steady(load, false, false, rows);
  Load few = load;  // the client keeps two connections a rank, and file descriptors are limited
  few.ranks = 2048;
  measure_steady(few, true, false, rows);
}

/// Ranks on hosts of 8, each host with a relay: one connection that registers and waits for all of them.
void measure_hosts_of(const Load& load, int hosts, const std::map<std::string, std::pair<double, double>>& bounds,
                      std::vector<Row>& rows) {
  constexpr int ranks_of_a_host = 8;
  const int ranks = hosts * ranks_of_a_host;
  const auto row = [&](const std::string& what, const std::string& unit, double value) {
    const auto bound = bounds.find(what);
    rows.push_back({fmt::format("{} ranks, a relay on each of {} hosts: {}", ranks, hosts, what), unit, value,
                    bound == bounds.end() ? 0 : bound->second.first, bound == bounds.end() ? 0 : bound->second.second});
  };
  const Server server(load.program, fmt::format("{}/hosts{}", load.data, hosts), {"--plan-deadlines", "100"});
  Clients clients(server.port, hosts);
  clients.once("PUT", "/v1/profiles/load", pipeline_json(load.csv, 32));
  const auto new_job = [&](int dp) {
    return member(clients.once("POST", "/v1/jobs", job_json(dp, load.stages, R"(,"profile":"load")")), "job");
  };
  const std::string first = new_job(1);  // so that the profile is characterized
  for (int rank = 0; rank < load.stages; ++rank) {
    clients.once("POST", "/v1/jobs/" + first + "/ranks", rank_json(rank, load.stages));
  }
  clients.once("GET", "/v1/jobs/" + first + "/ranks/0/plan", "");
  const std::string job = new_job(ranks / load.stages);
  const std::string path = "/v1/jobs/" + job + "/ranks";
  const double cpu = server.cpu_s();
  const auto begin = Clock::now();
  int planned = 0, asked_again = 0;
  std::string version;
  const auto plans_in = [&](const std::string& answer) {
    constexpr std::string_view plan = "\\\"version\\\":";
    int count = 0;
    for (std::size_t at = 0; (at = answer.find(plan, at)) != std::string::npos; at += plan.size(), ++count) {
      version = answer.substr(at + plan.size(), answer.find(',', at) - at - plan.size());
    }
    planned += count;
    return count;
  };
  for (int host = 0; host < hosts; ++host) {
    const int first_rank = host * ranks_of_a_host;
    std::string text = R"({"wait_s":0,"ranks":[)";
    for (int rank = first_rank; rank < first_rank + ranks_of_a_host; ++rank) {
      text += fmt::format(R"({}{{"job":"{}","body":{}}})", text.back() == '[' ? "" : ",", job,
                          quoted(rank_json(rank, load.stages)));
    }
    clients.ask(host, "POST", "/v1/exchange", text + "]}", [&, host, first_rank](const std::string& answer) {
      // The first ones may register before the job has its plan.
      const int missing = ranks_of_a_host - plans_in(answer);
      if (missing == 0) return;
      asked_again += missing;
      clients.ask(host, "POST", "/v1/exchange", exchange_json(job, first_rank, missing, "0"), plans_in);
    });
  }
  clients.run();
  if (planned != ranks) fail(fmt::format("{} of {} ranks got a plan", planned, ranks));
  row("ranks that had to ask again for a plan", "", asked_again);
  row("register and get plans, last of them", "s", since(begin));
  row("register and get plans, server CPU", "s", server.cpu_s() - cpu);
  int told = 0;
  double last = 0;
  Clock::time_point notice;
  for (int host = 0; host < hosts; ++host) {
    clients.ask(host, "POST", "/v1/exchange", exchange_json(job, host * ranks_of_a_host, ranks_of_a_host, version),
                [&](const std::string& answer) {
                  for (std::size_t at = 0; (at = answer.find("\"wait\":", at)) != std::string::npos; ++at) ++told;
                  last = since(notice);
                });
  }
  Clients other(server.port, 1);
  while (other.once("GET", "/metrics", "").find(fmt::format("perseus_waiting_ranks {}\n", ranks)) ==
         std::string::npos) {}
  row("memory, all of them waiting", "MB", server.resident_mb());
  notice = Clock::now();
  other.once("POST", "/v1/jobs/" + job + "/stragglers", R"({"pipeline":0,"degree":1.1})");
  clients.run();
  if (told != ranks) fail(fmt::format("{} of {} ranks were told", told, ranks));
  row("notice to the last one's plan", "s", last);
}

void measure_hosts(const Load& load, std::vector<Row>& rows) {
  measure_hosts_of(load, load.ranks / 8,
                   {{"register and get plans, last of them", {0.5, 0.2}},
                    {"register and get plans, server CPU", {0.3, 0.15}},
                    {"notice to the last one's plan", {0.1, 0.05}}},
                   rows);
  measure_hosts_of(load, 12500,
                   {{"memory, all of them waiting", {300, 150}}, {"notice to the last one's plan", {3, 1}}}, rows);
}

/// From the start of the process until it prints its address, with 10,000 jobs of 10 events each in its database.
void measure_start(const Load& load, std::vector<Row>& rows) {
  constexpr int jobs = 10000;
  const std::string data = load.data + "/start";
  {
    const Server server(load.program, data, {"--plan-deadlines", "100"});
    Clients clients(server.port, 500);
    clients.once("PUT", "/v1/profiles/load", pipeline_json(load.csv, 32));
    for (int first = 0; first < jobs; first += 500) {
      for (int i = 0; i < 500; ++i) {
        clients.ask(i, "POST", "/v1/jobs", job_json(1, load.stages, R"(,"profile":"load")"),
                    [&, i](const std::string& answer) {
                      const std::string path = "/v1/jobs/" + member(answer, "job") + "/ranks";
                      clients.ask(i, "POST", path, rank_json(0, load.stages), [&, i, path](const std::string&) {
                        clients.ask(i, "POST", path, rank_json(1, load.stages), [](const std::string&) {});
                      });
                    });
      }
      clients.run();
    }
  }
  const auto begin = Clock::now();
  const Server server(load.program, data, {});
  Clients one(server.port, 1);
  one.once("GET", "/readyz", "");
  rows.push_back({"start with 10,000 stored jobs until ready", "s", since(begin), 3, 0.5});
  rows.push_back({"start: server CPU", "s", server.cpu_s(), 0, 0});
}

/// Effect of lists, dashboards and event streams on ranks, on a server with 5,000 jobs.
void measure_readers(const Load& load, std::vector<Row>& rows) {
  constexpr int jobs = 5000, few = 500;
  const Server server(load.program, load.data + "/readers", {"--plan-deadlines", "20"});
  Clients one(server.port, 1);
  one.once("PUT", "/v1/profiles/load", pipeline_json(load.csv, 8));
  Clients waiting(server.port, jobs);
  std::vector<std::string> ids(jobs), versions(jobs, "0");
  const auto rank = [&](int j, int number, const std::string& accelerator) {
    return fmt::format(R"({{"rank":{},"dp_rank":{},"pp_rank":0,"tp_rank":0,"accelerator":"{}","host":"node{}"}})",
                       number, number / load.stages, accelerator, j);
  };
  for (int j = 0; j < jobs; ++j) {
    waiting.ask(j, "POST", "/v1/jobs", job_json(2, load.stages, R"(,"profile":"load")"),
                [&, j](const std::string& made) {
                  ids[j] = member(made, "job");
                  const std::string path = "/v1/jobs/" + ids[j] + "/ranks";
                  waiting.ask(j, "POST", path, rank(j, 0, fmt::format("own{}", j)), [&, j, path](const std::string&) {
                    const std::string slow = rank(j, load.stages, j < few ? "few" : "many");
                    waiting.ask(j, "POST", path, slow, [](const std::string&) {});
                  });
                });
  }
  waiting.run();
  const auto plan_path = [&](int j) { return fmt::format("/v1/jobs/{}/ranks/0/plan?have=", ids[j]); };
  const auto wait_anew = [&](const std::function<void(int)>& answered) {
    for (int j = 0; j < jobs; ++j) {
      waiting.ask(j, "GET", plan_path(j) + versions[j], "", [&, j, answered](const std::string& plan) {
        versions[j] = member(plan, "version");
        answered(j);
      });
    }
  };
  wait_anew([](int) {});
  waiting.run();
  std::vector<double> took_s;
  const auto ask_plans_while = [&](const std::function<bool()>& going_on) {
    took_s.clear();
    for (int turn = 0; going_on(); ++turn) {
      const auto begin = Clock::now();
      one.once("GET", plan_path(turn % jobs) + "0&wait_s=0", "");
      took_s.push_back(since(begin));
      waiting.take(1);
    }
    std::sort(took_s.begin(), took_s.end());
  };
  const auto row = [&](const std::string& what, double must, double aim) {
    rows.push_back({fmt::format("5,000 jobs, {}: worst of {} plan requests (median {:.2g} ms)", what, took_s.size(),
                                1e3 * took_s[took_s.size() / 2]),
                    "ms", 1e3 * took_s.back(), must, aim});
  };
  {
    const std::string head = "HEAD /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const std::size_t count = (std::size_t{61} << 10U) / head.size();
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += head;
    const auto begin = Clock::now();
    const Readers pipelining(server.port, 1, all);
    ask_plans_while([&] { return pipelining.answers() < count; });
    row("61 KB of pipelined HEAD /v1/jobs", 50, 10);
    rows.push_back(
        {fmt::format("5,000 jobs, {} pipelined HEAD /v1/jobs: all answered", count), "s", since(begin), 0, 0});
  }
  {
    const double cpu = server.cpu_s();
    const Readers dashboards(server.port, 200, "GET /v1/job_changes HTTP/1.1\r\nHost: localhost\r\n\r\n");
    Clients notices(server.port, 1);
    int told = 0;
    const std::function<void()> tell = [&] {
      notices.ask(0, "POST", "/v1/jobs/" + ids[told % jobs] + "/stragglers",
                  fmt::format(R"({{"pipeline":1,"degree":{}}})", 1.01 + 0.001 * (told % 97)),
                  [&](const std::string&) { ++told, tell(); });
    };
    tell();
    const auto begin = Clock::now();
    ask_plans_while([&] { return notices.take(), since(begin) < 5; });
    row("200 dashboards, a notice after the other", 50, 10);
    rows.push_back({fmt::format("5,000 jobs, 200 dashboards, {} notices in 5 s: server CPU", told), "s",
                    server.cpu_s() - cpu, 0, 0});
    notices.run_out();
  }
  const Readers streams(server.port, 200, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  while (streams.answers() < 200) std::this_thread::yield();
  double last = 0;
  Clock::time_point begin;
  int answered = 0;
  Clients notices(server.port, 2);
  const auto notice = [&](int client, const std::string& accelerator, double degree, double& took) {
    notices.ask(client, "POST", "/v1/stragglers",
                fmt::format(R"({{"accelerator":"{}","degree":{}}})", accelerator, degree),
                [&](const std::string&) { took = since(begin); });
  };
  double few_took = 0, many_took = 0;
  begin = Clock::now();
  notice(0, "few", 1.3, few_took);
  ask_plans_while([&] { return notices.take(), few_took == 0; });
  rows.push_back({"500 jobs, a notice in all of them, 200 event streams: acknowledged", "s", few_took, 1, 0.3});
  notices.run();
  std::fill(versions.begin(), versions.end(), "0");
  wait_anew([](int) {});
  waiting.run();
  wait_anew([&](int) { ++answered, last = since(begin); });
  while (one.once("GET", "/metrics", "").find("perseus_waiting_ranks 5000\n") == std::string::npos) waiting.take(1);
  begin = Clock::now();
  notice(0, "few", 1.2, few_took);
  notice(1, "many", 1.2, many_took);
  ask_plans_while([&] { return notices.take(), answered < jobs; });
  rows.push_back({"5,000 jobs, a notice in all of them, 200 event streams: last rank", "s", last, 1, 0.3});
  row("a notice in all of them, 200 event streams", 50, 20);
  notices.run();
  if (std::getenv("PERSEUS_LOAD_METRICS") != nullptr) fmt::print(stderr, "{}", one.once("GET", "/metrics", ""));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: server_load PERSEUS PROFILE.csv [RANKS] [--readers] [--json]\n");
    return 64;
  }
  Load load{argv[1], "", argc > 3 && argv[3][0] != '-' ? std::atoi(argv[3]) : 8192, 0,
            (std::filesystem::temp_directory_path() / "perseus_load_XXXXXX").string()};
  bool json = false;
  std::string only;
  for (int i = 3; i < argc; ++i) {
    json = json || std::strcmp(argv[i], "--json") == 0;
    if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) only = argv[i + 1];
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  std::ifstream file(argv[2]);
  std::stringstream csv;
  csv << file.rdbuf();
  load.csv = csv.str();
  for (std::string line; std::getline(csv, line);) load.stages = std::max(load.stages, std::atoi(line.c_str()) + 1);

  if (mkdtemp(load.data.data()) == nullptr) fail("mkdtemp");
  std::vector<Row> rows;
  const std::map<std::string, void (*)(const Load&, std::vector<Row>&)> parts{
      {"serving", measure_serving}, {"stall", measure_stall},     {"start", measure_start},
      {"hosts", measure_hosts},     {"traffic", measure_traffic}, {"readers", measure_readers}};
  for (const char* part : {"serving", "stall", "start", "hosts", "traffic", "readers"}) {
    if (!only.empty() && only != part) continue;
    const std::size_t before = rows.size();
    parts.at(part)(load, rows);
    for (std::size_t i = before; i < rows.size(); ++i) {
      fmt::print(stderr, "server_load: {}: {:.3g} {}\n", rows[i].what, rows[i].value, rows[i].unit);
    }
  }
  std::filesystem::remove_all(load.data);
  bool met = true;
  for (const Row& row : rows) met = met && (row.must == 0 || row.value <= row.must);
  if (json) {
    fmt::print("{{\"ranks\":{},\"rows\":[", load.ranks);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      fmt::print("{}{{\"what\":\"{}\",\"unit\":\"{}\",\"value\":{:.4g},\"must\":{:.4g},\"aim\":{:.4g}}}",
                 i == 0 ? "" : ",", rows[i].what, rows[i].unit, rows[i].value, rows[i].must, rows[i].aim);
    }
    fmt::print("]}}\n");
  } else {
    fmt::print("| {} ranks | measured | must | aim |\n| --- | --- | --- | --- |\n", load.ranks);
    for (const Row& row : rows) {
      fmt::print("| {} | {:.3g} {} | ", row.what, row.value, row.unit);
      row.must == 0 ? fmt::print("| |\n") : fmt::print("{:.3g} | {:.3g} |\n", row.must, row.aim);
    }
  }
  return met ? 0 : 1;
}
