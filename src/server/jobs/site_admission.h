// Requests to admit a job under the limits of a site before it starts, and the reservations that they make.
//
// Input:   the body of POST /v1/site/admission; docs/openapi.json documents its members.
// Output:  reservations_in() reads what reservations_text() writes. domain_of(): the domain that is named, if the site
//          has it; otherwise the one around the hosts; otherwise the site.
// Errors:  usage: the first member that is wrong, its value and what is allowed.
// Cost:    linear.
// Threads: plain values, pure functions.
// Source:  docs/decisions/0056.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "io/formats/described_json.h"
#include "server/jobs/site_document.h"

namespace perseus::jobs {

struct AdmissionRequest {
  std::string job;                 ///< the name that it will register with
  std::string domain;              ///< empty: the one around `hosts`
  std::vector<std::string> hosts;  ///< empty without a domain: somewhere in the site
  int accelerators = 0;
  std::optional<Watts> accelerator_power;  ///< at maximum clock
  std::string profile;                     ///< of that name, whose power at maximum clock counts
  std::string like_job;                    ///< a job of the same training, whose frontier says the power
  std::optional<double> least_rate;        ///< that it will register with
  bool dry_run = false;
  std::string by = {};    ///< the token that asks
  std::string team = {};  ///< as Reservation::team
};

void describe(auto& f, formats::MaybeConst<AdmissionRequest> auto& s) {
  f.always("job", s.job);
  f("team", s.team);
  f("domain", s.domain);
  f("hosts", s.hosts);
  f.always("accelerators", s.accelerators);
  f("accelerator_w", s.accelerator_power);
  f("profile", s.profile);
  f("like_job", s.like_job);
  f("least_rate", s.least_rate);
  f("dry_run", s.dry_run);
}
/// Watts kept for a job that has not started yet.
struct Reservation {
  std::string job;
  std::string domain;
  std::vector<std::string> hosts;
  int accelerators = 0;
  Watts power;         ///< as drawn, at maximum clock
  double since_s = 0;  ///< when it got these watts
  double expires_s = 0;
  std::string by;
  std::string team = {};  ///< its job is one that a token of this team registers (kTeamFact), or an operator

  [[nodiscard]] bool is_for(const Job& registered) const;
  [[nodiscard]] bool is_same(const Reservation& other) const {
    return job == other.job && team == other.team && domain == other.domain && hosts == other.hosts &&
           accelerators == other.accelerators && power == other.power;
  }
};

Result<AdmissionRequest> parse_admission_request(std::string_view text, const std::string& name);

Result<std::vector<Reservation>> reservations_in(std::string_view text, const std::string& name);
std::string reservations_text(const std::vector<Reservation>& reservations);

int domain_of(const SiteDocument& document, const Reservation& reservation);

}  // namespace perseus::jobs
