// Client of zeusd, a daemon that sets clocks for processes without privileges.
//
// Problem: its two protocol versions (parameters in the query since 0.3.0, JSON bodies before), its numbering of
//          GPUs, which is the host's, and tokens that expire while training runs.
// Input:   its socket, $ZEUSD_SOCK_PATH, else /run/zeusd/zeusd.sock or the path of older versions; the token, which is
//          read again where zeusd refuses it: the first word of the file $ZEUSD_TOKEN_FILE, else $ZEUSD_TOKEN.
// Output:  commands that it has accepted; readings of AMD GPUs.
// Errors:  no_driver if there is none, no_permission for a missing or insufficient token or a daemon that does not
//          set clocks, lost for a GPU that it does not list, bad_clock, busy.
// Cost:    a request; every 64th, the first and every unlock wait until the GPU has confirmed, since otherwise the
//          daemon only logs a failure.
// Threads: one; never more than one request in flight, so that no clock comes late.
// Source:  zeusd 0.5.0; docs/device.md.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "training/device/gpu.h"
#include "training/device/pci_bus_id.h"
#include "training/device/unix_http.h"

namespace perseus::device {

struct ZeusdOffer {
  struct Listed {
    int id = 0;
    PciBusId pci;
    std::string name;
  };
  std::vector<Listed> gpus;
  bool controls = false, needs_token = false;
};

/// Parses the response to GET /discover. Errors: busy for any other content.
DeviceResult<ZeusdOffer> parse_zeusd_offer(std::string_view json);

std::string zeusd_socket();
/// What the daemon offers, if it lists that.
DeviceResult<ZeusdOffer> ask_zeusd();

class Zeusd {
 public:
  /// An NVIDIA GPU: its bus id for a daemon that lists them, its index in NVML for an older one.
  static DeviceResult<Zeusd> open(const std::string& pci_bus_id, int nvml_index);
  /// An AMD GPU: WHICH of a selector, an index of zeusd or a bus id. A daemon without gpu-control reads only.
  static DeviceResult<Zeusd> open_amd(const std::string& which);

  DeviceStatus lock_clock(Megahertz clock) { return lock_clocks(clock, clock); }
  DeviceStatus lock_clocks(Megahertz lowest, Megahertz highest);
  DeviceStatus unlock_clock();
  DeviceStatus limit_clock(Megahertz lowest, Megahertz highest);
  /// GET /gpu/NAME: the number at these keys of the answer, where "" is the GPU's id.
  DeviceResult<double> read(std::string_view name, std::initializer_list<std::string_view> keys);

  [[nodiscard]] const std::string& path() const { return http_->path(); }
  [[nodiscard]] bool older() const { return older_; }
  [[nodiscard]] const ZeusdOffer::Listed& gpu() const { return gpu_; }
  [[nodiscard]] bool controls() const { return controls_; }
  /// An AMD GPU that is a part of its card: clocks, power and energy are those of the card.
  [[nodiscard]] bool partition() const { return partition_; }
  /// The id of the GPU whose counter has this GPU's energy: its own, or that of the first die of its MI250.
  [[nodiscard]] int counted_with() const { return counted_with_; }

 private:
  Zeusd(std::unique_ptr<UnixHttp> http, ZeusdOffer::Listed gpu, bool older)
      : http_(std::move(http)), gpu_(std::move(gpu)), older_(older), counted_with_(gpu_.id) {}
  DeviceResult<UnixHttpAnswer> call(std::string_view method, const std::string& target, const std::string& json = {});
  DeviceStatus command(std::string_view name, Megahertz lowest, Megahertz clock, bool block);

  std::unique_ptr<UnixHttp> http_;
  ZeusdOffer::Listed gpu_;
  bool older_;
  bool amd_ = false, partition_ = false, controls_ = true;
  int counted_with_;
  long locks_ = 0;
};

}  // namespace perseus::device
