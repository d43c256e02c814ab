// Setting this rank's clock, as the client needs it: the helper process (clock_control/), or nothing.
//
// Problem: tests and advice-only mode run without a helper. Input: set(). Output: state and statistics. Errors:
// open_speed_control() gives null and says why; a helper that cannot be had now is no error, it is tried again. Cost:
// set() as ClockController's. Threads: set() and begin_step() one at a time, the rest any. Source: paper section 5
// (controller).
#pragma once

#include <memory>
#include <string>

#include "client/options.h"

namespace perseus::client {

struct SpeedStatistics {
  std::int64_t requested = 0, applied = 0, superseded = 0, failed = 0;
  int last_set_mhz = 0;  ///< acknowledged by the device
  double request_to_device_p50_s = 0, request_to_device_p99_s = 0;
  double request_to_clock_p50_s = 0, request_to_clock_p99_s = 0;  ///< until the device runs at it; 0: not known
  double helper_cpu_s = 0;
  bool pending = false;      ///< the newest is not done with yet
  std::int64_t helpers = 0;  ///< that got to work, one after the other
};

class SpeedControl {
 public:
  SpeedControl() = default;
  SpeedControl(const SpeedControl&) = delete;
  SpeedControl& operator=(const SpeedControl&) = delete;
  virtual ~SpeedControl() = default;  ///< stop()
  /// Gives the clock back. Every other call stays allowed, also beside this one.
  virtual void stop() noexcept = 0;
  virtual void set(int clock_mhz) noexcept = 0;
  virtual void begin_step() noexcept = 0;  ///< a training step; its requests resemble those of the step before
  /// Which helper is at work: the first, second, ...; 0: none is.
  [[nodiscard]] virtual std::int64_t working_helper() const noexcept = 0;
  [[nodiscard]] virtual std::string why_not() const = 0;
  [[nodiscard]] virtual SpeedStatistics statistics() const = 0;
  [[nodiscard]] virtual int helper_pid() const noexcept = 0;
};

struct OpenedControl {
  std::unique_ptr<SpeedControl> control;  ///< null: none
  std::string why_not;
};
OpenedControl open_speed_control(const std::string& device, const ClientOptions& options);

}  // namespace perseus::client
