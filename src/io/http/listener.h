// Accepts connections on a dedicated thread, independent of the thread that serves them.
//
// Problem: the queue of a listening socket is short (4096 or less), and thousands of ranks connect at the same
//          moment; a client that finds it full sends its first packet again only after a second.
// Input:   a listening socket, and a function that is called from the io_context when sockets have been accepted.
// Output:  dequeue(), in the order of arrival.
// Errors:  without files or memory, accepting pauses for a tenth of a second.
// Cost:    one system call per connection, on a thread of its own; at most `most_waiting` accepted sockets wait for
//          dequeue(), the rest stays in the kernel.
// Threads: dequeue() and destruction on the io_context's one.
// Source:  docs/decisions/0024.
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

  /// Takes ownership of a blocking, listening socket. `arrived` is posted when there is something to take and
  /// everything before had been taken.
  Listener(boost::asio::io_context& io, int listening, std::function<void()> arrived, std::size_t most_waiting = 8192);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();  ///< closes the listening socket and the sockets not taken

  std::optional<Accepted> dequeue();
  /// Number of accepted sockets not taken yet.
  [[nodiscard]] std::size_t waiting() const;

 private:
  struct Waiting {
    int socket;
    boost::asio::ip::tcp::endpoint peer;
  };
  void accept_all();
  void enqueue(Waiting accepted);
  void pause();

  boost::asio::io_context& io_;
  int listening_;
  std::shared_ptr<std::function<void()>> arrived_;  ///< posted handlers hold it weakly
  std::size_t most_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace perseus::http
