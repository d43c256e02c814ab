#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "remote/server_action.h"
#include "remote/server_call.h"
#include "site/site_actions.h"

namespace perseus::cli {
namespace {

ListForm proof_form() {
  using Use = ListColumn::Use;
  return {"entries",
          {{"START", "start_s"},
           {"DOMAIN", "domain"},
           {"METERED LIMIT", "metered_limit_w"},
           {"METERED", "metered_w", Use::roomy},
           {"METERED BASELINE", "metered_baseline_w", Use::wide},
           {"LIMIT", "limit_w"},
           {"BASELINE", "baseline_w"},
           {"PLANNED", "planned_w", Use::roomy},
           {"COUNTED", "counted_w", Use::table, ListColumn::Kind::bounded, "limit_w"},
           {"REPORTED", "reported_w", Use::roomy},
           {"PLANNED OF REPORTING", "planned_of_reporting_w", Use::wide},
           {"MISSING", "missing_w", Use::roomy},
           {"OVER", "over_s", Use::roomy},
           {"RATE LOST", "rate_lost", Use::roomy},
           {"READINGS", "readings", Use::wide, ListColumn::Kind::count}},
          2};
}

ListForm forecast_form() {
  using Use = ListColumn::Use;
  return {"entries",
          {{"START", "start_s"},
           {"DOMAIN", "domain"},
           {"METERED LIMIT", "metered_limit_w"},
           {"LIMIT", "limit_w"},
           {"GUARD", "guard_w", Use::some},
           {"EXPECTED", "expected_w"},
           {"MISSING", "missing_w"},
           {"RATE LOST", "rate_lost"},
           {"PRICE", "price_pct_per_kw", Use::roomy}},
          2};
}

void add_proof(CLI::App& group, Command& command) {
  struct Wanted : ListedTimes {
    std::string domain;
    std::optional<double> until_s;
  };
  auto wanted = std::make_shared<Wanted>();
  auto* proof =
      add_list_action(group, command, "proof", "Show limits, baseline, plans and measured power over time, by domain",
                      proof_form(), [wanted](const http::HttpPeer& peer) {
                        std::string target = "/v1/site/proof?step=" + wanted->step;
                        if (!wanted->domain.empty()) { target += "&domain=" + http::percent_encode(wanted->domain); }
                        if (wanted->until_s) target += fmt::format("&until={:.0f}", *wanted->until_s);
                        return pages_in_time(peer, target, wanted->from_s, "entries");
                      });
  add_listed_times(*proof, *wanted);
  add_value(*proof, "--domain NAME", wanted->domain, "Only this domain");
  add_value(*proof, "--until S", wanted->until_s, "End, in seconds since 1970 (default: now)",
            number_within(0, kLatest_s, "s"));
}

void add_forecast(CLI::App& group, Command& command) {
  struct Wanted {
    double hours = 24;
    std::string domain;
  };
  auto wanted = std::make_shared<Wanted>();
  auto* forecast =
      add_list_action(group, command, "forecast", "Show what the announced limits will mean for the jobs of now",
                      forecast_form(), [wanted](const http::HttpPeer& peer) {
                        std::string target = fmt::format("/v1/site/forecast?hours={}", wanted->hours);
                        if (!wanted->domain.empty()) { target += "&domain=" + http::percent_encode(wanted->domain); }
                        return call_server(peer, {"GET", target, ""});
                      });
  add_default(*forecast, "--hours H", wanted->hours, "How far ahead", number_within(0.1, 168, "h"));
  add_value(*forecast, "--domain NAME", wanted->domain, "Only this domain");
}

}  // namespace

void add_site_reports(CLI::App& group, Command& command) {
  add_proof(group, command);
  add_forecast(group, command);
}

}  // namespace perseus::cli
