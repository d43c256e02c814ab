#include "training/device/pci_bus_id.h"

#include <fmt/format.h>

#include <charconv>

namespace perseus::device {
namespace {

/// Parses at most `digits` hexadecimal digits.
std::optional<std::uint32_t> hexadecimal(std::string_view text, std::size_t digits) {
  std::uint32_t value = 0;
  if (text.empty() || text.size() > digits) return std::nullopt;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string text_of(const PciBusId& id) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", id.domain, id.bus, id.device, id.function);
}

std::optional<PciBusId> parse_pci_bus_id(std::string_view text) {
  const std::size_t last = text.rfind(':');
  if (last == std::string_view::npos) return std::nullopt;
  std::string_view device = text.substr(last + 1), function = "0", bus = text.substr(0, last), domain = "0";
  if (const std::size_t dot = device.find('.'); dot != std::string_view::npos) {
    function = device.substr(dot + 1);
    device = device.substr(0, dot);
  }
  if (const std::size_t first = bus.find(':'); first != std::string_view::npos) {
    domain = bus.substr(0, first);
    bus = bus.substr(first + 1);
  }
  const auto domain_number = hexadecimal(domain, 8), bus_number = hexadecimal(bus, 2);
  const auto device_number = hexadecimal(device, 2), function_number = hexadecimal(function, 1);
  if (!domain_number || !bus_number || !device_number || !function_number) return std::nullopt;
  return PciBusId{*domain_number, *bus_number, *device_number, *function_number};
}

}  // namespace perseus::device
