#include "tests/server/scenario/scenario_site.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include "base/json_writer.h"
#include "io/formats/json_reader.h"
#include "io/formats/number.h"
#include "server/jobs/site_body.h"

namespace perseus::testing {
namespace {

struct Reading {
  std::string domain;
  std::optional<double> at_s, power_w;
};
void describe(auto& f, const Reading& reading) {
  f.always("domain", reading.domain);
  f("power_w", reading.power_w);
  f("at_s", reading.at_s);
}

Result<std::vector<jobs::LimitBody>> limits_of(const std::string& text, double start_s) {
  std::vector<jobs::LimitBody> steps;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t colon = part.find(':');
    const bool timed = colon != std::string::npos;
    const auto from = timed ? formats::number_in<double>(std::string_view(part).substr(0, colon)) : std::optional(0.0);
    const std::string watts = timed ? part.substr(colon + 1) : part;
    const auto limit = formats::number_in<double>(watts);
    if (!from || (!limit && watts != "none")) return wrong_step(fmt::format("limits: {}", part));
    steps.push_back({*from > 0 ? start_s + *from : 0, limit ? std::optional(*limit) : std::nullopt});
  }
  return steps;
}

bool is_true(formats::JsonFields& fields, std::string_view member) {
  const auto value = fields.optional(member);
  const auto flag = value ? value->boolean() : Result<bool>(false);
  return flag && *flag;
}

}  // namespace

Result<std::string> site_document(const ScenarioStep& step, double start_s) {
  static const std::map<std::string_view, std::optional<double> jobs::DomainBody::*> of_domains{
      {"window", &jobs::DomainBody::window_s}, {"accelerator_w", &jobs::DomainBody::accelerator_w}};
  jobs::SiteBody site;
  for (const auto& [name, relation, value] : step.options) {
    const std::size_t dot = name.find('.');
    const std::string kind = name.substr(0, dot), of = dot == std::string::npos ? "" : name.substr(dot + 1);
    const auto domain = std::ranges::find(site.domains, of, &jobs::DomainBody::name);
    const double number = formats::number_in<double>(value).value_or(0);
    if (of.empty() && kind == "lease") {
      site.lease_s = number;
    } else if (of.empty() && kind == "dwell") {
      site.dwell_s = number;
    } else if (of.empty() && kind == "pacing") {
      site.pacing = value == "yes";
    } else if (of.empty() && kind == "pue") {
      site.pue = number;
    } else if (of.empty() && kind == "least_rate") {
      site.least_rate = number;
    } else if (of.empty() && kind == "accelerator_w") {
      site.accelerator_w = number;
    } else if (of.empty() && kind == "admission_s") {
      site.admission_s = number;
    } else if (of.empty()) {
      const auto limits = limits_of(value, start_s);
      if (!limits) return limits.error();
      site.domains.emplace_back().name = name;
      site.domains.back().limits = *limits;
    } else if (kind == "host" || kind == "prefix") {
      site.hosts.push_back({kind == "host" ? of : "", kind == "host" ? "" : of, value});
    } else if (domain == site.domains.end()) {
      return wrong_step(fmt::format("{}: no domain '{}' before it", name, of));
    } else if (kind == "parent") {
      domain->parent = value;
    } else if (kind == "constant") {
      domain->constant_w = number;
    } else if (const auto member = of_domains.find(kind); member != of_domains.end()) {
      (*domain).*(member->second) = number;
    } else {
      return wrong_step(fmt::format("site: no option '{}'", name));
    }
  }
  return json_text(site);
}

Result<std::string> meter_readings(const ScenarioStep& step, double start_s) {
  std::optional<double> at_s;
  if (step.find("at")) at_s = start_s + step.number("at", 0);
  std::vector<Reading> readings;
  for (const ScenarioStep::Option& option : step.options) {
    if (option.name != "at") readings.push_back({option.name, at_s, formats::number_in<double>(option.value)});
  }
  return json_object([&](JsonWriter& f) { f.always("readings", readings); });
}

