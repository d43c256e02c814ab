// Schedules work on the io thread: work of ranks first, then of readers, then of event streams.
//
// Problem: one thread serves everything; a client that pipelines requests, a list of thousands of jobs, or hundreds
//          of event streams must not delay a rank by more than one piece of that work.
// Input:   pieces of work, each short, of one of three kinds.
// Output:  each piece runs later, in the order of its kind. A turn runs up to 16 pieces of ranks, then one of a
//          reader or a stream; between two turns the io_context serves every socket that is ready.
// Errors:  none; a piece of work must not throw.
// Cost:    one post() per turn.
// Threads: the io_context's one.
// Source:  docs/decisions/0034.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>

namespace perseus::http {

class Turns {
 public:
  enum class Kind : unsigned char { rank, reader, stream };

  explicit Turns(boost::asio::io_context& io) : io_(io), queues_(std::make_shared<Queues>()) {}
  void add(Kind kind, std::function<void()> work);

 private:
  /// Outlives the object while a turn is posted.
  struct Queues {
    std::array<std::deque<std::function<void()>>, 3> of;
    bool posted = false;
    bool stream_next = false;  ///< readers and streams alternate
  };
  static void post(boost::asio::io_context& io, const std::shared_ptr<Queues>& queues);
  static void run_turn(Queues& queues);

  boost::asio::io_context& io_;
  std::shared_ptr<Queues> queues_;
};

}  // namespace perseus::http
