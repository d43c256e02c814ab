#include "server/jobs/site_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>

#include "io/formats/sha256.h"
#include "server/jobs/site_body.h"

namespace perseus::jobs {
namespace {

constexpr std::size_t kMostDomains = 20'000, kMostSteps = 100'000, kMostRules = 100'000, kMostTeams = 10'000;
constexpr double kMostWatts = 1e12;
constexpr double kAccelerator_w = 1000;  ///< unless the site names another one

struct Range {
  double least, most;
};
constexpr Range kLeastRates{0, 1}, kPriorities{1e-3, 1e3};

/// Null: none of that name.
const TeamTier* team_of(const SiteDocument& document, std::string_view name) {
  const auto found = std::ranges::find(document.teams, name, &TeamTier::name);
  return found == document.teams.end() ? nullptr : &*found;
}

/// Makes a document of a body; keeps the first error.
class Reader {
 public:
  explicit Reader(const SiteBody& body) : body_(body) {}

  Result<SiteDocument> read() {
    read_root();
    if (body_.domains.empty()) fail("domains: none; allowed: at least one, the first for the whole site");
    at_most("domains", body_.domains.size(), kMostDomains);
    at_most("hosts", body_.hosts.size(), kMostRules);
    at_most("teams", body_.teams.size(), kMostTeams);
    for (std::size_t d = 0; d < body_.domains.size() && !error_; ++d) read_domain(d);
    for (std::size_t h = 0; h < body_.hosts.size() && !error_; ++h) read_host(h);
    for (std::size_t t = 0; t < body_.teams.size() && !error_; ++t) read_team(t);
    if (error_) return *error_;
    return document_;
  }

 private:
  void fail(const std::string& message) {
    if (!error_) error_ = Error{ErrorCode::usage, "site: " + message};
  }
  void at_most(const std::string& member, std::size_t count, std::size_t most) {
    if (count > most) fail(fmt::format("{}: {}; allowed: {} at most", member, count, most));
  }
  double in(const std::string& member, double value, Range range) {
    if (!(value >= range.least && value <= range.most)) {
      fail(fmt::format("{}: {}; allowed: {} to {}", member, value, range.least, range.most));
    }
    return value;
  }

  void read_root() {
    model::SiteDescription& site = document_.site;
    site.name = body_.name;
    site.pue = in("pue", body_.pue, {1, 10});
    site.supply_efficiency = in("supply_efficiency", body_.supply_efficiency, {0.01, 1});
    site.node_overhead = Watts(in("node_overhead_w", body_.node_overhead_w, {0, kMostWatts}));
    site.gpus_per_node = static_cast<int>(in("gpus_per_node", body_.gpus_per_node, {1, 1024}));
    document_.pacing = body_.pacing;
    document_.least_rate = in("least_rate", body_.least_rate, kLeastRates);
    document_.lease = Seconds(in("lease_s", body_.lease_s, {1, 3600}));
    if (body_.dwell_s) document_.dwell = Seconds(in("dwell_s", *body_.dwell_s, {0, 3600}));
    in("accelerator_w", body_.accelerator_w.value_or(0), {0, 1e5});
    if (body_.admission_s) document_.admission = Seconds(in("admission_s", *body_.admission_s, {10, 86400}));
    const auto objective = model::site_objective_named(body_.objective);
    if (objective) document_.objective = *objective;
    if (!objective) {
      fail(
          fmt::format("objective: '{}'; allowed: {}", body_.objective, fmt::join(model::site_objective_names(), ", ")));
    }
  }

  /// The domain of that name among those read; -1 after an error.
  int domain_named(const std::string& member, const std::string& name) {
    if (const auto found = number_of_.find(name); found != number_of_.end()) return found->second;
    fail(fmt::format("{}: '{}'; allowed: the name of a domain{}", member, name,
                     member.ends_with("parent") ? " before it" : ""));
    return -1;
  }

