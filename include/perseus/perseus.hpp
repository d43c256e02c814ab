// C++ API of the Perseus client: perseus.h with automatic lifetimes. Header only; link with libperseus.
//
//   perseus::api::Options options;
//   options.server = "http://head:7787";
//   perseus::api::Client client(options);
//   for (...) {
//     const perseus::api::TrainingStep step(client);
//     for (...) { const perseus::api::TimedComputation forward(client, PERSEUS_FORWARD, microbatch); ...compute...; }
//   }
//
// TimedComputation sets the clock and times its scope.
//
// Errors:  nothing throws; the client fails open as in perseus.h.
// Threads: as in perseus.h.
#ifndef PERSEUS_PERSEUS_HPP
#define PERSEUS_PERSEUS_HPP

#include <perseus/perseus.h>

#include <algorithm>
#include <string>
#include <utility>

namespace perseus::api {

struct Options : perseus_options {
  Options() { perseus_options_init(this); }
};

class Client {
 public:
  explicit Client(const perseus_options& options) noexcept : client_(perseus_start(&options)) {}
  Client(Client&& other) noexcept : client_(std::exchange(other.client_, nullptr)) {}
  Client& operator=(Client&& other) noexcept {
    std::swap(client_, other.client_);
    return *this;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { perseus_stop(client_); }

  [[nodiscard]] perseus_client* get() const noexcept { return client_; }
  [[nodiscard]] const char* job() const noexcept { return perseus_job(client_); }
  [[nodiscard]] bool time_with_cuda(void* stream) noexcept { return perseus_time_with_cuda(client_, stream) == 0; }
  [[nodiscard]] perseus_statistics statistics() const noexcept {
    perseus_statistics statistics;
    statistics.size = sizeof(statistics);
    perseus_statistics_get(client_, &statistics);
    return statistics;
  }
  [[nodiscard]] std::string status() const {
    std::string text(perseus_status(client_, nullptr, 0) + 1024, '\0');  // the text may grow until the next call
    text.resize(std::min(text.size(), perseus_status(client_, text.data(), text.size())));
    return text;
  }

 private:
  perseus_client* client_;
};

class TrainingStep {
 public:
  explicit TrainingStep(const Client& client, perseus_step kind = PERSEUS_TRAIN) noexcept : client_(client.get()) {
    perseus_step_begin(client_, kind);
  }
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;
  ~TrainingStep() { perseus_step_end(client_); }

 private:
  perseus_client* client_;
};

class TimedComputation {
 public:
  explicit TimedComputation(const Client& client, perseus_instruction instruction, int microbatch = -1,
                            int chunk = -1) noexcept
      : client_(client.get()), instruction_(instruction), microbatch_(microbatch), chunk_(chunk) {
    perseus_set_speed(client_, instruction_, microbatch_, chunk_);
    perseus_begin(client_, instruction_, microbatch_, chunk_);
  }
  TimedComputation(const TimedComputation&) = delete;
  TimedComputation& operator=(const TimedComputation&) = delete;
  ~TimedComputation() { perseus_end(client_, instruction_, microbatch_, chunk_); }

 private:
  perseus_client* client_;
  perseus_instruction instruction_;
  int microbatch_, chunk_;
};

}  // namespace perseus::api

#endif
