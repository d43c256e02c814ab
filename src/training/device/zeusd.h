// Client of zeusd, a daemon that sets clocks for processes without privileges.
//
// Problem: its two protocol versions (parameters in the query since 0.3.0, JSON bodies before) and its numbering of
//          GPUs, which is the host's NVML's.
// Input:   its socket, $ZEUSD_SOCK_PATH, else /run/zeusd/zeusd.sock or the path of older versions; $ZEUSD_TOKEN.
// Output:  commands that it has accepted.
// Errors:  no_driver if there is none, no_permission for a missing or insufficient token or a daemon that does not
//          set clocks, lost for a GPU that it does not list, bad_clock, busy.
// Cost:    a request; every 64th, the first and every unlock wait until the GPU has confirmed, since otherwise the
//          daemon only logs a failure.
// Threads: one; never more than one request in flight, so that no clock comes late.
// Source:  zeusd 0.5.0; docs/device.md.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "training/device/gpu.h"
#include "training/device/pci_bus_id.h"
#include "training/device/unix_http.h"

namespace perseus::device {

struct ZeusdOffer {
  struct Listed {
    int id = 0;
    PciBusId pci;
  };
  std::vector<Listed> gpus;
  bool controls = false, needs_token = false;
};

/// Parses the response to GET /discover. Errors: busy for any other content.
DeviceResult<ZeusdOffer> parse_zeusd_offer(std::string_view json);

std::string zeusd_socket();

class Zeusd {
 public:
  /// Queries what the daemon offers. The GPU: its bus id for a daemon that lists them, its index in NVML for an older
  /// one.
  static DeviceResult<Zeusd> open(const std::string& pci_bus_id, int nvml_index);
  DeviceStatus lock_clock(Megahertz clock);
  DeviceStatus unlock_clock();
  DeviceStatus limit_clock(Megahertz lowest, Megahertz highest);
  DeviceStatus set_power_limit(Watts limit);
  [[nodiscard]] const std::string& path() const { return http_->path(); }
  [[nodiscard]] bool older() const { return older_; }

 private:
  Zeusd(std::unique_ptr<UnixHttp> http, int id, bool older) : http_(std::move(http)), id_(id), older_(older) {}
  DeviceStatus command(std::string_view name, Megahertz lowest, Megahertz clock, bool block);

  std::unique_ptr<UnixHttp> http_;
  int id_;
  bool older_;
  long locks_ = 0;
};

}  // namespace perseus::device
