// Any text is a site or an error that names the file; what was read holds together.
#include <cstdint>

#include "io/formats/site_toml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  const auto site = formats::parse_site({reinterpret_cast<const char*>(data), size}, "fuzz", "");
  if (!site) {
    PERSEUS_CHECK(site.error().message.starts_with("fuzz:"), "the error names the file");
    return 0;
  }
  const int domains = static_cast<int>(site->domains.size());
  PERSEUS_CHECK(domains > 0 && !site->jobs.empty(), "a domain and a job");
  for (int d = 0; d < domains; ++d) {
    const model::DescribedDomain& domain = site->domains[d];
    PERSEUS_CHECK(d == 0 ? domain.parent == -1 : domain.parent >= 0 && domain.parent < d, "parents come first");
    PERSEUS_CHECK(!domain.limits.empty() && domain.limits.front().from == Seconds(0), "a limit from the beginning");
    for (std::size_t k = 1; k < domain.limits.size(); ++k) {
      PERSEUS_CHECK(domain.limits[k - 1].from < domain.limits[k].from && domain.limits[k].from < site->end,
                    "limits ascend until the end");
    }
  }
  for (const model::DescribedJob& job : site->jobs) {
    PERSEUS_CHECK(job.domain >= 0 && job.domain < domains, "of a domain that there is");
    PERSEUS_CHECK(job.plans.empty() != job.profile.empty(), "a profile or plans");
    PERSEUS_CHECK(job.least_rate >= 0 && job.least_rate <= 1 && job.count >= 1, "in range");
  }
  return 0;
}
