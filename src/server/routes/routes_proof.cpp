// Calls of /v1/site about the past and the coming hours: the proof for the utility, and the forecast.
#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/power/site_forecast.h"
#include "server/power/site_history.h"
#include "server/power/site_speed.h"
#include "server/routes/api.h"
#include "server/routes/call_input.h"

namespace perseus::routes {
namespace {

/// Calls `visit` with the name of each power and the power.
template <class Visit>
void for_each_power(const power::SiteProofEntry& entry, Visit visit) {
  const store::SiteFigures& sums = entry.sums;
  const auto all = [&](double sum) { return std::optional(entry.of_all(sum)); };
  visit("metered_limit_w", entry.metered_limit());
  visit("limit_w", entry.limit());
  visit("metered_baseline_w", all(sums.metered_baseline_w));
  visit("baseline_w", all(sums.baseline_w));
  visit("planned_w", all(sums.planned_w));
  visit("counted_w", all(sums.counted_w));
  visit("reported_w", all(sums.reported_w));
  visit("planned_of_reporting_w", all(sums.planned_of_reporting_w));
  visit("metered_w", entry.metered());
  visit("missing_w", all(sums.missing_w));
}

double over_s(const power::SiteProofEntry& entry) {
  return static_cast<double>(entry.sums.over) * power::SiteHistory::kReading_s;
}

double lost(const store::SiteTierSums& tier) { return tier.accelerators > 0 ? tier.lost / tier.accelerators : 0; }

/// Mean over the accelerators of all tiers; nothing: no job has a known rate.
std::optional<double> rate_lost(const store::SiteFigures& sums) {
  store::SiteTierSums all;
  for (const auto& [least_rate, tier] : sums.tiers) {
    all.accelerators += tier.accelerators;
    all.lost += tier.lost;
  }
  return sums.tiers.empty() ? std::nullopt : std::optional(lost(all));
}

/// A name of a domain as a field.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string field = "\"";
  for (const char letter : text) field.append(letter == '"' ? 2 : 1, letter);
  return field + '"';
}

std::string site_proof_json(const power::SiteProof& proof) {
  const auto tier_members = [](const auto& tier) {
    return JsonObject{[&tier](JsonWriter& f) {
      f.always("least_rate", tier.first);
      f.always("rate_lost", lost(tier.second));
    }};
  };
  const auto entry_members = [&](const power::SiteProofEntry& entry) {
    return JsonObject{[&entry, &tier_members](JsonWriter& f) {
      f.always("start_s", entry.start_s);
      f.always("domain", entry.domain);
      f.always("readings", entry.sums.readings);
      for_each_power(entry, [&f](const char* name, const std::optional<Watts>& power) {
        if (power) f.always(name, *power);
      });
      f("over_s", over_s(entry));
      if (const auto mean = rate_lost(entry.sums)) f.always("rate_lost", *mean);
      f("tiers", JsonList{entry.sums.tiers, tier_members});
    }};
  };
  return json_object([&](JsonWriter& f) {
    f.always("step_s", proof.step_s);
    f.always("entries", JsonList{proof.entries, entry_members});
    f("next_s", proof.next_s);
  });
}

std::string site_proof_csv(const power::SiteProof& proof) {
  std::set<double> tiers;
  for (const power::SiteProofEntry& entry : proof.entries) {
    for (const auto& [least_rate, sums] : entry.sums.tiers) tiers.insert(least_rate);
  }
  std::string text = "start_s,step_s,domain,readings";
  for_each_power({0, "", {}}, [&](const char* name, const auto&) { text.append(",").append(name); });
  text += ",over_s,rate_lost";
  for (const double least_rate : tiers) fmt::format_to(std::back_inserter(text), ",rate_lost_{}", least_rate);
  text += '\n';
  for (const power::SiteProofEntry& entry : proof.entries) {
    fmt::format_to(std::back_inserter(text), "{},{},{},{}", entry.start_s, proof.step_s, quoted(entry.domain),
                   entry.sums.readings);
    for_each_power(entry, [&](const char*, const std::optional<Watts>& power) {
      text += ',';
      if (power) append_json_number(text, power->value());
    });
    text += ',';
    append_json_number(text, over_s(entry));
    text += ',';
    if (const auto mean = rate_lost(entry.sums)) append_json_number(text, *mean);
    for (const double least_rate : tiers) {
      text += ',';
      const auto tier = entry.sums.tiers.find(least_rate);
      if (tier != entry.sums.tiers.end()) append_json_number(text, lost(tier->second));
    }
    text += '\n';
  }
  return text;
}

std::string site_forecast_json(const power::SiteForecast& forecast, const std::string& only) {
  struct Entry {
    double start_s;
    const std::string& name;
    const power::ForecastDomain& domain;
  };
  std::vector<Entry> entries;
  for (const power::ForecastStep& step : forecast.steps) {
    for (std::size_t d = 0; d < step.domains.size(); ++d) {
      if (only.empty() || forecast.domains[d] == only) {
        entries.push_back({step.from_s, forecast.domains[d], step.domains[d]});
      }
    }
  }
  const auto tier_members = [](const power::TierLoss& tier) {
    return JsonObject{[&tier](JsonWriter& f) {
      f.always("least_rate", tier.least_rate);
      f.always("jobs", tier.jobs);
      f.always("rate_lost", tier.rate_lost);
    }};
  };
  const auto entry_members = [&](const Entry& entry) {
    return JsonObject{[&entry, &tier_members, &forecast](JsonWriter& f) {
      const power::ForecastDomain& domain = entry.domain;
      f.always("start_s", entry.start_s);
      f.always("domain", entry.name);
      f("metered_limit_w", domain.metered);
      f("limit_w", domain.limit);
      if (domain.guard) f.always("guard_w", *domain.guard);
      f.always("expected_w", domain.expected);
      f("missing_w", domain.missing);
      f("price", domain.price);
      f("price_pct_per_kw", power::price_pct_per_kw(forecast.objective, domain.price, forecast.weight));
      if (!domain.tiers.empty()) f.always("rate_lost", power::rate_lost_of(domain.tiers));
      f("tiers", JsonList{domain.tiers, tier_members});
    }};
  };
  return json_object([&](JsonWriter& f) {
    f.always("now_s", forecast.now_s);
    f.always("until_s", forecast.until_s);
    f.always("entries", JsonList{entries, entry_members});
    f("cut", forecast.cut);
  });
}

constexpr std::size_t kMostEntries = 10'000;
constexpr std::string_view kHours = "hours from 0.1 to 168";

struct ProofCall {
  power::SiteProofQuery query;
  bool csv = false;
};

/// A client that names CSV and not JSON.
bool wants_csv(const http::HttpRequest& request) {
  const auto accepted = request.header("Accept");
  return accepted && accepted->find("text/csv") != std::string_view::npos &&
         accepted->find("application/json") == std::string_view::npos;
}

Result<ProofCall> proof_call(const http::HttpRequest& request, double now_s) {
  Parameters parameters(request);
  ProofCall call;
  call.query.domain = parameters.text("domain").value_or("");
  const auto format = parameters.text("format");
  const auto range = time_range(parameters, "until", kMostEntries, now_s);
  if (!range) return range.error();
  if (format && *format != "csv" && *format != "json") return wrong_parameter("format", *format, "csv or json");
  call.csv = format ? *format == "csv" : wants_csv(request);
  call.query.step_s = range->step_s;
  call.query.from_s = range->from_s;
  call.query.until_s = range->until_s;
  call.query.limit = range->limit;
  return call;
}

}  // namespace

