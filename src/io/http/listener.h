// Takes connections off the kernel's queue at once, whatever the thread that serves them is doing.
//
// Problem: the queue of a listening socket is short (4096 or less), thousands of ranks connect in the same moment,
//          and whoever finds it full sends its first packet again only after a second.
// Input:   a listening socket, and a function that is called from the io_context when sockets have come.
// Output:  take(), in the order in which they came.
// Errors:  where files or memory run out, accepting pauses for a tenth of a second.
// Cost:    one system call a connection, on a thread of its own; at most `most_waiting` accepted sockets wait to be
//          taken, the rest stays in the kernel.
// Threads: take() and destruction on the io_context's one. Decision: docs/decisions/0024.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace perseus::http {

class Listener {
 public:
  struct Accepted {
    boost::asio::ip::tcp::socket socket;
    boost::asio::ip::tcp::endpoint peer;
  };

  /// A blocking socket that listens, which this owns from now on. `arrived` is posted when there is something to take
  /// and everything before had been taken.
  Listener(boost::asio::io_context& io, int listening, std::function<void()> arrived, std::size_t most_waiting = 8192);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();  ///< closes the listening socket, and what was not taken

  std::optional<Accepted> take();
  /// Accepted and not taken yet.
  [[nodiscard]] std::size_t waiting() const;

 private:
  struct Waiting {
    int socket;
    boost::asio::ip::tcp::endpoint peer;
  };
  void accept_all();
  void put(Waiting accepted);
  void pause();

  boost::asio::io_context& io_;
  int listening_;
  std::shared_ptr<std::function<void()>> arrived_;  ///< what is posted holds it weakly
  std::size_t most_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace perseus::http