AdmissionStep admission_step(const ScenarioStep& step, const std::map<std::string, std::string>& job_ids) {
  AdmissionStep admission;
  admission.expected.words = step.words;
  admission.request = json_object([&](JsonWriter& f) {
    f.always("job", step.words.size() > 1 ? step.words[1] : "");
    for (const ScenarioStep::Option& option : step.options) {
      const std::string& name = option.name;
      if (name == "domain" || name == "profile" || name == "team") {
        f.always(name, option.value);
      } else if (name == "like_job") {
        const auto known = job_ids.find(option.value);
        f.always(name, known == job_ids.end() ? option.value : known->second);
      } else if (name == "hosts") {
        std::vector<std::string> hosts;
        std::stringstream parts(option.value);
        for (std::string host; std::getline(parts, host, ',');) hosts.push_back(host);
        f.always(name, hosts);
      } else if (name == "accelerators" || name == "accelerator_w" || name == "least_rate") {
        f.always(name, JsonRaw{option.value});
      } else if (name == "dry_run") {
        f.always(name, option.value == "yes");
      } else {
        admission.expected.options.push_back(option);
      }
    }
  });
  return admission;
}

Result<ScenarioFacts> admission_facts(const std::string& answer, double start_s) {
  const auto document = formats::parse_json(answer, "answer");
  if (!document) return document.error();
  formats::JsonFields fields(document->root());
  ScenarioFacts facts;
  facts.texts["state"] = std::string(fields.string("state"));
  facts.texts["in"] = std::string(fields.string("domain"));
  facts.texts["ready"] = is_true(fields, "ready") ? "yes" : "no";
  facts.texts["reserved"] = fields.optional("expires_s") ? "yes" : "no";
  facts.texts["missing_in"] = "";
  facts.numbers["power_w"] = fields.number("power_w");
  facts.numbers["replaced_w"] = fields.optional("replaced_w") ? fields.number("replaced_w") : 0;
  for (const char* const time : {"expires", "from", "short_from"}) {
    const std::string member = std::string(time) + "_s";
    facts.numbers[time] = fields.optional(member) ? fields.number(member) - start_s : -1;
  }
  facts.numbers["missing_w"] = 0;
  if (fields.optional("missing")) {
    const Status read = fields.value("missing").for_each([&](const formats::JsonReader& entry) -> Status {
      formats::JsonFields one(entry);
      std::string& domains = facts.texts["missing_in"];
      domains += (domains.empty() ? "" : ",") + std::string(one.string("domain"));
      facts.numbers["missing_w"] += one.number("missing_w");
      return one.error() ? Status(*one.error()) : Status(Ok{});
    });
    if (!read) return read.error();
  }
  if (fields.error()) return *fields.error();
  return facts;
}

Result<ScenarioFacts> power_facts(const std::string& view, const std::string& name) {
  const auto document = formats::parse_json(view, "answer");
  if (!document) return document.error();
  formats::JsonFields root(document->root());
  std::optional<ScenarioFacts> facts;
  std::string key = "name";
  const auto look = [&](const formats::JsonReader& entry) -> Status {
    formats::JsonFields fields(entry);
    if (facts || !fields.optional(key) || fields.string(key) != name) return Ok{};
    facts.emplace();
    for (const char* const number :
         {"metered_limit_w", "limit_w", "granted_w", "counted_w", "reported_w", "missing_w", "price", "least_rate",
          "correction", "metered_w", "meter_factor", "reserved_w", "power_w", "guard_w", "falls_to_w"}) {
      facts->numbers[number] = fields.optional(number) ? fields.number(number) : 0;
    }
    for (const char* const text : {"domain", "state", "reason", "parent"}) {
      facts->texts[text] = fields.optional(text) ? std::string(fields.string(text)) : "";
    }
    facts->texts["ready"] = is_true(fields, "ready") ? "yes" : "no";
    facts->texts["over"] = is_true(fields, "over") ? "yes" : "no";
    facts->texts["granted"] = fields.optional("granted_w") ? "yes" : "no";
    return fields.error() ? Status(*fields.error()) : Status(Ok{});
  };
  for (const char* const list : {"domains", "jobs"}) {
    if (Status read = root.value(list).for_each(look); !read) return read.error();
  }
  key = "job";
  if (root.optional("reservations")) {
    if (Status read = root.value("reservations").for_each(look); !read) return read.error();
  }
  if (!facts) return wrong_step(fmt::format("no domain, job or reservation '{}' in {}", name, view));
  return *facts;
}

}  // namespace perseus::testing
