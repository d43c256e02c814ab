// PCI bus ids as drivers and people write them: "00000000:01:00.0", "0000:01:00.0", "01:00.0", "01:00"; hexadecimal.
//
// Input: text. Output: the numbers, so that two writings of one place are equal; none for what is no bus id. Errors:
// none. Cost: none. Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace perseus::device {

struct PciBusId {
  std::uint32_t domain = 0, bus = 0, device = 0, function = 0;
  bool operator==(const PciBusId&) const = default;
};

std::optional<PciBusId> parse_pci_bus_id(std::string_view text);

}  // namespace perseus::device
