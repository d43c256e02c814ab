#include "io/http/listener.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

namespace perseus::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

Listener::Listener(asio::io_context& io, int listening, std::function<void()> arrived, std::size_t most_waiting)
    : io_(io),
      listening_(listening),
      arrived_(std::make_shared<std::function<void()>>(std::move(arrived))),
      most_waiting_(most_waiting),
      thread_([this] { accept_all(); }) {}

Listener::~Listener() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  ::shutdown(listening_, SHUT_RD);  // on Linux this ends accept4() and refuses new connections
  thread_.join();
  ::close(listening_);
  for (const Waiting& left : waiting_) ::close(left.socket);
}

void Listener::accept_all() {
  while (true) {
    Waiting next{-1, {}};
    auto length = static_cast<socklen_t>(next.peer.capacity());
    next.socket = ::accept4(listening_, next.peer.data(), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    const int problem = errno;
    if (next.socket >= 0) {
      next.peer.resize(length);
      enqueue(std::move(next));
    } else if (problem != EINTR && problem != ECONNABORTED) {
      pause();  // until other connections close
    }
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
  }
}

void Listener::enqueue(Waiting accepted) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || waiting_.size() < most_waiting_; });
  waiting_.push_back(std::move(accepted));
  if (waiting_.size() > 1) return;
  lock.unlock();
  asio::post(io_, [weak = std::weak_ptr(arrived_)] {
    if (const auto arrived = weak.lock()) (*arrived)();
  });
}

void Listener::pause() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, 100ms, [this] { return stopping_; });
}

std::optional<Listener::Accepted> Listener::dequeue() {
  std::unique_lock lock(mutex_);
  if (waiting_.empty()) return std::nullopt;
  const Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  const bool was_full = waiting_.size() + 1 == most_waiting_;
  lock.unlock();
  if (was_full) changed_.notify_one();
  Accepted accepted{tcp::socket(io_), next.peer};
  boost::system::error_code problem;
  accepted.socket.assign(next.peer.protocol(), next.socket, problem);
  if (problem) ::close(next.socket);
  return accepted;
}

std::size_t Listener::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

}  // namespace perseus::http
