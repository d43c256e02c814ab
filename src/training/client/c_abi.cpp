// Implements include/perseus/perseus.h with TrainingClient: no exception leaves; calls with a null client, or in a
// forked child, do nothing.
#include <perseus/perseus.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "training/client/training_client.h"

#ifndef PERSEUS_VERSION
#define PERSEUS_VERSION "0"
#endif

using perseus::client::TrainingCalls;
using perseus::client::TrainingClient;
using perseus::model::Instruction;

/// The handle is never freed: a call after perseus_stop(), or concurrent with it, finds no client here and does
/// nothing. The client itself is freed unless another thread may still use it.
struct perseus_client {
  std::atomic<TrainingClient*> client{nullptr};
  unsigned forks = 0;                     ///< of the process that started it
  std::atomic<bool> in_turn{false};       ///< a thread is in a call of the training thread
  std::atomic<int> calls{0};              ///< other calls in progress
  TrainingClient* left_behind = nullptr;  ///< stopped, but still in use
  perseus_client* before = nullptr;       ///< keeps every handle reachable
};

namespace {

std::atomic<unsigned> forks{0};
std::atomic<perseus_client*> newest_handle{nullptr};

void count_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  (void)registered;
}

TrainingClient* usable(perseus_client* client) noexcept {
  if (client == nullptr || client->forks != forks.load(std::memory_order_relaxed)) return nullptr;
  return client->client.load(std::memory_order_acquire);
}

/// The client for a call on any thread: perseus_stop() frees no client while such an object lives.
class Used {
 public:
  explicit Used(perseus_client* handle) noexcept : handle_(handle) {
    if (handle_ == nullptr) return;
    // Writes the count, then reads the client; perseus_stop() writes the client, then reads the count. So one of them
    // sees the other.
    handle_->calls.fetch_add(1, std::memory_order_seq_cst);
    if (handle_->forks == forks.load(std::memory_order_relaxed)) {
      client_ = handle_->client.load(std::memory_order_seq_cst);
    }
  }
  Used(const Used&) = delete;
  Used& operator=(const Used&) = delete;
  ~Used() {
    if (handle_ != nullptr) handle_->calls.fetch_sub(1, std::memory_order_seq_cst);
  }
  explicit operator bool() const noexcept { return client_ != nullptr; }
  TrainingClient* operator->() const noexcept { return client_; }

 private:
  perseus_client* handle_;
  TrainingClient* client_ = nullptr;
};

/// The client for a call of the training thread, one such call at a time: a call beside another one finds no client
/// here. perseus_stop() frees no client while such an object has one: see Used.
class Turn {
 public:
  explicit Turn(perseus_client* handle) noexcept { take(handle); }
  /// For a call that is rare: waits for the other one, but not for a paced step.
  Turn(perseus_client* handle, std::chrono::milliseconds limit) noexcept {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!take(handle) && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (handle_ != nullptr) handle_->in_turn.store(false, std::memory_order_release);
  }
  explicit operator bool() const noexcept { return client_ != nullptr; }
  TrainingClient* operator->() const noexcept { return client_; }
  /// Another thread had the turn.
  [[nodiscard]] bool missed() const noexcept { return missed_; }

 private:
  bool take(perseus_client* handle) noexcept {
    if (handle == nullptr || handle->forks != forks.load(std::memory_order_relaxed)) return true;
    missed_ = handle->in_turn.exchange(true, std::memory_order_seq_cst);
    if (missed_) return false;
    handle_ = handle;
    client_ = handle->client.load(std::memory_order_seq_cst);
    return true;
  }
  perseus_client* handle_ = nullptr;
  TrainingClient* client_ = nullptr;
  bool missed_ = false;
};

[[gnu::cold]] [[gnu::noinline]] void count_missed(perseus_client* handle) noexcept {
  if (const Used c(handle); c) c->calls().missed_a_call();
}

/// A call of the training thread: out of memory, or an exception of the program's own clock, must not end training. Not
/// (...), which pthread_cancel() may not meet in a wait.
template <class Call>
[[gnu::always_inline]] inline void in_turn(perseus_client* handle, const Call& call) {
  const Turn c(handle);
  if (!c) {
    if (c.missed()) count_missed(handle);
    return;
  }
  try {
    call(c->calls());
  } catch (const std::exception&) {}
}

constexpr std::chrono::milliseconds kTurnLimit(100);

bool known(int instruction) noexcept { return instruction >= 0 && instruction < perseus::model::kNumInstructions; }

}  // namespace

int perseus_abi_version() { return PERSEUS_ABI_VERSION; }
const char* perseus_version() { return PERSEUS_VERSION; }

