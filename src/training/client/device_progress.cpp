#include "training/client/device_progress.h"

#include <fmt/format.h>

#include <array>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "training/client/background_thread.h"

namespace perseus::client {
namespace {

constexpr std::size_t kOutstanding = 4096;  ///< boundaries that the device has not reached
constexpr double kPollEvery_s = 0.0002, kIdlePoll_s = 0.002;

class WriteValue final : public DeviceProgress {
 public:
  WriteValue(std::shared_ptr<const CudaDriver> driver, std::uint64_t address)
      : driver_(std::move(driver)), address_(address) {}

  static Result<std::unique_ptr<DeviceProgress>> open(const std::shared_ptr<const CudaDriver>& driver, void* stream,
                                                      const Word& word) {
    if (driver->write_value == nullptr || driver->host_register == nullptr || driver->host_device_pointer == nullptr) {
      return Error{ErrorCode::unavailable, "the driver has no cuStreamWriteValue32"};
    }
    const int registered =
        driver->host_register(word.memory, word.bytes, CudaDriver::kRegisterPortable | CudaDriver::kRegisterDeviceMap);
    if (registered != CudaDriver::kSuccess && registered != CudaDriver::kAlreadyRegistered) {
      return Error{ErrorCode::unavailable, fmt::format("cuMemHostRegister: error {}", registered)};
    }
    std::uint64_t address = 0;
    if (const int code = driver->host_device_pointer(&address, word.position, 0); code != CudaDriver::kSuccess) {
      return Error{ErrorCode::unavailable, fmt::format("cuMemHostGetDevicePointer: error {}", code)};
    }
    // Writes the value that is there already: only the driver's response counts.
    const std::uint32_t here = word.position->load(std::memory_order_relaxed);
    if (const int code = driver->write_value(stream, address, here, 0); code != CudaDriver::kSuccess) {
      return Error{ErrorCode::unavailable, fmt::format("cuStreamWriteValue32: error {}", code)};
    }
    return std::unique_ptr<DeviceProgress>(std::make_unique<WriteValue>(driver, address));
  }

  bool mark(std::uint32_t position) override {
    if (failed()) return false;
    const int code = driver_->write_value(stream_, address_, position, 0);
    return code == CudaDriver::kSuccess || fails(*driver_, code);
  }
  [[nodiscard]] ProgressWay way() const override { return ProgressWay::write_value; }

 private:
  std::shared_ptr<const CudaDriver> driver_;
  std::uint64_t address_;
};

/// Events without times, created once: creating them while training runs would wait for the driver.
Result<std::vector<void*>> make_events(const CudaDriver& driver) {
  std::vector<void*> events(kOutstanding, nullptr);
  for (void*& event : events) {
    if (const int code = driver.event_create(&event, CudaDriver::kEventDisableTiming); code != CudaDriver::kSuccess) {
      return Error{ErrorCode::unavailable, fmt::format("cuEventCreate: error {}", code)};
    }
  }
  return events;
}

/// Owns objects that a driver may still call or write after all other owners have released them.
template <class T>
T* keep_for_ever(std::unique_ptr<T> kept) {
  static std::mutex mutex;
  static auto* const all = new std::deque<std::unique_ptr<T>>();  // outlives destructors of static objects
  const std::lock_guard lock(mutex);
  return all->emplace_back(std::move(kept)).get();
}

class HostFunction final : public DeviceProgress {
 public:
  static Result<std::unique_ptr<DeviceProgress>> open(const std::shared_ptr<const CudaDriver>& driver,
                                                      const Word& word) {
    if (driver->launch_host_function == nullptr || driver->stream_create == nullptr ||
        driver->stream_wait_event == nullptr) {
      return Error{ErrorCode::unavailable, "the driver has no cuLaunchHostFunc"};
    }
    auto opened = std::make_unique<HostFunction>();
    if (const int code = driver->stream_create(&opened->side_stream_, CudaDriver::kStreamNonBlocking);
        code != CudaDriver::kSuccess) {
      return Error{ErrorCode::unavailable, fmt::format("cuStreamCreate: error {}", code)};
    }
    auto events = make_events(*driver);
    if (!events) return events.error();
    opened->driver_ = driver;
    opened->events_ = std::move(*events);
    opened->calls_ = keep_for_ever(std::make_unique<Calls>());
    opened->calls_->reached = word.reached;
    for (Call& call : opened->calls_->ring) call.of = opened->calls_;
    // Reports the current position again: only the driver's response counts.
    Call& first = opened->calls_->ring[opened->next_++];
    first.position = word.position->load(std::memory_order_relaxed);
    first.outstanding = true;
    if (const int code = driver->launch_host_function(opened->side_stream_, &called, &first);
        code != CudaDriver::kSuccess) {
      return Error{ErrorCode::unavailable, fmt::format("cuLaunchHostFunc: error {}", code)};
    }
    return std::unique_ptr<DeviceProgress>(std::move(opened));
  }

