#include "tests/server/scenario/scenario_site.h"

#include <fmt/format.h>

#include <sstream>
#include <vector>

#include "base/json_writer.h"
#include "io/formats/json_reader.h"
#include "io/formats/number.h"

namespace perseus::testing {
namespace {

struct Step {
  double from_s = 0;
  std::optional<double> limit_w;
};
struct Domain {
  std::string name, parent, constant_w = "0", window_s = {}, accelerator_w = {};
  std::vector<Step> limits;
};

Result<std::vector<Step>> limits_of(const std::string& text, double start_s) {
  std::vector<Step> steps;
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
  std::vector<Domain> domains;
  std::vector<std::pair<std::string, std::string>> hosts, prefixes, numbers;
  for (const ScenarioStep::Option& option : step.options) {
    const auto named = [&](std::string_view kind) { return option.name.starts_with(kind); };
    if (named("host.")) {
      hosts.emplace_back(option.name.substr(5), option.value);
    } else if (named("prefix.")) {
      prefixes.emplace_back(option.name.substr(7), option.value);
    } else if (named("constant.")) {
      for (Domain& domain : domains) {
        if (domain.name == option.name.substr(9)) domain.constant_w = option.value;
      }
    } else if (named("window.")) {
      for (Domain& domain : domains) {
        if (domain.name == option.name.substr(7)) domain.window_s = option.value;
      }
    } else if (named("accelerator_w.")) {
      for (Domain& domain : domains) {
        if (domain.name == option.name.substr(14)) domain.accelerator_w = option.value;
      }
    } else if (named("parent.")) {
      for (Domain& domain : domains) {
        if (domain.name == option.name.substr(7)) domain.parent = option.value;
      }
    } else if (option.name == "lease" || option.name == "dwell") {
      numbers.emplace_back(option.name + "_s", option.value);
    } else if (option.name == "pacing") {
      numbers.emplace_back(option.name, option.value == "yes" ? "true" : "false");
    } else if (option.name == "pue" || option.name == "least_rate" || option.name == "accelerator_w" ||
               option.name == "admission_s") {
      numbers.emplace_back(option.name, option.value);
    } else {
      const auto limits = limits_of(option.value, start_s);
      if (!limits) return limits.error();
      domains.push_back({option.name, "", "0", "", "", *limits});
    }
  }
  return json_object([&](JsonWriter& f) {
    for (const auto& [name, value] : numbers) f.always(name, JsonRaw{value});
    f.always("domains", JsonList{domains, [](const Domain& domain) {
                                   return JsonObject{[&domain](JsonWriter& of) {
                                     of.always("name", domain.name);
                                     of("parent", domain.parent);
                                     of.always("constant_w", JsonRaw{domain.constant_w});
                                     if (!domain.window_s.empty()) of.always("window_s", JsonRaw{domain.window_s});
                                     if (!domain.accelerator_w.empty()) {
                                       of.always("accelerator_w", JsonRaw{domain.accelerator_w});
                                     }
                                     of.always("limits", JsonList{domain.limits, [](const Step& limit) {
                                                                    return JsonObject{[&limit](JsonWriter& at) {
                                                                      at.always("from_s", limit.from_s);
                                                                      at("limit_w", limit.limit_w);
                                                                    }};
                                                                  }});
                                   }};
                                 }});
    std::vector<std::tuple<std::string, std::string, std::string>> rules;
    for (const auto& [name, domain] : hosts) rules.emplace_back("host", name, domain);
    for (const auto& [name, domain] : prefixes) rules.emplace_back("prefix", name, domain);
    f.always("hosts", JsonList{rules, [](const auto& rule) {
                                 return JsonObject{[&rule](JsonWriter& of) {
                                   of.always(std::get<0>(rule), std::get<1>(rule));
                                   of.always("domain", std::get<2>(rule));
                                 }};
                               }});
  });
}

Result<std::string> meter_readings(const ScenarioStep& step, double start_s) {
  std::optional<double> at_s;
  if (step.find("at")) at_s = start_s + step.number("at", 0);
  std::vector<std::pair<std::string, std::string>> readings;
  for (const ScenarioStep::Option& option : step.options) {
    if (option.name != "at") readings.emplace_back(option.name, option.value);
  }
  return json_object([&](JsonWriter& f) {
    f.always("readings", JsonList{readings, [&at_s](const auto& reading) {
                                    return JsonObject{[&reading, &at_s](JsonWriter& of) {
                                      of.always("domain", reading.first);
                                      of.always("power_w", JsonRaw{reading.second});
                                      of("at_s", at_s);
                                    }};
                                  }});
  });
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
