// The device side of the simulated CUDA driver: streams of operations, executed against a simulated GPU.
//
// Every operation has two times. Device time is when the GPU reached it; it is exact, and no thread of this process
// can delay it: a kernel starts when its stream and the GPU were free, even if the engine's thread wakes up later.
// Effects visible to the host (a completed event, a written value, a host function) happen when the engine's thread
// gets there, which is later, by microseconds or, on a busy machine, by milliseconds.
//
// Input:   operations, enqueued into streams from any thread; the GPU, whose clock other processes change meanwhile.
// Output:  device times of events and stamps; writes to host memory; calls of host functions on the driver's thread.
// Errors:  a fault (fail()) drops all work and every later call returns its code.
// Cost:    one thread for the device, one for host functions; some microseconds an operation.
// Threads: any. One kernel runs at a time; if several streams have one ready, the one enqueued first.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulation/simulated_cuda/extension.h"
#include "simulation/simulated_cuda/knobs.h"
#include "simulation/simulated_gpu/simulated_gpu.h"

namespace perseus::simulated_cuda {

/// One recording of an event. Under the engine's lock.
struct EventRecord {
  bool reached = false;  ///< by the device: streams that wait for it may continue
  bool visible = false;  ///< to the host
  double time_s = 0;     ///< on the device
};

struct Operation {
  enum class Kind { kernel, record, wait_event, write, wait_value, host_function, await_message, tell, stamp, nothing };
  Kind kind = Kind::nothing;
  int computation = 0;                  ///< kernel
  std::shared_ptr<EventRecord> record;  ///< record, wait_event
  void* address = nullptr;              ///< write, wait_value: on the host
  std::uint64_t value = 0;
  int bytes = 4;
  unsigned flags = 0;               ///< wait_value
  HostFunction function = nullptr;  ///< host_function
  ReachedFunction reached = nullptr;
  void* user = nullptr;
  std::uint64_t message = 0;  ///< await_message
  double latency_s = 0;
  Stamp* stamp = nullptr;
  // Set by the engine.
  double enqueued_s = 0;
  std::uint64_t number = 0;  ///< sequence number among all operations of the device
};

/// The device's access to host memory; false: it is not mapped (any more).
struct HostAccess {
  bool (*read)(const void* address, int bytes, std::uint64_t& value) = nullptr;
  bool (*write)(void* address, int bytes, std::uint64_t value) = nullptr;
};

class Engine;

class Stream {
 public:
  /// `domain`: the context; the legacy stream of a domain waits for its blocking streams, and they for it.
  Stream(const void* domain, bool legacy, bool blocking) : domain_(domain), legacy_(legacy), blocking_(blocking) {}

 private:
  friend class Engine;
  struct Effect {  ///< effects that the host will see
    double due_s = 0;
    std::shared_ptr<EventRecord> record;
    void* address = nullptr;
    std::uint64_t value = 0;
    int bytes = 0;
  };
  const void* domain_;
  bool legacy_, blocking_;
  // Separate lock, so that an enqueueing host waits for no lock that the device's thread holds for long.
  std::mutex arriving_mutex_;
  std::vector<Operation> arriving_;
  std::atomic<std::size_t> pending_{0};  ///< operations that arrive, wait or run

  // Under the engine's lock.
  bool destroyed_ = false;
  std::deque<Operation> waiting_;
  std::deque<Effect> effects_;
  bool running_ = false;  ///< its first operation is a running kernel or a called host function
  double time_s_ = 0;     ///< device time at which everything before the first operation was done
  Stamp last_{};          ///< of its last kernel; and sums
};

class Engine {
 public:
  static Result<Engine*> start(const std::string& gpu, KnobBoard& knobs, HostAccess memory);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() = delete;  ///< a driver's threads live as long as the process

  std::shared_ptr<Stream> make_stream(const void* domain, bool legacy, bool blocking);
  /// Operations in it are still executed.
  void destroy(Stream& stream);
  void destroy_all(const void* domain);

  // Each returns an error code.
  /// Waits while the stream's queue is full.
  int enqueue(Stream& stream, Operation operation);
  int enqueue(Stream& stream, const std::vector<Operation>& graph);
  int query(Stream& stream);
  int synchronize(Stream& stream);
  int synchronize_all(const void* domain);
  int query(const EventRecord& record);
  int synchronize(const EventRecord& record);
  int elapsed_ms(const EventRecord& from, const EventRecord& to, float& milliseconds);
  int deliver(std::uint64_t message, double time_s);

  void fail(int code);
  [[nodiscard]] int failure() const { return failure_.load(); }
  [[nodiscard]] simulated_gpu::SimulatedGpu& gpu() { return *gpu_; }
  /// True if the calling thread runs a host function.
  static bool in_host_function();

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct HostCall {
    std::shared_ptr<Stream> stream;
    HostFunction function;
    void* user;
    double due_s;
  };
  Engine(std::unique_ptr<simulated_gpu::SimulatedGpu> gpu, KnobBoard& knobs, HostAccess memory)
      : gpu_(std::move(gpu)), knobs_(knobs), memory_(memory) {}
  static double now_s();
  void run();
  void run_host_functions();
  /// Processes all operations that are possible now; returns the time from now of the next check at the latest.
  double pump(Lock& lock);
  bool show_effects(Stream& stream, double now);
  /// Executes the first operation if possible; never starts a kernel.
  bool step(Lock& lock, const std::shared_ptr<Stream>& stream, const Knobs& knobs);
  enum class Execution { later, done, failed };
  /// Of the stream's first operation, which needs no other thread. Failed: all operations were dropped.
  Execution execute(Stream& stream, const Knobs& knobs);
  Execution poll_value(Stream& stream);
  bool call_host_function(const std::shared_ptr<Stream>& stream, const Knobs& knobs);
  /// Calls the operation's function on the device's thread, without the lock.
  void tell(Lock& lock, Stream& stream);
  [[nodiscard]] bool is_now(double time_s);
  [[nodiscard]] double free_s(const Stream& stream) const;
  [[nodiscard]] double start_s(const Stream& stream, const Knobs& knobs) const;
  /// Moves arrived operations to the waiting ones.
  static void take_in(Stream& stream);
  /// Removes the stream's first operation, which is done.
  static void pop(Stream& stream);
  bool finish_kernel();
  bool start_kernel(const Knobs& knobs);
  void drop_all();
  [[nodiscard]] bool behind_others(const Stream& stream, const Operation& operation) const;
  void meet_others(Stream& stream) const;
  [[nodiscard]] bool done(const Stream& stream) const;
  int wait(Lock& lock, const std::function<bool()>& condition);

  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu_;
  KnobBoard& knobs_;
  const HostAccess memory_;
  std::mutex mutex_;
  std::condition_variable changed_;  ///< for threads of the host that wait
  std::condition_variable called_;   ///< for the thread of host functions
  std::vector<std::shared_ptr<Stream>> streams_;
  std::map<std::uint64_t, double> messages_;  ///< that have arrived and were not awaited yet
  std::deque<HostCall> calls_;
  std::shared_ptr<Stream> computing_;  ///< the stream whose first operation is the running kernel
  double free_s_ = 0;                  ///< device time at which the last kernel was done
  double next_s_ = 0;                  ///< time of the next known event
  std::atomic<std::uint64_t> next_number_{1};
  bool telling_ = false;
  std::atomic<int> failure_{0};
};

}  // namespace perseus::simulated_cuda
