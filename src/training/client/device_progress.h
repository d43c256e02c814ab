// Reports the device's progress through the work enqueued on a stream, in a word that the clock helper watches.
//
// begin() and end() of a computation run when the host enqueues work; the GPU gets there later, by microseconds or by
// iterations. A clock must change when the GPU gets there. So every boundary has a position, and one of three ways
// writes it to the watched word once the GPU has passed the boundary:
//   write_value    the GPU itself: cuStreamWriteValue32 into the shared memory of the helper. No thread of this process
//                  takes part, so a delay of the host delays no clock.
//   host_function  a thread of the driver: cuLaunchHostFunc on a side stream that waits for the boundary's event. The
//                  compute stream does not wait for it.
//   polling        a thread of the client: cuEventQuery every 0.2 ms while boundaries are outstanding.
//
// Input:   a stream; the word's memory; boundaries in the order in which they are enqueued.
// Output:  the word reaches each position after the work before that boundary and before the work behind it, at most
//          microseconds (write_value) or fractions of a millisecond late.
// Errors:  open() returns why no way works; mark() is false where nothing was enqueued (a full ring, a driver error).
//          A driver error makes failed() true permanently, but not that the thread has no context.
// Cost:    one to three driver calls per mark, none of which waits for the device.
// Threads: open(), mark() and set_stream() the training thread; the rest any.
// Source:  docs/decisions/0030-clocks-at-device-time.md, docs/measurements/client.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "training/client/cuda_driver.h"

namespace perseus::client {

enum class ProgressWay { write_value, host_function, polling };
std::string_view name_of(ProgressWay way);
std::optional<ProgressWay> progress_way_named(std::string_view name);

class DeviceProgress {
 public:
  struct Word {
    void* memory = nullptr;  ///< whole pages, kept mapped for the life of the process
    std::size_t bytes = 0;
    std::atomic<std::uint32_t>* position = nullptr;
    std::function<void(std::uint32_t)> reached;  ///< for ways in which a CPU writes: called on any thread, must not
                                                 ///< block
  };
  /// Opens the first way that works with this driver; `only`: that way or none.
  static Result<std::unique_ptr<DeviceProgress>> open(std::shared_ptr<const CudaDriver> driver, void* stream, Word word,
                                                      std::optional<ProgressWay> only);
  DeviceProgress() = default;
  DeviceProgress(const DeviceProgress&) = delete;
  DeviceProgress& operator=(const DeviceProgress&) = delete;
  virtual ~DeviceProgress() = default;

  virtual bool mark(std::uint32_t position) = 0;
  void set_stream(void* stream) { stream_ = stream; }
  [[nodiscard]] virtual ProgressWay way() const = 0;
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }

 protected:
  /// False. An error is permanent, unless the calling thread merely has no context.
  bool fails(const CudaDriver& driver, int code) {
    if (!driver.only_lacks_context(code)) failed_.store(true, std::memory_order_release);
    return false;
  }
  void* stream_ = nullptr;
  std::atomic<bool> failed_{false};
};

}  // namespace perseus::client
