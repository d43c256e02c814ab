#include "training/device/unix_http.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <cstring>

namespace perseus::device {
namespace {

namespace http = boost::beast::http;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kMostBytes = std::size_t{1} << 20U;

/// Accepts bytes in any pieces until the response is complete.
class AnswerReader {
 public:
  AnswerReader() {
    parser_.body_limit(kMostBytes);
    parser_.eager(true);
  }
  /// False: this is no HTTP.
  bool put(std::string_view bytes) {
    text_ += bytes;
    boost::system::error_code problem;
    while (!parser_.is_done() && !text_.empty()) {
      const std::size_t used = parser_.put(boost::asio::buffer(text_), problem);
      text_.erase(0, used);
      if (problem == http::error::need_more) return text_.size() < kMostBytes;
      if (problem) return false;
    }
    return true;
  }
  /// The other side has closed: for a response without a length, that is its end.
  bool end() {
    boost::system::error_code problem;
    if (parser_.got_some()) parser_.put_eof(problem);
    return !problem && parser_.is_done();
  }
  [[nodiscard]] bool begun() const { return parser_.got_some() || !text_.empty(); }
  [[nodiscard]] bool whole() const { return parser_.is_done(); }
  [[nodiscard]] bool keeps_alive() const { return parser_.keep_alive(); }
  [[nodiscard]] UnixHttpAnswer answer() const {
    return {static_cast<int>(parser_.get().result_int()), parser_.get().body()};
  }

 private:
  http::response_parser<http::string_body> parser_;
  std::string text_;
};

/// Waits until the socket is ready; false: the time is over.
bool wait_for(int socket, short events, SteadyClock::time_point by) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(by - SteadyClock::now()).count();
    pollfd polled{socket, events, 0};
    const int ready = poll(&polled, 1, static_cast<int>(std::max<decltype(left)>(left, 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace

UnixHttp::UnixHttp(std::string socket_path, std::string token, std::chrono::milliseconds limit)
    : path_(std::move(socket_path)), token_(std::move(token)), limit_(limit) {}

UnixHttp::~UnixHttp() { disconnect(); }

void UnixHttp::disconnect() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

DeviceStatus UnixHttp::connect_socket() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.empty() || path_.size() >= sizeof address.sun_path) {
    return DeviceError{DeviceFault::no_driver, fmt::format("'{}' is no path of a Unix socket", path_)};
  }
  std::ranges::copy(path_, address.sun_path);
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ >= 0 && connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return Ok{};
  const int why = errno;
  disconnect();
  const DeviceFault fault = why == EACCES || why == EPERM ? DeviceFault::no_permission
                            : why == EAGAIN               ? DeviceFault::busy
                                                          : DeviceFault::no_driver;
  return DeviceError{fault, fmt::format("{}: {}", path_, std::strerror(why))};
}

UnixHttp::Broken UnixHttp::exchange(const std::string& request, UnixHttpAnswer& answer, std::string& why) {
  const auto by = SteadyClock::now() + limit_;
  const auto too_late = [&] {
    why = fmt::format("no answer within {} s", std::chrono::duration<double>(limit_).count());
    return Broken::for_good;
  };
  std::string_view left = request;
  while (!left.empty()) {
    const ssize_t sent = send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      left.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_for(socket_, POLLOUT, by)) return too_late();
    } else if (errno != EINTR) {
      why = std::strerror(errno);
      return Broken::before_answer;
    }
  }
  AnswerReader reader;
  std::array<char, 4096> bytes;
  while (!reader.whole()) {
    const ssize_t got = recv(socket_, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      if (!reader.put({bytes.data(), static_cast<std::size_t>(got)})) {
        why = "it does not answer in HTTP";
        return Broken::for_good;
      }
    } else if (got < 0 && errno == EAGAIN) {
      if (!wait_for(socket_, POLLIN, by)) return too_late();
    } else if (got == 0 || errno != EINTR) {
      why = got == 0 ? "closed the connection" : std::strerror(errno);
      if (!reader.begun()) return Broken::before_answer;
      if (!reader.end()) return Broken::for_good;
    }
  }
  answer = reader.answer();
  if (!reader.keeps_alive()) disconnect();
  return Broken::no;
}

DeviceResult<UnixHttpAnswer> UnixHttp::call(std::string_view method, const std::string& target,
                                            const std::string& json) {
  std::string request =
      fmt::format("{} {} HTTP/1.1\r\nHost: zeusd\r\nContent-Length: {}\r\n", method, target, json.size());
  if (!token_.empty()) request += fmt::format("Authorization: Bearer {}\r\n", token_);
  if (!json.empty()) request += "Content-Type: application/json\r\n";
  request += "\r\n" + json;
  while (true) {
    const bool fresh = socket_ < 0;
    if (fresh) {
      const DeviceStatus connected = connect_socket();
      if (!connected) return connected.error();
    }
    UnixHttpAnswer answer;
    std::string why;
    const Broken broken = exchange(request, answer, why);
    if (broken == Broken::no) return answer;
    disconnect();
    if (broken == Broken::before_answer && !fresh) continue;  // the daemon had closed the idle connection
    return DeviceError{DeviceFault::busy, fmt::format("{}: {}", path_, why)};
  }
}

bool parse_http_answer(std::string_view bytes, UnixHttpAnswer& answer) {
  AnswerReader reader;
  if (!reader.put(bytes) || (!reader.whole() && !reader.end())) return false;
  answer = reader.answer();
  return true;
}

}  // namespace perseus::device