  void read_domain(std::size_t d) {
    const DomainBody& body = body_.domains[d];
    const std::string at = fmt::format("domains[{}].", d);
    model::DescribedDomain domain;
    domain.name = body.name;
    if (body.name.empty() || body.name.size() > 256) {
      fail(fmt::format("{}name: {} bytes; allowed: 1 to 256", at, body.name.size()));
    }
    if (number_of_.contains(body.name)) {
      fail(fmt::format("{}name: '{}'; allowed: a name that no domain before it has", at, body.name));
    }
    if (d == 0 && !body.parent.empty()) {
      fail(fmt::format("{}parent: '{}'; allowed: none, since the first domain is the site", at, body.parent));
    }
    if (d > 0) domain.parent = body.parent.empty() ? 0 : domain_named(at + "parent", body.parent);
    domain.constant = Watts(in(at + "constant_w", body.constant_w, {0, kMostWatts}));
    if (body.window_s) domain.window = Seconds(in(at + "window_s", *body.window_s, {0, 86400}));
    for (const auto& [member, value, ramp] :
         {std::tuple{"ramp_down_w_per_s", body.ramp_down_w_per_s, &domain.ramp.down_w_per_s},
          {"ramp_up_w_per_s", body.ramp_up_w_per_s, &domain.ramp.up_w_per_s}}) {
      if (value) *ramp = in(at + member, *value, {1e-3, kMostWatts});
    }
    read_limits(body, at, domain);
    constexpr std::size_t most_text = 1024;
    if (body.limits_unread.size() > most_text) {
      fail(fmt::format("{}limits_unread: {} bytes; allowed: at most {}", at, body.limits_unread.size(), most_text));
    }
    domain.limits_unread = body.limits_unread;
    read_accelerator_power(body, at, domain.parent);
    number_of_.emplace(body.name, static_cast<int>(d));
    document_.site.domains.push_back(std::move(domain));
  }

  /// A job around several domains counts as the greatest of them.
  void read_accelerator_power(const DomainBody& body, const std::string& at, int parent) {
    const bool is_site = document_.accelerator_power.empty();
    const double around_w = is_site ? body_.accelerator_w.value_or(kAccelerator_w)
                                    : document_.accelerator_power[std::max(0, parent)].value();
    const double own_w = body.accelerator_w.value_or(around_w);
    if (is_site && body.accelerator_w) {
      fail(fmt::format("{}accelerator_w: {}; allowed: none, since the first domain is the site", at, own_w));
    }
    if (!(own_w >= 0 && own_w <= around_w)) {
      fail(fmt::format("{}accelerator_w: {}; allowed: 0 to {}, that of the domain around", at, own_w, around_w));
    }
    document_.accelerator_power.emplace_back(own_w);
  }

  void read_limits(const DomainBody& body, const std::string& at, model::DescribedDomain& domain) {
    steps_ += body.limits.size();
    at_most(at + "limits, with those of the domains before", steps_, kMostSteps);
    if (body.limits.empty() || body.limits.front().from_s > 0) domain.limits.push_back({Seconds(0), model::kNoLimit});
    for (std::size_t k = 0; k < body.limits.size() && !error_; ++k) {
      const std::string member = fmt::format("{}limits[{}].", at, k);
      const Seconds from(in(member + "from_s", body.limits[k].from_s, {0, 1e11}));
      if (k > 0 && from <= domain.limits.back().from) {
        fail(fmt::format("{}from_s: {}; allowed: later than the limit before it, {}", member, from.value(),
                         domain.limits.back().from.value()));
      }
      const auto& limit_w = body.limits[k].limit_w;
      domain.limits.push_back(
          {from, limit_w ? Watts(in(member + "limit_w", *limit_w, {0, kMostWatts})) : model::kNoLimit});
    }
  }

  void read_host(std::size_t h) {
    const HostBody& body = body_.hosts[h];
    const std::string at = fmt::format("hosts[{}].", h);
    if (body.host.empty() == body.prefix.empty()) {
      fail(fmt::format("{}host, prefix: '{}', '{}'; allowed: exactly one of them", at, body.host, body.prefix));
    }
    document_.hosts.push_back({body.host, body.prefix, domain_named(at + "domain", body.domain)});
  }

