#include "server/jobs/site_admission.h"

#include <fmt/format.h>

#include <type_traits>

#include "base/json_writer.h"
#include "io/formats/described_json.h"
#include "server/jobs/job.h"

namespace perseus::jobs {
namespace {

constexpr int kMostAccelerators = 1 << 20;
constexpr std::size_t kMostHosts = 100'000;
constexpr double kMostAcceleratorWatts = 1e5;

struct AdmissionBody {
  std::string job, team, domain, profile, like_job;
  std::vector<std::string> hosts;
  int accelerators = 0;
  std::optional<double> accelerator_w, least_rate;
  bool dry_run = false;
};
struct ReservationBody {
  std::string job, team, domain, by;
  std::vector<std::string> hosts;
  int accelerators = 0;
  double power_w = 0, since_s = 0, expires_s = 0;
};
struct ReservationsBody {
  std::vector<ReservationBody> reservations;
};
void describe(auto& f, formats::MaybeConst<AdmissionBody> auto& s) {
  f.always("job", s.job);
  f("team", s.team);
  f("domain", s.domain);
  f("hosts", s.hosts);
  f.always("accelerators", s.accelerators);
  f("accelerator_w", s.accelerator_w);
  f("profile", s.profile);
  f("like_job", s.like_job);
  f("least_rate", s.least_rate);
  f("dry_run", s.dry_run);
}
void describe(auto& f, formats::MaybeConst<ReservationBody> auto& s) {
  f.always("job", s.job);
  f("team", s.team);
  f("domain", s.domain);
  f("hosts", s.hosts);
  f.always("accelerators", s.accelerators);
  f.always("power_w", s.power_w);
  f.always("since_s", s.since_s);
  f.always("expires_s", s.expires_s);
  f("by", s.by);
}
void describe(auto& f, formats::MaybeConst<ReservationsBody> auto& s) { f.always("reservations", s.reservations); }

Status check(const AdmissionBody& body) {
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
  if (body.accelerator_w && !(*body.accelerator_w >= 0 && *body.accelerator_w <= kMostAcceleratorWatts)) {
    return wrong(fmt::format("accelerator_w: {}; allowed: 0 to {:g}", *body.accelerator_w, kMostAcceleratorWatts));
  }
  if (body.least_rate && !(*body.least_rate >= 0 && *body.least_rate <= 1)) {
    return wrong(fmt::format("least_rate: {}; allowed: 0 to 1", *body.least_rate));
  }
  const int sources = int{body.accelerator_w.has_value()} + int{!body.profile.empty()} + int{!body.like_job.empty()};
  if (sources > 1) {
    return wrong(fmt::format("accelerator_w, profile, like_job: {} of them; allowed: at most one", sources));
  }
  return Ok{};
}

}  // namespace

Result<AdmissionRequest> parse_admission_request(std::string_view text, const std::string& name) {
  const auto body = formats::parse_json_as<AdmissionBody>(text, name);
  if (!body) return body.error();
  if (const Status checked = check(*body); !checked) return checked.error();
  std::optional<Watts> accelerator_power;
  if (body->accelerator_w) accelerator_power = Watts(*body->accelerator_w);
  return AdmissionRequest{body->job,     body->domain,   body->hosts,      body->accelerators, accelerator_power,
                          body->profile, body->like_job, body->least_rate, body->dry_run,      {},
                          body->team};
}

Result<std::vector<Reservation>> reservations_in(std::string_view text, const std::string& name) {
  const auto body = formats::parse_json_as<ReservationsBody>(text, name);
  if (!body) return body.error();
  std::vector<Reservation> reservations;
  for (const ReservationBody& one : body->reservations) {
    reservations.push_back({one.job, one.domain, one.hosts, one.accelerators, Watts(one.power_w), one.since_s,
                            one.expires_s, one.by, one.team});
  }
  return reservations;
}

std::string reservations_text(const std::vector<Reservation>& reservations) {
  ReservationsBody body;
  for (const Reservation& one : reservations) {
    body.reservations.push_back({one.job, one.team, one.domain, one.by, one.hosts, one.accelerators, one.power.value(),
                                 one.since_s, one.expires_s});
  }
  return json_text(body);
}

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
