#include "server/service/site_names.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "server/service/registration_checks.h"

namespace perseus::service {
namespace {

constexpr std::size_t kMostBytes = 256;

Status check_name(const std::string& what, const std::string& name) {
  if (name.find_first_not_of(' ') == std::string::npos) {
    return Error{ErrorCode::usage, fmt::format("{}: blank; allowed: a name", what)};
  }
  return check_text(what, name, kMostBytes);
}

}  // namespace

Status check_site_names(const jobs::SiteDocument& document) {
  if (Status named = check_text("site: name", document.site.name, kMostBytes); !named) return named;
  for (std::size_t d = 0; d < document.site.domains.size(); ++d) {
    Status named = check_name(fmt::format("site: domains[{}].name", d), document.site.domains[d].name);
    if (!named) return named;
  }
  std::set<std::string> hosts, prefixes;
  for (std::size_t h = 0; h < document.hosts.size(); ++h) {
    const jobs::HostRule& rule = document.hosts[h];
    const bool exact = rule.prefix.empty();
    const std::string& name = exact ? rule.host : rule.prefix;
    const std::string what = fmt::format("site: hosts[{}].{}", h, exact ? "host" : "prefix");
    if (Status named = check_name(what, name); !named) return named;
    if (!(exact ? hosts : prefixes).insert(name).second) {
      return Error{ErrorCode::usage, fmt::format("{}: '{}' appears twice", what, name)};
    }
  }
  return Ok{};
}

}  // namespace perseus::service
