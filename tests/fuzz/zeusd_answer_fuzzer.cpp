// Any text as an answer of zeusd, and as the name of a GPU: parsed or rejected.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "training/device/pci_bus_id.h"
#include "training/device/unix_http.h"
#include "training/device/zeusd.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(perseus::device::parse_pci_bus_id(text));
  static_cast<void>(perseus::device::parse_zeusd_offer(text));
  perseus::device::UnixHttpAnswer answer;
  if (perseus::device::parse_http_answer(text, answer))
    static_cast<void>(perseus::device::parse_zeusd_offer(answer.body));
  return 0;
}
