#include "server/routes/site_json.h"

#include "base/json_writer.h"
#include "server/power/site_speed.h"

namespace perseus::routes {
namespace {

auto members(const power::TierGives& tier) {
  return [&tier](JsonWriter& f) {
    f.always("least_rate", tier.least_rate);
    f.always("jobs", tier.jobs);
  };
}

auto members(const power::TierLoss& tier) {
  return [&tier](JsonWriter& f) {
    f.always("least_rate", tier.least_rate);
    f.always("jobs", tier.jobs);
    f.always("accelerators", tier.accelerators);
    f.always("rate_lost", tier.rate_lost);
  };
}

auto members(const power::SitePowerView& view, const power::SiteDomainView& domain) {
  return [&view, &domain](JsonWriter& f) {
    f.always("name", domain.name);
    f("parent", domain.parent);
    f("metered_limit_w", domain.metered);
    f("limit_w", domain.limit);
    f("falls_at_s", domain.falls_at_s);
    if (domain.falls_at_s) f.always("falls_to_w", domain.falls_to);
    if (domain.guard) f.always("guard_w", *domain.guard);
    f.always("granted_w", domain.granted);
    f.always("counted_w", domain.counted);
    f("reported_w", domain.reported);
    f("reserved_w", domain.reserved);
    f("missing_w", domain.missing);
    f("price", domain.price);
    f("price_pct_per_kw", power::price_pct_per_kw(view.objective, domain.price, view.weight));
    f("metered_w", domain.meter);
    f("meter_refused_w", domain.meter_refused);
    f.always("meter_factor", domain.meter_factor);
    f("planned_w", domain.planned);
    f("baseline_w", domain.baseline);
    if (!domain.tiers.empty()) f.always("rate_lost", power::rate_lost_of(domain.tiers));
    f("tiers", JsonList{domain.tiers, [](const power::TierLoss& tier) { return JsonObject{members(tier)}; }});
    f("gives", JsonList{domain.gives, [](const power::TierGives& tier) { return JsonObject{members(tier)}; }});
  };
}

}  // namespace

std::string site_domain_json(const power::SitePowerView& view, const power::SiteDomainView& domain) {
  return json_object(members(view, domain));
}

std::string site_job_json(const power::SitePowerView& view, const power::SiteJobView& job) {
  return json_object([&](JsonWriter& f) {
    f.always("job", job.job);
    f("name", job.name);
    f.always("domain", view.domains[job.domain].name);
    f.always("least_rate", job.least_rate);
    f.always("state", job.state);
    f("reason", job.reason);
    f("silent_since_s", job.silent_since_s);
    f("silent_ranks", job.silent_ranks);
    f("granted_w", job.granted);
    f.always("counted_w", job.counted);
    f("reported_w", job.reported);
    f("correction", job.correction);
    f.always("accelerators", job.accelerators);
    f.always("priority", job.priority);
    f("planned_w", job.planned);
    f("baseline_w", job.baseline);
    f("rate", job.rate);
    if (job.rate_lost) f.always("rate_lost", *job.rate_lost);
  });
}

std::string site_rows_json(const power::SitePowerView& view, const SiteRows& rows) {
  const auto reservation_members = [&view](const power::SiteReservationView& one) {
    return JsonObject{[&view, &one](JsonWriter& f) {
      f.always("job", one.reservation.job);
      f.always("domain", view.domains[one.domain].name);
      f.always("accelerators", one.reservation.accelerators);
      f.always("power_w", one.reservation.power);
      f.always("counted_w", one.counted);
      f.always("since_s", one.reservation.since_s);
      f.always("expires_s", one.reservation.expires_s);
      f.always("ready", one.ready);
      f("over", one.over);
      f("team", one.reservation.team);
      f("by", one.reservation.by);
    }};
  };
  const auto made = [](std::string_view row) { return JsonRaw{row}; };
  return json_object([&](JsonWriter& f) {
    f.always("now_s", view.now_s);
    f("version", rows.version);
    f("since", rows.since);
    f.always("objective", name_of(view.objective));
    f.always("domains", JsonList{rows.domains, made});
    f.always("jobs", JsonList{rows.jobs, made});
    f("gone", rows.gone);
    f.always("reservations", JsonList{view.reservations, reservation_members});
    f("unread_jobs", view.unread_jobs);
  });
}

std::string site_power_json(const power::SitePowerView& view) {
  std::vector<std::string> texts;
  for (const power::SiteDomainView& domain : view.domains) texts.push_back(site_domain_json(view, domain));
  for (const power::SiteJobView& job : view.jobs) texts.push_back(site_job_json(view, job));
  SiteRows rows;
  for (const std::string& text : texts) {
    (rows.domains.size() < view.domains.size() ? rows.domains : rows.jobs).push_back(text);
  }
  return site_rows_json(view, rows);
}

std::string admission_json(const power::Admission& admission) {
  using State = power::Admission::State;
  return json_object([&](JsonWriter& f) {
    f.always("state", name_of(admission.state));
    if (admission.state == State::admitted) f.always("ready", admission.ready);
    f.always("job", admission.reservation.job);
    f.always("domain", admission.domain);
    f.always("accelerators", admission.reservation.accelerators);
    f.always("power_w", admission.reservation.power);
    f("replaced_w", admission.replaced);
    if (admission.reserved) f.always("expires_s", admission.reservation.expires_s);
    f("from_s", admission.from_s);
    f("short_from_s", admission.short_from_s);
    f("missing", JsonList{admission.missing, [](const power::Admission::Missing& one) {
                            return JsonObject{[&one](JsonWriter& of) {
                              of.always("domain", one.domain);
                              of.always("missing_w", one.watts);
                            }};
                          }});
  });
}

}  // namespace perseus::routes
