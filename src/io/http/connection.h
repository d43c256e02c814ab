// One client's connection to the server: reads requests and writes answers, in order, within time limits.
//
// Problem: requests arrive in pieces or several at once, answers are late or never ready, clients are slow or
//          disconnect.
// Input:   the socket's bytes.
// Output:  calls of the server's handler, one request at a time. A connection reads its next request after the client
//          has received the previous answer, and yields the thread in between. Requests of readers, and writes of
//          event streams, wait for their turn (io/http/turns.h).
// Errors:  answered with 4xx and closed, leaving the client time to read the reason.
// Cost:    no buffer while no request or answer is incomplete.
// Threads: the server's one.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/http/address_counts.h"
#include "io/http/http_server.h"
#include "io/http/listener.h"
#include "io/http/turns.h"

namespace perseus::http {

class Connection;
using SteadyTime = std::chrono::steady_clock::time_point;

/// State that all connections of a server share.
class ServerCore : public std::enable_shared_from_this<ServerCore> {
 public:
  ServerCore(boost::asio::io_context& context, HttpServerOptions settings, HttpHandler request_handler);

  Result<std::uint16_t> listen(boost::asio::ip::tcp::acceptor taken);
  void start_sweeping();
  void drain(std::chrono::milliseconds grace, std::function<void()> done);
  void close_all();
  void forget(Connection& connection);
  /// Lets the connection write its pending answer: at once, or, if many connections did so since bytes last arrived,
  /// after pending requests. So requests are not delayed while thousands of waiting clients get their answers.
  void flush_in_turn(Connection& connection);
  void begin_turn() { flushed_ = 0; }
  [[nodiscard]] HttpServerCounts counts() const;

  boost::asio::io_context& io;
  HttpServerOptions options;
  HttpHandler handler;
  bool draining = false;
  HttpServerCounts totals;
  Turns turns;
  std::size_t unfinished_bytes = 0;  ///< of incomplete bodies
  std::string date;                  ///< value of the Date header, renewed once a second
  /// Read buffer of plain connections; a connection has consumed the bytes before another one reads.
  std::array<char, std::size_t{64} << 10U> read_buffer;

 private:
  void take_in_some();
  void take_in(boost::asio::ip::tcp::socket socket, const boost::asio::ip::tcp::endpoint& peer);
  void sweep();
  void finish_drain();
  void flush_some();
  void flush_later();

  std::vector<std::unique_ptr<Listener>> listeners_;
  void turn_away(boost::asio::ip::tcp::socket& socket, int status, std::string_view why) const;

  std::list<std::shared_ptr<Connection>> connections_;
  AddressCounts per_address_;
  boost::asio::steady_timer timer_;
  SteadyTime next_date_{};
  SteadyTime drained_by_ = SteadyTime::max();
  std::function<void()> drained_;
  int flushed_ = 0;  ///< connections, in this turn
  std::deque<std::weak_ptr<Connection>> to_flush_;
  bool will_flush_ = false;
};

/// One request and its answer; shared by the copies of a Responder. It refers to its connection only while that
/// exists.
class PendingAnswer {
 public:
  explicit PendingAnswer(const std::shared_ptr<Connection>& connection);
  PendingAnswer(const PendingAnswer&) = delete;
  PendingAnswer& operator=(const PendingAnswer&) = delete;
  ~PendingAnswer();

  std::weak_ptr<Connection> connection;
  std::function<void(bool by_client)> closed;
  std::string_view route;
  SteadyTime began = std::chrono::steady_clock::now();
  bool answered = false;
  bool stream = false;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<ServerCore> core, boost::asio::ip::tcp::socket socket, std::string peer, bool tls);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() { drop_reader(); }

  /// Waits until bytes can be read.
  void begin();
  void close(bool by_client = false);
  void check_time(SteadyTime now);
  void drain();
  /// Writes, unless a write is in progress.
  void flush();

  void answer(PendingAnswer& exchange, const HttpResponse& response);
  void open_stream(PendingAnswer& exchange);
  /// Queues the event until the stream's turn.
  bool stream_event(std::shared_ptr<const std::string> event);
  /// Ends the stream after the queued events.
  void end_stream();

