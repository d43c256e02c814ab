#include "io/http/connection.h"

#include <fmt/format.h>

#include <utility>

namespace perseus::http {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// Limit on pipelined request bytes read ahead of the answers; more stays in the kernel.
constexpr std::size_t kMostPendingBytes = std::size_t{16} << 10U;
/// Bytes of events that a stream writes in one turn.
constexpr std::size_t kTurnBytes = std::size_t{64} << 10U;
constexpr auto kLingerTime = 2s;

bool has_no_body(int status) { return status == 204 || status == 304; }

}  // namespace

PendingAnswer::PendingAnswer(const std::shared_ptr<Connection>& from) : connection(from) {}

PendingAnswer::~PendingAnswer() {
  const auto open = connection.lock();
  if (!open) return;
  if (stream) {
    open->end_stream();
  } else if (!answered) {
    open->answer(*this, error_response(500, "the server dropped this request without an answer: please report it"));
  }
}

Connection::Connection(std::shared_ptr<ServerCore> core, boost::asio::ip::tcp::socket socket, std::string peer,
                       bool tls)
    : socket_(std::move(socket)),
      core_(std::move(core)),
      peer_(std::move(peer)),
      while_draining_(core_->draining),
      deadline_(steady_clock::now() + core_->options.request_time),
      tls_(tls) {}

void Connection::begin() {
  boost::system::error_code problem;
  socket_.non_blocking(true, problem);
  problem ? lost() : start();
}

void Connection::shut_down() {
  boost::system::error_code ignored;  // the client may have disconnected
  socket_.shutdown(boost::asio::socket_base::shutdown_send, ignored);
}

void Connection::drop(Buffers& buffers, std::size_t bytes) {
  for (boost::asio::const_buffer& part : buffers) {
    const std::size_t gone = std::min(bytes, part.size());
    part += gone;
    bytes -= gone;
  }
}

void Connection::close(bool by_client) {
  if (closed_) return;
  closed_ = true;
  const auto keep = shared_from_this();
  boost::system::error_code ignored;
  socket_.close(ignored);
  core_->forget(*this);
  if (const auto exchange = exchange_.lock(); exchange && active_) {
    exchange->answered = true;
    if (const auto closed = std::exchange(exchange->closed, {})) closed(by_client);
  }
}

void Connection::set_deadline() {
  const HttpServerOptions& options = core_->options;
  const auto now = steady_clock::now();
  if (lingering_) {
    deadline_ = now + kLingerTime;
  } else if (!outgoing_.empty()) {
    deadline_ = now + options.response_time + 1s * (outgoing_bytes_ / options.slowest_bytes_per_s);
  } else if (stream_) {
    deadline_ = now + options.comment_time;
  } else if (active_) {
    deadline_ = SteadyTime::max();
  } else {
    deadline_ = now + (reader_ ? options.request_time : options.idle_time);
  }
}

void Connection::check_time(SteadyTime now) {
  if (now < deadline_ || closed_) return;
  if (!outgoing_.empty()) {
    ++core_->totals.timed_out;
    close();
  } else if (lingering_) {
    close();
  } else if (stream_) {
    static const auto comment = std::make_shared<const std::string>(": keep-alive\n\n");
    push_chunk(comment);
  } else if (reader_) {
    ++core_->totals.timed_out;
    reject(error_response(408, "the request took too long to arrive"));
  } else {
    if (!begun_) ++core_->totals.timed_out;
    close();
  }
}

void Connection::drain() {
  if (stream_) {
    last_ = true;
    end_stream();
  } else if (idle() && !reader_ && !goes_on_) {
    close();
  } else if (!active_ && !reader_) {
    last_ = true;  // an answer is being written
  }
}

void Connection::read_more() {
  if (reading_ || closed_ || pending_.size() - taken_ >= kMostPendingBytes) return;
  reading_ = true;
  read_some();
}

void Connection::received(std::string_view bytes) {
  reading_ = false;
  if (closed_) return;
  core_->begin_turn();
  begun_ = true;
  if (!lingering_) {
    if (idle() && !goes_on_) bytes.remove_prefix(work(bytes));
    keep_pending(bytes);
    go_on_in_turn();
  }
  read_more();
}

void Connection::keep_pending(std::string_view bytes) {
  if (last_) {
    pending_ = {};
    taken_ = 0;
  } else if (!bytes.empty()) {
    pending_.erase(0, std::exchange(taken_, 0));
    pending_ += bytes;
  }
}

