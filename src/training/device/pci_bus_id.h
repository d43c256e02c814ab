// Parses PCI bus ids in all usual forms: "00000000:01:00.0", "0000:01:00.0", "01:00.0", "01:00"; hexadecimal.
//
// Input:   text.
// Output:  the numbers, so that two forms of one address are equal; none for any other text.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace perseus::device {

struct PciBusId {
  std::uint32_t domain = 0, bus = 0, device = 0, function = 0;
  auto operator<=>(const PciBusId&) const = default;
  [[nodiscard]] bool same_card(const PciBusId& other) const {
    return domain == other.domain && bus == other.bus && device == other.device;
  }
};

/// "0000:01:00.0", as the kernel writes it.
std::string text_of(const PciBusId& id);

std::optional<PciBusId> parse_pci_bus_id(std::string_view text);

}  // namespace perseus::device
