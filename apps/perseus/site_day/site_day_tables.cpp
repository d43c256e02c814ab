#include "site_day/site_day_tables.h"

#include <fmt/format.h>

#include <cmath>

namespace perseus::cli {
namespace {

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

}  // namespace

std::string kilowatts(Watts power) {
  return std::isfinite(power.value()) ? fmt::format("{:.1f}", power.value() / 1e3) : "none";
}

report::TextRows day_rows(const SiteDayReport& report) {
  report::TextRows rows{{"method", "throughput", "in events", "slowest job", "mean kW", "MWh", "falls", "raises"}, {}};
  for (const EmulatedDay& method : report.methods) {
    const site_emulator::DayFigures& f = method.figures;
    std::string during;
    for (const double part : f.during) during += (during.empty() ? "" : ", ") + percent(part);
    rows.rows.push_back({method.run.method, percent(f.throughput), during.empty() ? "-" : during, percent(f.slowest),
                         kilowatts(f.energy / report.day->timed.end), fmt::format("{:.3f}", f.energy.value() / 3.6e9),
                         std::to_string(method.run.falls), std::to_string(method.run.raises)});
  }
  return rows;
}

report::TextRows limit_rows(const SiteDayReport& report) {
  report::TextRows rows{
      {"method", "domain", "kW over", "kWs over", "s over", "acts within", "all follow", "off the ramp"}, {}};
  for (const EmulatedDay& method : report.methods) {
    for (std::size_t slot = 0; slot < method.run.domains.size(); ++slot) {
      const site_emulator::OverLimit& over = method.figures.over[slot];
      const bool site = slot == 0, surprised = site && !method.run.reactions.empty();
      const auto& ramp = method.figures.ramp_deviation;
      rows.rows.push_back({method.run.method, report.day->timed.site.domains[method.run.domains[slot].domain].name,
                           fmt::format("{:.2f}", over.most.value() / 1e3),
                           fmt::format("{:.1f}", over.watt_seconds / 1e3), fmt::format("{:g}", over.time.value()),
                           surprised ? fmt::format("{:.2f} s", method.figures.guaranteed.value()) : "-",
                           surprised ? fmt::format("{:.2f} s", method.figures.reached.value()) : "-",
                           site && ramp ? percent(*ramp) : "-"});
    }
  }
  return rows;
}

report::TextRows band_rows(const SiteDayReport& report) {
  report::TextRows rows{{"method", "when", "rms 0.1-20 Hz [kW]", "share of swing [%]", "energy [kW^2 s]"}, {}};
  for (const EmulatedDay& method : report.methods) {
    for (const site_emulator::BandFigures& band : method.figures.bands) {
      rows.rows.push_back({method.run.method, band.name, fmt::format("{:.3f}", band.rms_w / 1e3),
                           fmt::format("{:.1f}", 100 * band.share), fmt::format("{:.4g}", band.energy_w2s / 1e6)});
    }
  }
  return rows;
}

report::TextRows proof_rows(const SiteDayReport& report, std::size_t most) {
  report::TextRows rows{{"minute", "limit [kW]", "planned [kW]", "guard [kW]", "drawn [kW]"}, {}};
  const std::vector<site_emulator::Minute>& minutes = report.methods.front().figures.minutes.front();
  const std::size_t step = std::max<std::size_t>(1, (minutes.size() + most - 1) / most);
  for (std::size_t k = 0; k < minutes.size(); k += step) {
    rows.rows.push_back({fmt::format("{:g}", minutes[k].from.value() / 60), kilowatts(minutes[k].limit),
                         kilowatts(minutes[k].planned), kilowatts(minutes[k].guard), kilowatts(minutes[k].drawn)});
  }
  return rows;
}

}  // namespace perseus::cli
