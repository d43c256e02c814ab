// A `perseus serve` process, and thousands of connections to it from one epoll loop.
//
// Errors:  the program prints them and ends.
// Threads: one for the clients; readers have their own.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace perseus::bench {

using Clock = std::chrono::steady_clock;
inline double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

[[noreturn]] inline void fail(const std::string& what) {
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
  /// That function in place of a server, on a listening socket.
  explicit Server(const std::function<void(int listening)>& serve) {
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(listening, any, size) != 0 || listen(listening, SOMAXCONN) != 0) fail("listen");
    getsockname(listening, any, &size);
    port = ntohs(address.sin_port);
    pid = fork();
    if (pid == 0) {
      serve(listening);
      _exit(0);
    }
    close(listening);
  }
  ~Server() {
    kill(pid, SIGTERM);
    waitpid(pid, nullptr, 0);
  }
  /// User and system time so far.
  [[nodiscard]] double cpu_s() const { return user_s() + time_s(12); }
  [[nodiscard]] double user_s() const { return time_s(11); }
  [[nodiscard]] double resident_mb() const {
    std::ifstream file(fmt::format("/proc/{}/status", pid));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("VmRSS:")) return std::atof(line.substr(6).c_str()) / 1024;
    }
    return 0;
  }

 private:
  /// A time in /proc/PID/stat, by its place after the state.
  [[nodiscard]] double time_s(int place) const {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string text;
    std::getline(file, text);
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skipped;
    for (int i = 0; i < place; ++i) fields >> skipped;
    double ticks = 0;
    fields >> ticks;
    return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
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

  std::string headers;  ///< that every request has beside those of ask(), each with its end of line
  using Answer = std::function<void(const std::string& body)>;
  void ask(int client, const std::string& method, const std::string& target, const std::string& body, Answer answer) {
    Connection& connection = connections_[client];
    connection.answer = std::move(answer);
    const std::string text = fmt::format(
        "{} {} HTTP/1.1\r\nHost: localhost\r\n{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", method,
        target, headers, body.size(), body);
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

/// Returns once so many ranks wait at the server.
inline void await_waiting(Clients& other, int ranks) {
  const std::string line = fmt::format("perseus_waiting_ranks {}\n", ranks);
  while (other.once("GET", "/metrics", "").find(line) == std::string::npos) {}
}

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

}  // namespace perseus::bench
