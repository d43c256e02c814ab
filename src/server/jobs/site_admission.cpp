#include "server/jobs/site_admission.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "io/formats/described_json.h"
#include "server/jobs/job.h"

namespace perseus::jobs {

void describe(auto& f, formats::MaybeConst<Reservation> auto& s) {
  f.always("job", s.job);
  f("team", s.team);
  f("domain", s.domain);
  f("hosts", s.hosts);
  f.always("accelerators", s.accelerators);
  f.always("power_w", s.power);
  f.always("since_s", s.since_s);
  f.always("expires_s", s.expires_s);
  f("by", s.by);
}

namespace {

constexpr int kMostAccelerators = 1 << 20;
constexpr std::size_t kMostHosts = 100'000;
constexpr Watts kMostAcceleratorPower(1e5);

Status check(const AdmissionRequest& body) {
  const auto wrong = [](const std::string& what) -> Status { return Error{ErrorCode::usage, "body: " + what}; };
  if (body.job.find_first_not_of(' ') == std::string::npos) return wrong("job: blank; allowed: a name");
  if (!body.domain.empty() && !body.hosts.empty()) {
    return wrong(
        fmt::format("domain, hosts: '{}', {} hosts; allowed: at most one of them", body.domain, body.hosts.size()));
  }
  if (body.hosts.size() > kMostHosts) {
    return wrong(fmt::format("hosts: {}; allowed: {} at most", body.hosts.size(), kMostHosts));
  }
  if (body.accelerators < 1 || body.accelerators > kMostAccelerators) {
    return wrong(fmt::format("accelerators: {}; allowed: 1 to {}", body.accelerators, kMostAccelerators));
  }
  if (const auto& power = body.accelerator_power; power && !(*power >= Watts(0) && *power <= kMostAcceleratorPower)) {
    return wrong(fmt::format("accelerator_w: {}; allowed: 0 to {:g}", power->value(), kMostAcceleratorPower.value()));
  }
  if (body.least_rate && !(*body.least_rate >= 0 && *body.least_rate <= 1)) {
    return wrong(fmt::format("least_rate: {}; allowed: 0 to 1", *body.least_rate));
  }
  const int sources =
      int{body.accelerator_power.has_value()} + int{!body.profile.empty()} + int{!body.like_job.empty()};
  if (sources > 1) {
    return wrong(fmt::format("accelerator_w, profile, like_job: {} of them; allowed: at most one", sources));
  }
  return Ok{};
}

}  // namespace

Result<AdmissionRequest> parse_admission_request(std::string_view text, const std::string& name) {
  auto body = formats::parse_json_as<AdmissionRequest>(text, name);
  if (!body) return body;
  if (const Status checked = check(*body); !checked) return checked.error();
  return body;
}

Result<std::vector<Reservation>> reservations_in(std::string_view text, const std::string& name) {
  return formats::parse_json_as<std::vector<Reservation>>(text, name);
}

std::string reservations_text(const std::vector<Reservation>& reservations) { return json_text(reservations); }

bool Reservation::is_for(const Job& registered) const {
  if (registered.spec.name != job) return false;
  if (!registered.spec.tier_bounded) return true;
  const auto own = registered.spec.facts.find(std::string(kTeamFact));
  return own != registered.spec.facts.end() && !team.empty() && own->second == team;
}

int domain_of(const SiteDocument& document, const Reservation& reservation) {
  return domain_of(document, reservation.domain, reservation.hosts);
}

}  // namespace perseus::jobs