  bool mark(std::uint32_t position) override {
    if (failed()) return false;
    const std::size_t slot = next_ % kOutstanding;
    Call& call = calls_->ring[slot];
    if (call.outstanding.load(std::memory_order_acquire)) return false;
    call.position = position;
    call.outstanding.store(true, std::memory_order_relaxed);
    int code = driver_->event_record(events_[slot], stream_);
    if (code == CudaDriver::kSuccess) code = driver_->stream_wait_event(side_stream_, events_[slot], 0);
    if (code == CudaDriver::kSuccess) code = driver_->launch_host_function(side_stream_, &called, &call);
    if (code != CudaDriver::kSuccess) {
      call.outstanding.store(false, std::memory_order_relaxed);
      return fails(*driver_, code);
    }
    ++next_;
    return true;
  }
  [[nodiscard]] ProgressWay way() const override { return ProgressWay::host_function; }

 private:
  struct Calls;
  struct Call {
    const Calls* of = nullptr;
    std::uint32_t position = 0;
    std::atomic<bool> outstanding{false};
  };
  struct Calls {
    std::function<void(std::uint32_t)> reached;
    std::array<Call, kOutstanding> ring;
  };
  static void called(void* one) {
    auto& call = *static_cast<Call*>(one);
    const std::uint32_t position = call.position;
    const Calls& of = *call.of;
    call.outstanding.store(false, std::memory_order_release);
    of.reached(position);
  }

  std::shared_ptr<const CudaDriver> driver_;
  void* side_stream_ = nullptr;
  std::vector<void*> events_;
  Calls* calls_ = nullptr;
  std::size_t next_ = 0;
};

class Polling final : public DeviceProgress {
 public:
  static Result<std::unique_ptr<DeviceProgress>> open(const std::shared_ptr<const CudaDriver>& driver,
                                                      const Word& word) {
    auto shared = std::make_shared<Shared>();
    auto events = make_events(*driver);
    if (!events) return events.error();
    shared->driver = driver;
    shared->events = std::move(*events);
    shared->reached = word.reached;
    driver->context_current(&shared->context);
    auto opened = std::make_unique<Polling>();
    opened->shared_ = shared;
    opened->thread_.start("perseus-progress", [shared](const std::stop_token& stop) { shared->poll(stop); });
    if (!opened->thread_.running())
      return Error{ErrorCode::unavailable, "cannot create the thread that polls the device"};
    return std::unique_ptr<DeviceProgress>(std::move(opened));
  }

  bool mark(std::uint32_t position) override {
    Shared& s = *shared_;
    if (s.failed.load(std::memory_order_acquire)) failed_.store(true, std::memory_order_release);
    const std::uint64_t next = s.marked.load(std::memory_order_relaxed);
    if (failed() || next - s.passed.load(std::memory_order_acquire) >= kOutstanding) return false;
    s.positions[next % kOutstanding] = position;
    const int code = s.driver->event_record(s.events[next % kOutstanding], stream_);
    if (code != CudaDriver::kSuccess) return fails(*s.driver, code);
    s.marked.store(next + 1, std::memory_order_release);
    return true;
  }
  [[nodiscard]] ProgressWay way() const override { return ProgressWay::polling; }

 private:
  /// The thread may outlive the object: a driver call can hang.
  struct Shared {
    std::shared_ptr<const CudaDriver> driver;
    void* context = nullptr;
    std::vector<void*> events;
    std::array<std::uint32_t, kOutstanding> positions{};
    std::function<void(std::uint32_t)> reached;
    std::atomic<std::uint64_t> marked{0}, passed{0};
    std::atomic<bool> failed{false};

    void poll(const std::stop_token& stop) {
      driver->enter(context);
      double pause_s = kPollEvery_s;
      while (sleep_for(stop, pause_s) && !failed) {
        const std::uint64_t until = marked.load(std::memory_order_acquire), before = passed;
        std::uint64_t next = before;
        int code = CudaDriver::kSuccess;
        while (next != until && (code = driver->event_query(events[next % kOutstanding])) == CudaDriver::kSuccess)
          ++next;
        if (code != CudaDriver::kSuccess && code != CudaDriver::kNotReady) failed = true;
        if (next != before) {
          const std::uint32_t position = positions[(next - 1) % kOutstanding];
          passed.store(next, std::memory_order_release);
          reached(position);
        }
        pause_s = next == until ? kIdlePoll_s : kPollEvery_s;
      }
    }
  };
  std::shared_ptr<Shared> shared_;
  BackgroundThread thread_;
};

constexpr std::array<ProgressWay, 3> kWays{ProgressWay::write_value, ProgressWay::host_function, ProgressWay::polling};

}  // namespace

std::string_view name_of(ProgressWay way) {
  constexpr std::string_view names[] = {"write-value", "host-function", "polling"};
  return names[static_cast<int>(way)];
}

std::optional<ProgressWay> progress_way_named(std::string_view name) {
  for (const ProgressWay way : kWays) {
    if (name_of(way) == name) return way;
  }
  return std::nullopt;
}

Result<std::unique_ptr<DeviceProgress>> DeviceProgress::open(std::shared_ptr<const CudaDriver> driver, void* stream,
                                                             Word word, std::optional<ProgressWay> only) {
  std::string why;
  for (const ProgressWay way : kWays) {
    if (only && *only != way) continue;
    auto opened = way == ProgressWay::write_value     ? WriteValue::open(driver, stream, word)
                  : way == ProgressWay::host_function ? HostFunction::open(driver, word)
                                                      : Polling::open(driver, word);
    if (opened) {
      (*opened)->set_stream(stream);
      return opened;
    }
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", name_of(way), opened.error().message);
  }
  return Error{ErrorCode::unavailable, why};
}

}  // namespace perseus::client
