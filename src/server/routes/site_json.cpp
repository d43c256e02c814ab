#include "server/routes/site_json.h"

#include "base/json_writer.h"

namespace perseus::routes {
namespace {

auto members(const service::TierGives& tier) {
  return [&tier](JsonWriter& f) {
    f.always("least_rate", tier.least_rate);
    f.always("jobs", tier.jobs);
  };
}

auto members(const service::SiteDomainView& domain) {
  return [&domain](JsonWriter& f) {
    f.always("name", domain.name);
    f("parent", domain.parent);
    f("metered_limit_w", domain.metered);
    f("limit_w", domain.limit);
    f.always("granted_w", domain.granted);
    f.always("counted_w", domain.counted);
    f("reported_w", domain.reported);
    f("missing_w", domain.missing);
    f("price", domain.price);
    f("gives", JsonList{domain.gives, [](const service::TierGives& tier) { return JsonObject{members(tier)}; }});
  };
}

}  // namespace

std::string site_power_json(const service::SitePowerView& view) {
  const auto job_members = [&view](const service::SiteJobView& job) {
    return JsonObject{[&view, &job](JsonWriter& f) {
      f.always("job", job.job);
      f("name", job.name);
      f.always("domain", view.domains[job.domain].name);
      f.always("least_rate", job.least_rate);
      f.always("state", job.state);
      f("reason", job.reason);
      f("granted_w", job.granted);
      f.always("counted_w", job.counted);
      f("reported_w", job.reported);
      f("correction", job.correction);
    }};
  };
  return json_object([&](JsonWriter& f) {
    f.always("now_s", view.now_s);
    f.always("allocates", view.allocates);
    f.always("domains",
             JsonList{view.domains, [](const service::SiteDomainView& domain) { return JsonObject{members(domain)}; }});
    f.always("jobs", JsonList{view.jobs, job_members});
  });
}

}  // namespace perseus::routes