  [[nodiscard]] bool active() const { return active_; }
  [[nodiscard]] bool streaming() const { return stream_ && !stream_->ending; }
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] const std::string& peer() const { return peer_; }

  std::list<std::shared_ptr<Connection>>::iterator place;  ///< among the server's connections

 protected:
  using Buffers = std::array<boost::asio::const_buffer, 3>;
  /// Ends in received() or lost().
  virtual void read_some() = 0;
  /// Writes all of it; ends in written() or lost().
  virtual void write(const Buffers& buffers) = 0;
  /// Signals the end of output to the client; its further input is still read.
  virtual void shut_down();
  /// The socket does not block any more; ends in ready() or lost().
  virtual void start() { ready(); }

  void ready() { read_more(); }
  void received(std::string_view bytes);
  void lost() { close(); }
  /// The client's host has closed the connection.
  void closed_by_client() { close(true); }
  void written();
  ServerCore& core() { return *core_; }
  /// Leaves out what has been written.
  static void drop(Buffers& buffers, std::size_t bytes);

  boost::asio::ip::tcp::socket socket_;

 private:
  struct Outgoing {
    std::string head;
    std::shared_ptr<const std::string> body;
    std::string_view tail;  ///< a literal
    [[nodiscard]] std::size_t size() const { return head.size() + (body ? body->size() : 0) + tail.size(); }
  };
  /// An open event stream and its unsent events.
  struct Stream {
    std::deque<std::shared_ptr<const std::string>> events;
    std::size_t bytes = 0;
    bool chunked = false;  ///< chunked framing; otherwise the end of the connection ends the stream
    bool in_turn = false;  ///< it waits for its turn
    bool ending = false;
  };

  /// True if there is nothing to answer and nothing to write: the next request may be processed.
  [[nodiscard]] bool idle() const { return !active_ && outgoing_.empty(); }
  [[nodiscard]] bool has_pending() const { return taken_ < pending_.size(); }
  void keep_pending(std::string_view bytes);
  void read_more();
  /// Processes at most one request; returns the number of bytes used.
  std::size_t work(std::string_view bytes);
  /// Processes the next pipelined request after the others' turn.
  void go_on_in_turn();
  /// Passes a complete request to the handler, or queues it for its turn.
  void dispatch();
  void stream_in_turn();
  /// Writes the next events of the stream, or its end.
  void pump();
  void reject(const HttpResponse& response);
  /// Checks an incomplete request: one that is not authorized, or too large, is answered at once.
  void check_unfinished();
  /// Call when the request is complete or abandoned.
  void drop_reader();
  std::string head_of(const HttpResponse& response, std::size_t length, bool closing);
  void push(Outgoing outgoing);
  void push_chunk(std::shared_ptr<const std::string> text);
  void set_deadline();

  std::shared_ptr<ServerCore> core_;
  std::string peer_;
  bool while_draining_;
  std::unique_ptr<RequestReader> reader_;  ///< of a request that is not complete yet
  std::string pending_;                    ///< bytes after the request being answered, from `taken_` on
  std::size_t taken_ = 0;
  std::vector<Outgoing> outgoing_;
  std::weak_ptr<PendingAnswer> exchange_;
  SteadyTime deadline_;
  std::size_t outgoing_bytes_ = 0;
  std::size_t unfinished_bytes_ = 0;  ///< as counted in the core
  bool tls_;
  bool active_ = false;  ///< a request waits for its turn or its answer, or a stream is open
  std::unique_ptr<Stream> stream_;
  bool goes_on_ = false;    ///< the next pipelined request waits for its turn
  bool head_only_ = false;  ///< the request was a HEAD
  bool http_1_0_ = false;
  bool last_ = false;       ///< close when everything is written
  bool lingering_ = false;  ///< response sent; drain input so that closing does not reset the connection
  bool reading_ = false;
  bool writing_ = false;
  bool working_ = false;
  bool begun_ = false;  ///< bytes have arrived; before: TLS handshake or silence
  bool closed_ = false;
};

std::shared_ptr<Connection> make_plain_connection(std::shared_ptr<ServerCore> core, boost::asio::ip::tcp::socket socket,
                                                  std::string peer);
std::shared_ptr<Connection> make_tls_connection(std::shared_ptr<ServerCore> core, boost::asio::ip::tcp::socket socket,
                                                std::string peer);

}  // namespace perseus::http
