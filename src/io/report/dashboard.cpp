#include "io/report/dashboard.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/result.h"
#include "io/report/bundle.h"

namespace perseus::report {

std::string dashboard_page() {
  constexpr std::string_view place = "{{charts}}";  // placeholder left by web/build.mjs
  const std::string_view frame = dashboard_frame();
  const std::size_t at = frame.find(place);
  PERSEUS_CHECK(at != std::string_view::npos, "web/dist/dashboard.html has no place for the charts");
  std::string page;
  page.reserve(frame.size() + charts_script().size());
  page += frame.substr(0, at);
  page += charts_script();
  page += frame.substr(at + place.size());
  return page;
}

std::string entity_tag(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a: distinguishes versions; not a secret
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return fmt::format("\"{:016x}\"", hash);
}

}  // namespace perseus::report