  void read_team(std::size_t t) {
    const TeamBody& body = body_.teams[t];
    const std::string at = fmt::format("teams[{}].", t);
    if (body.name.empty() || body.name.size() > 256) {
      fail(fmt::format("{}name: {} bytes; allowed: 1 to 256", at, body.name.size()));
    }
    if (team_of(document_, body.name) != nullptr) {
      fail(fmt::format("{}name: '{}'; allowed: a name that no team before it has", at, body.name));
    }
    if (body.least_rate) in(at + "least_rate", *body.least_rate, kLeastRates);
    if (body.priority) in(at + "priority", *body.priority, kPriorities);
    const int domain = body.domain.empty() ? 0 : domain_named(at + "domain", body.domain);
    document_.teams.push_back({body.name, body.least_rate, body.priority, domain});
  }

  const SiteBody& body_;
  SiteDocument document_;
  std::map<std::string, int, std::less<>> number_of_;  ///< of the domains read
  std::size_t steps_ = 0;
  std::optional<Error> error_;
};

SiteBody body_of(const SiteDocument& document) {
  const model::SiteDescription& site = document.site;
  SiteBody body;
  body.name = site.name;
  body.objective = name_of(document.objective);
  body.pue = site.pue;
  body.supply_efficiency = site.supply_efficiency;
  body.node_overhead_w = site.node_overhead.value();
  body.gpus_per_node = site.gpus_per_node;
  body.least_rate = document.least_rate;
  body.pacing = document.pacing;
  body.lease_s = document.lease.value();
  body.dwell_s = document.dwell.value();
  body.accelerator_w = document.accelerator_power.front().value();
  body.admission_s = document.admission.value();
  for (std::size_t d = 0; d < site.domains.size(); ++d) {
    const model::DescribedDomain& domain = site.domains[d];
    const Watts power = document.accelerator_power[d];
    DomainBody& one = body.domains.emplace_back();
    if (power != document.accelerator_power[std::max(0, domain.parent)]) one.accelerator_w = power.value();
    one.name = domain.name;
    if (domain.parent >= 0) one.parent = site.domains[domain.parent].name;
    one.constant_w = domain.constant.value();
    one.limits_unread = domain.limits_unread;
    if (domain.window) one.window_s = domain.window->value();
    one.ramp_down_w_per_s = domain.ramp.down_w_per_s;
    one.ramp_up_w_per_s = domain.ramp.up_w_per_s;
    for (const model::LimitStep& step : domain.limits) {
      LimitBody& limit = one.limits.emplace_back();
      limit.from_s = step.from.value();
      if (step.limit != model::kNoLimit) limit.limit_w = step.limit.value();
    }
  }
  for (const HostRule& rule : document.hosts) {
    body.hosts.push_back({rule.host, rule.prefix, site.domains[rule.domain].name});
  }
  for (const TeamTier& team : document.teams) {
    const std::string domain = team.domain == 0 ? "" : site.domains[team.domain].name;
    body.teams.push_back({team.name, domain, team.least_rate, team.priority});
  }
  return body;
}

/// An exact name comes first, then the longest prefix; -1: no rule applies.
int domain_of_host(const SiteDocument& document, const std::string& host) {
  const HostRule* best = nullptr;
  for (const HostRule& rule : document.hosts) {
    if (!rule.host.empty() && rule.host == host) return rule.domain;
    const bool begins = !rule.prefix.empty() && host.starts_with(rule.prefix);
    if (begins && (best == nullptr || best->prefix.size() < rule.prefix.size())) best = &rule;
  }
  return best == nullptr ? -1 : best->domain;
}

/// The innermost domain around both. Parents come before their children.
int around(const SiteDocument& document, int a, int b) {
  while (a != b) {
    int& inner = a > b ? a : b;
    inner = document.site.domains[inner].parent;
  }
  return a;
}

/// `domain`: around the hosts before this one; -1: no rule applies to them. A host without a rule takes nothing out of
/// the domain of the others.
int around_host(const SiteDocument& document, int domain, const std::string& host) {
  const int own = domain_of_host(document, host);
  if (own < 0) return domain;
  return domain < 0 ? own : around(document, domain, own);
}

/// -1: there is none of that name.
int domain_named(const SiteDocument& document, const std::string& name) {
  const auto found = std::ranges::find(document.site.domains, name, &model::DescribedDomain::name);
  return found == document.site.domains.end() ? -1 : static_cast<int>(found - document.site.domains.begin());
}

}  // namespace

Result<SiteDocument> parse_site_document(std::string_view text, const std::string& name) {
  const auto body = parse_json_as<SiteBody>(text, name);
  if (!body) return body.error();
  return Reader(*body).read();
}

std::string format_site_document(const SiteDocument& document) { return json_text(body_of(document)); }

std::string site_tag(std::string_view text) { return '"' + formats::sha256(text).substr(0, 32) + '"'; }

int domain_of(const SiteDocument& document, const std::string& name, const std::vector<std::string>& hosts) {
  if (const int named = domain_named(document, name); named >= 0) return named;
  int domain = -1;
  for (const std::string& host : hosts) domain = around_host(document, domain, host);
  return std::max(0, domain);
}

namespace {

/// Around the hosts of its ranks; -1: no rule applies to them.
int domain_of_hosts(const SiteDocument& document, const Job& job) {
  int domain = -1;
  std::string last;
  for (const RankSlot& rank : job.ranks) {
    if (!rank || rank->host.empty() || rank->host == last) continue;
    last = rank->host;
    domain = around_host(document, domain, last);
  }
  return domain;
}

}  // namespace

Status check_domain(const SiteDocument& document, std::string_view name) {
  if (name.empty() || document.site.has(name)) return Ok{};
  constexpr std::size_t most = 20;
  std::vector<std::string> names;
  for (const model::DescribedDomain& domain : document.site.domains) {
    if (names.size() == most) {
      names.emplace_back("...");
      break;
    }
    names.push_back(domain.name);
  }
  return Error{ErrorCode::usage, fmt::format("body: domain: '{}'; allowed: {}", name, fmt::join(names, ", "))};
}

TierHere tier_of(const SiteDocument& document, const Job& job) {
  const Tier &asked = job.spec.tier, &set = job.operator_tier;
  const bool bounded = job.spec.tier_bounded;
  TierHere tier;
  const auto add_reason = [&tier](const std::string& more) { tier.reason += (tier.reason.empty() ? "" : "; ") + more; };

  const std::string& wanted_domain = set.domain.empty() ? asked.domain : set.domain;
  const int named = domain_named(document, wanted_domain);
  const auto team_name = job.spec.facts.find(std::string(kTeamFact));
  const TeamTier* const team = team_name == job.spec.facts.end() ? nullptr : team_of(document, team_name->second);
  const int hosts = named < 0 || (bounded && set.domain.empty()) ? domain_of_hosts(document, job) : -1;
  tier.domain = hosts >= 0 ? hosts : std::max(0, named);
  const int bound = team != nullptr && bounded && set.domain.empty() ? team->domain : 0;
  if (named < 0 && !wanted_domain.empty()) {
    add_reason(fmt::format("the site has no domain '{}': it is in that of its hosts", wanted_domain));
  } else if (named >= 0 && named != tier.domain) {
    add_reason(fmt::format("domain '{}' asked for: its hosts are in '{}'", wanted_domain,
                           document.site.domains[tier.domain].name));
  }
  if (around(document, tier.domain, bound) != bound) {
    if (named >= 0 || hosts >= 0) {
      add_reason(fmt::format("jobs of its team count in '{}'", document.site.domains[bound].name));
    }
    tier.domain = bound;
  }

  const auto within = [&](const char* what, const std::optional<double>& wanted, double given) {
    if (!wanted || !bounded || *wanted <= given) return wanted.value_or(given);
    add_reason(fmt::format("{} {} asked for; allowed to its team: at most {}", what, *wanted, given));
    return given;
  };
  const auto given_least = team == nullptr ? std::nullopt : team->least_rate;
  const auto given_priority = team == nullptr ? std::nullopt : team->priority;
  tier.least_rate = set.least_rate ? *set.least_rate
                                   : within("least_rate", asked.least_rate, given_least.value_or(document.least_rate));
  tier.priority = set.priority ? *set.priority : within("priority", asked.priority, given_priority.value_or(1));
  return tier;
}

}  // namespace perseus::jobs