std::size_t Connection::work(std::string_view bytes) {
  working_ = true;
  std::size_t taken = 0;
  bool one = false;
  while (!one && taken < bytes.size() && idle() && !last_ && !closed_) {
    if (!reader_) {
      reader_ = std::make_unique<RequestReader>(core_->options.limits);
      set_deadline();
    }
    taken += reader_->put(bytes.substr(taken));
    if (reader_->error()) {
      reject(error_response(reader_->error()->status, reader_->error()->message));
    } else if (reader_->done()) {
      dispatch();
      one = true;
    } else {
      check_unfinished();
    }
  }
  working_ = false;
  return taken;
}

void Connection::go_on_in_turn() {
  if (goes_on_ || closed_ || lingering_ || working_ || !idle() || !has_pending()) return;
  goes_on_ = true;
  core_->turns.add(Turns::Kind::rank, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->closed_) return;
    self->goes_on_ = false;
    if (!self->idle()) return;
    self->taken_ += self->work(std::string_view(self->pending_).substr(self->taken_));
    if (!self->has_pending()) {
      self->pending_ = {};
      self->taken_ = 0;
    }
    self->go_on_in_turn();
    self->read_more();
  });
}

void Connection::dispatch() {
  const auto self = shared_from_this();
  const bool keep_alive = reader_->keep_alive();
  http_1_0_ = reader_->http_1_0();
  HttpRequest request = reader_->take();
  drop_reader();
  request.peer = peer_;
  request.tls = tls_;
  request.while_draining = while_draining_;
  head_only_ = request.method == "HEAD";
  last_ = last_ || !keep_alive || core_->draining;
  active_ = true;
  deadline_ = SteadyTime::max();
  auto exchange = std::make_shared<PendingAnswer>(self);
  exchange_ = exchange;
  const HttpServerOptions& options = core_->options;
  if (!options.is_reader || !options.is_reader(request)) {
    return core_->handler(std::move(request), Responder(std::move(exchange)));
  }
  const auto waiting = std::make_shared<HttpRequest>(std::move(request));
  core_->turns.add(Turns::Kind::reader, [core = std::weak_ptr(core_), waiting, exchange] {
    const auto open = core.lock();
    const auto connection = exchange->connection.lock();
    if (!open || !connection || connection->closed() || !open->handler) return;
    open->handler(std::move(*waiting), Responder(exchange));
  });
}

void Connection::reject(const HttpResponse& response) {
  last_ = true;
  head_only_ = reader_ && reader_->is_head();
  drop_reader();
  if (core_->options.served) core_->options.served({"", response.status, 0});
  push({head_of(response, response.body->size(), true), head_only_ ? nullptr : response.body, {}});
}

void Connection::check_unfinished() {
  if (core_->options.refuse) {
    if (auto head = reader_->take_head()) {
      head->peer = peer_;
      head->tls = tls_;
      head->while_draining = while_draining_;
      if (const auto refusal = core_->options.refuse(*head)) return reject(*refusal);
    }
  }
  core_->unfinished_bytes += reader_->held_bytes() - unfinished_bytes_;
  unfinished_bytes_ = reader_->held_bytes();
  if (core_->unfinished_bytes > core_->options.unfinished_bytes) {
    HttpResponse busy = error_response(503, "too many requests are being sent at once: try again");
    busy.headers.emplace_back("Retry-After", "1");
    return reject(busy);
  }
  if (reader_->wants_continue()) push({"HTTP/1.1 100 Continue\r\n\r\n", nullptr, {}});
}

void Connection::drop_reader() {
  reader_.reset();
  core_->unfinished_bytes -= std::exchange(unfinished_bytes_, 0);
}

std::string Connection::head_of(const HttpResponse& response, std::size_t length, bool closing) {
  fmt::memory_buffer head;
  const auto out = std::back_inserter(head);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\nDate: {}\r\n", response.status, reason_phrase(response.status), core_->date);
  if (!has_no_body(response.status)) {
    fmt::format_to(out, "Content-Type: {}\r\n", response.content_type);
    // A HEAD answer need not be built to know its length.
    if (response.body || !head_only_) fmt::format_to(out, "Content-Length: {}\r\n", length);
  }
  for (const auto& [name, value] : response.headers) fmt::format_to(out, "{}: {}\r\n", name, value);
  if (closing) {
    fmt::format_to(out, "Connection: close\r\n");
  } else if (http_1_0_) {
    fmt::format_to(out, "Connection: keep-alive\r\n");
  }
  fmt::format_to(out, "\r\n");
  return fmt::to_string(head);
}