int perseus_instruction_named(const char* name) {
  if (name == nullptr) return -1;
  const auto instruction = perseus::model::instruction_named(name);
  return instruction ? static_cast<int>(*instruction) : -1;
}

void perseus_options_init(perseus_options* options) {
  if (options != nullptr) *options = perseus::client::default_options();
}

perseus_client* perseus_start(const perseus_options* options) {
  try {
    count_forks();
    std::vector<std::string> remarks;
    auto read = perseus::client::read_options(options, remarks);
    auto client = std::make_unique<TrainingClient>(std::move(read));
    auto handle = std::make_unique<perseus_client>();
    client->start(remarks);
    handle->forks = forks.load();
    handle->client = client.release();
    handle->before = newest_handle.load();
    while (!newest_handle.compare_exchange_weak(handle->before, handle.get())) {}
    return handle.release();
  } catch (...) {  // only bad_alloc is possible: every other failure is a complaint
    return nullptr;
  }
}

void perseus_stop(perseus_client* client) {
  if (usable(client) == nullptr) return;
  TrainingClient* const stopped = client->client.exchange(nullptr, std::memory_order_seq_cst);
  if (stopped == nullptr) return;  // another call of perseus_stop() was first
  bool unused = false;
  try {
    unused = stopped->stop();
  } catch (...) {}  // out of memory: started threads may still run
  const bool in_call = client->in_turn.load(std::memory_order_seq_cst) || client->calls.load() != 0;
  if (unused && !in_call) {
    delete stopped;
  } else {
    client->left_behind = stopped;
  }
}

const char* perseus_job(const perseus_client* client) {
  const Used used(const_cast<perseus_client*>(client));
  return used ? used->job() : "";
}

void perseus_step_begin(perseus_client* client, int kind) {
  in_turn(client, [kind](TrainingCalls& calls) { calls.step_begin(kind == PERSEUS_TRAIN); });
}

void perseus_step_begin_of(perseus_client* client, int kind, int microbatches) {
  in_turn(client, [=](TrainingCalls& calls) { calls.step_begin(kind == PERSEUS_TRAIN, microbatches); });
}

void perseus_step_table(perseus_client* client, int microbatches, const char* action_table) {
  try {
    if (const Used c(client); c && action_table != nullptr) c->add_table(microbatches, action_table);
  } catch (...) {}
}

void perseus_step_end(perseus_client* client) {
  in_turn(client, [](TrainingCalls& calls) { calls.step_end(); });
}

[[gnu::hot]] void perseus_begin(perseus_client* client, int instruction, int microbatch, int chunk) {
  if (!known(instruction)) return;
  in_turn(client, [=](TrainingCalls& calls) { calls.begin(static_cast<Instruction>(instruction), microbatch, chunk); });
}

[[gnu::hot]] void perseus_end(perseus_client* client, int instruction, int /*microbatch*/, int /*chunk*/) {
  if (!known(instruction)) return;
  in_turn(client, [=](TrainingCalls& calls) { calls.end(static_cast<Instruction>(instruction)); });
}

[[gnu::hot]] void perseus_set_speed(perseus_client* client, int instruction, int microbatch, int chunk) {
  if (!known(instruction)) return;
  in_turn(client,
          [=](TrainingCalls& calls) { calls.set_speed(static_cast<Instruction>(instruction), microbatch, chunk); });
}

int perseus_time_with_cuda(perseus_client* client, void* stream) {
  const Turn c(client, kTurnLimit);
  if (c.missed()) count_missed(client);
  if (!c) return c.missed() ? 1 : 0;
  try {
    return c->calls().time_with_cuda(stream) ? 0 : 1;
  } catch (...) { return 1; }
}

void perseus_time_with(perseus_client* client, uint64_t (*now_ns)(void*), void* context) {
  const Turn c(client, kTurnLimit);
  if (c.missed()) count_missed(client);
  if (c) c->calls().time_with(now_ns, context);
}

void perseus_statistics_get(perseus_client* client, perseus_statistics* statistics) {
  if (statistics == nullptr || statistics->size < sizeof(size_t)) return;
  perseus_statistics all;
  std::memset(&all, 0, sizeof(all));
  all.last_iteration_energy_j = -1;
  try {
    if (const Used c(client); c) c->statistics(all);
  } catch (...) {}
  all.size = std::min(statistics->size, sizeof(all));
  std::memcpy(statistics, &all, all.size);
}

size_t perseus_status(perseus_client* client, char* buffer, size_t capacity) {
  std::string text = "{}";
  try {
    if (const Used c(client); c) text = c->status();
  } catch (...) {}
  if (buffer != nullptr) {
    std::copy_n(text.data(), std::min(capacity, text.size()), buffer);
    if (text.size() < capacity) buffer[text.size()] = '\0';
  }
  return text.size();
}
