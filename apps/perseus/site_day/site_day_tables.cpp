#include "site_day/site_day_tables.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <cmath>

namespace perseus::cli {
namespace json = boost::json;
namespace {

struct OfDomain {
  const EmulatedDay& method;
  std::size_t slot;
};
struct OfBand {
  const EmulatedDay& method;
  const site_emulator::BandFigures& band;
};

std::string kilowatts_cell(double power_w) { return kilowatts(Watts(power_w)); }

}  // namespace

std::string kilowatts(Watts power) {
  return std::isfinite(power.value()) ? fmt::format("{:.1f}", power.value() / 1e3) : "none";
}

const std::string& name_of_domain(const SiteDayReport& report, const site_emulator::DomainPower& domain) {
  return report.day->timed.site.domains[domain.domain].name;
}

Table methods_of(const SiteDayReport& report, bool whole) {
  using Day = const EmulatedDay&;
  const auto during = [](Day m) {
    std::string text;
    for (const double part : m.figures.during) text += fmt::format("{}{:.2f} %", text.empty() ? "" : ", ", 100 * part);
    return text.empty() ? "-" : text;
  };
  const auto part = [=](auto of) {
    return [=](Day m) { return whole ? std::optional(json::value(of(m))) : std::nullopt; };
  };
  return table_of<EmulatedDay>(
      report.methods,
      {{"name", [](Day m) { return m.run.method; }, "method"},
       {"throughput", [](Day m) { return m.figures.throughput; }, "throughput", "{:.2f} %", 0.01},
       {"during", during, "in events", {}, 1, false},
       {"slowest_rate", [](Day m) { return m.figures.slowest; }, "slowest job", "{:.2f} %", 0.01},
       {"mean", [&](Day m) { return m.figures.energy / report.day->timed.end; }, "mean kW", kilowatts_cell, 1, false},
       {"energy_j", [](Day m) { return m.figures.energy; }, "MWh", "{:.3f}", 3.6e9},
       {"falls", [](Day m) { return m.run.falls; }, "falls"},
       {"raises", [](Day m) { return m.run.raises; }, "raises"},
       {"corrections", [](Day m) { return m.run.corrections; }},
       {"reaction_guaranteed_s", [](Day m) { return m.figures.guaranteed; }},
       {"reaction_s", [](Day m) { return m.figures.reached; }},
       {"domains", part([&](Day m) {
          return limits_of(report, {&m, 1}).json();
        })},
       {"ramp_deviation", [](Day m) { return m.figures.ramp_deviation; }},
       {"throughput_in_events", [](Day m) { return json::array(m.figures.during.begin(), m.figures.during.end()); }},
       {"band", part([](Day m) {
          return bands_of({&m, 1}).json();
        })},
       {"proof", part([](Day m) { return minutes_of(m.figures.minutes.front()).json(); })}});
}

Table limits_of(const SiteDayReport& report, std::span<const EmulatedDay> methods) {
  using Row = const OfDomain&;
  std::vector<OfDomain> rows;
  for (const EmulatedDay& method : methods) {
    for (std::size_t slot = 0; slot < method.run.domains.size(); ++slot) rows.push_back({method, slot});
  }
  const auto over = [](Row r) -> const site_emulator::OverLimit& { return r.method.figures.over[r.slot]; };
  const auto surprised = [](Row r, Seconds time) {
    return r.slot == 0 && !r.method.run.reactions.empty() ? std::optional(time) : std::nullopt;
  };
  return table_of<OfDomain>(
      rows,
      {{"method", [](Row r) { return r.method.run.method; }, "method", {}, 1, false},
       {"name", [&](Row r) { return name_of_domain(report, r.method.run.domains[r.slot]); }, "domain"},
       {"over_w", [=](Row r) { return over(r).most; }, "kW over", "{:.2f}", 1e3},
       {"over_ws", [=](Row r) { return over(r).watt_seconds; }, "kWs over", "{:.1f}", 1e3},
       {"over_s", [=](Row r) { return over(r).time; }, "s over", "{:g}"},
       {"window_s", [&](Row r) { return report.day->timed.window_of(r.method.run.domains[r.slot].domain); }},
       {"acts", [=](Row r) { return surprised(r, r.method.figures.guaranteed); }, "acts within", "{:.2f} s", 1, false},
       {"follow", [=](Row r) { return surprised(r, r.method.figures.reached); }, "all follow", "{:.2f} s", 1, false},
       {"ramp", [](Row r) { return r.slot == 0 ? r.method.figures.ramp_deviation : std::nullopt; }, "off the ramp",
        "{:.2f} %", 0.01, false}});
}

Table bands_of(std::span<const EmulatedDay> methods) {
  using Row = const OfBand&;
  std::vector<OfBand> rows;
  for (const EmulatedDay& method : methods) {
    for (const site_emulator::BandFigures& band : method.figures.bands) rows.push_back({method, band});
  }
  return table_of<OfBand>(rows,
                          {{"method", [](Row r) { return r.method.run.method; }, "method", {}, 1, false},
                           {"when", [](Row r) { return r.band.name; }, "when"},
                           {"rms_w", [](Row r) { return r.band.rms_w; }, "rms 0.1-20 Hz [kW]", "{:.3f}", 1e3},
                           {"share", [](Row r) { return r.band.share; }, "share of swing [%]", "{:.1f}", 0.01},
                           {"energy_w2s", [](Row r) { return r.band.energy_w2s; }, "energy [kW^2 s]", "{:.4g}", 1e6}});
}

Table minutes_of(const std::vector<site_emulator::Minute>& minutes, std::size_t most) {
  using site_emulator::Minute;
  const std::size_t step = std::max<std::size_t>(1, (minutes.size() + most - 1) / most);
  std::vector<Minute> shown;
  for (std::size_t k = 0; k < minutes.size(); k += step) shown.push_back(minutes[k]);
  const auto limit = [](const Minute& m) {
    return std::isfinite(m.limit.value()) ? json::value(m.limit.value()) : json::value(nullptr);
  };
  return table_of<Minute>(shown,
                          {{"from_s", &Minute::from, "minute", "{:g}", 60},
                           {"limit_w", limit},
                           {"limit", [](const Minute& m) { return kilowatts(m.limit); }, "limit [kW]", {}, 1, false},
                           {"planned_w", &Minute::planned, "planned [kW]", kilowatts_cell},
                           {"guard_w", &Minute::guard, "guard [kW]", kilowatts_cell},
                           {"drawn_w", &Minute::drawn, "drawn [kW]", kilowatts_cell}});
}

}  // namespace perseus::cli