void Connection::answer(PendingAnswer& exchange, const HttpResponse& response) {
  if (closed_ || exchange.answered) return;
  exchange.answered = true;
  exchange.closed = {};
  active_ = false;
  last_ = last_ || core_->draining;
  if (core_->options.served) {
    const std::chrono::duration<double> took = steady_clock::now() - exchange.began;
    core_->options.served({exchange.route, response.status, took.count()});
  }
  const bool with_body = response.body && !head_only_ && !has_no_body(response.status);
  push({head_of(response, response.body ? response.body->size() : 0, last_), with_body ? response.body : nullptr, {}});
}

void Connection::open_stream(PendingAnswer& exchange) {
  if (closed_ || exchange.answered || stream_) return;
  exchange.answered = true;
  exchange.stream = true;
  stream_ = std::make_unique<Stream>();
  stream_->chunked = !http_1_0_;
  if (!stream_->chunked) last_ = true;
  if (core_->options.served) core_->options.served({exchange.route, 200, 0});
  push({fmt::format("HTTP/1.1 200 OK\r\nDate: {}\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                    "X-Accel-Buffering: no\r\n{}{}\r\n",
                    core_->date, stream_->chunked ? "Transfer-Encoding: chunked\r\n" : "",
                    last_ ? "Connection: close\r\n" : ""),
        nullptr,
        {}});
  if (head_only_ || core_->draining) end_stream();
}

bool Connection::stream_event(std::shared_ptr<const std::string> event) {
  if (closed_ || !streaming()) return false;
  if (outgoing_bytes_ + stream_->bytes + event->size() > core_->options.stream_bytes) {
    ++core_->totals.timed_out;
    close();
    return false;
  }
  stream_->bytes += event->size();
  stream_->events.push_back(std::move(event));
  stream_in_turn();
  return true;
}

void Connection::stream_in_turn() {
  if (std::exchange(stream_->in_turn, true)) return;
  core_->turns.add(Turns::Kind::stream, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || !self->stream_) return;
    self->stream_->in_turn = false;
    self->pump();
  });
}

void Connection::pump() {
  if (closed_ || !outgoing_.empty()) return;  // written() continues
  auto& events = stream_->events;
  if (events.empty()) {
    if (stream_->ending) end_stream();
    return;
  }
  std::shared_ptr<const std::string> text = events.front();
  if (events.size() > 1) {
    std::string joined;
    std::size_t taken = 0;
    for (; taken < events.size() && joined.size() < kTurnBytes; ++taken) joined += *events[taken];
    events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(taken));
    text = std::make_shared<const std::string>(std::move(joined));
  } else {
    events.clear();
  }
  stream_->bytes -= text->size();
  push_chunk(std::move(text));
}

void Connection::push_chunk(std::shared_ptr<const std::string> text) {
  if (!stream_->chunked) return push({"", std::move(text), {}});
  std::string size = fmt::format("{:x}\r\n", text->size());
  push({std::move(size), std::move(text), "\r\n"});
}

void Connection::end_stream() {
  if (closed_ || !stream_) return;
  if (!std::exchange(stream_->ending, true)) {
    if (const auto exchange = exchange_.lock()) exchange->closed = {};
  }
  if (!stream_->events.empty()) return stream_in_turn();
  const bool chunked = stream_->chunked;
  stream_.reset();
  active_ = false;
  if (chunked && !head_only_) {
    push({"0\r\n\r\n", nullptr, {}});
  } else if (outgoing_.empty()) {
    written();
  }
}

void Connection::push(Outgoing outgoing) {
  outgoing_bytes_ += outgoing.size();
  outgoing_.push_back(std::move(outgoing));
  set_deadline();
  core_->flush_in_turn(*this);
}

void Connection::flush() {
  if (writing_ || closed_ || outgoing_.empty()) return;
  writing_ = true;
  const Outgoing& next = outgoing_.front();
  const std::string_view body = next.body ? std::string_view(*next.body) : std::string_view();
  write({boost::asio::buffer(next.head), boost::asio::buffer(body), boost::asio::buffer(next.tail)});
}

void Connection::written() {
  writing_ = false;
  if (closed_) return;
  if (!outgoing_.empty()) {
    outgoing_bytes_ -= outgoing_.front().size();
    outgoing_.erase(outgoing_.begin());
  }
  if (!outgoing_.empty()) {
    set_deadline();
    return flush();
  }
  outgoing_ = {};
  if (last_ && !active_) {
    lingering_ = true;
    pending_ = {};
    taken_ = 0;
    shut_down();
  }
  set_deadline();
  if (stream_ && (!stream_->events.empty() || stream_->ending)) stream_in_turn();
  go_on_in_turn();
  read_more();
}

}  // namespace perseus::http
