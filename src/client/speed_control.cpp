#include "client/speed_control.h"

#include <utility>

#include "clock_control/clock_controller.h"

namespace perseus::client {
namespace {

class HelperControl final : public SpeedControl {
 public:
  explicit HelperControl(std::unique_ptr<ClockController> controller) : controller_(std::move(controller)) {}
  void stop() noexcept override { controller_->stop(); }
  [[gnu::hot]] void set(int clock_mhz) noexcept override { controller_->set(Megahertz(clock_mhz)); }
  void begin_step() noexcept override { controller_->begin_step(); }
  [[nodiscard]] std::int64_t working_helper() const noexcept override { return controller_->working_helper(); }
  [[nodiscard]] std::string why_not() const override { return controller_->why(); }
  [[nodiscard]] SpeedStatistics statistics() const override {
    const ControlStatistics s = controller_->statistics();
    return {s.requested,
            s.applied,
            s.superseded,
            s.failed,
            s.last_set.value(),
            s.request_to_device_p50_s,
            s.request_to_device_p99_s,
            s.request_to_clock_p50_s,
            s.request_to_clock_p99_s,
            s.helper_cpu_s,
            s.pending,
            s.helpers};
  }
  [[nodiscard]] int helper_pid() const noexcept override { return controller_->helper_pid(); }

 private:
  std::unique_ptr<ClockController> controller_;
};

}  // namespace

OpenedControl open_speed_control(const std::string& device, const ClientOptions& options) {
  auto started = ClockController::start({device, options.helper, options.start_limit_s, options.helper_restart});
  if (!started) return {nullptr, started.error().message};
  return {std::make_unique<HelperControl>(std::move(*started)), ""};
}

}  // namespace perseus::client