void Api::site_proof(Call call) {
  const auto asked = proof_call(call.request, clock_.now_s());
  if (!asked) return call.fail(asked.error());
  service_.site_history.proof(asked->query, [this, call, query = asked->query,
                                             csv = asked->csv](const Result<power::SiteProof>& proof) {
    if (!proof) return call.fail(proof.error());
    if (proof->entries.empty() && !query.domain.empty() && !service_.site.documents().has(query.domain)) {
      return call.fail(wrong_parameter("domain", query.domain, "a domain of the site, or of its history at that time"));
    }
    http::HttpResponse response = http::json_response(200, csv ? site_proof_csv(*proof) : site_proof_json(*proof));
    response.headers.emplace_back("Vary", "Accept");
    if (csv) {
      response.content_type = "text/csv; charset=utf-8";
      response.headers.emplace_back("Content-Disposition", "attachment; filename=\"site_proof.csv\"");
      if (proof->next_s) { response.headers.emplace_back("Perseus-Next", std::to_string(*proof->next_s)); }
    }
    call.send(std::move(response));
  });
}

void Api::site_forecast(Call call) {
  Parameters parameters(call.request);
  const auto hours = parameters.take<double>("hours", kHours).value_or(24);
  const std::string domain = parameters.text("domain").value_or("");
  if (const auto error = parameters.error()) return call.fail(*error);
  if (!(hours >= 0.1 && hours <= 168)) return call.fail(wrong_parameter("hours", fmt::format("{}", hours), kHours));
  if (!domain.empty() && service_.site.documents().current() != nullptr && !service_.site.documents().has(domain)) {
    return call.fail(wrong_parameter("domain", domain, "a domain of the site"));
  }
  service_.forecasts.forecast(hours, then<power::SiteForecast>(call, [domain](const power::SiteForecast& forecast) {
                                return site_forecast_json(forecast, domain);
                              }));
}

}  // namespace perseus::routes
