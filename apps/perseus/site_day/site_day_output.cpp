#include "site_day/site_day_output.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>

#include "command_line/origin.h"
#include "command_line/output_directory.h"
#include "command_line/records.h"
#include "io/formats/boost_json_text.h"
#include "io/formats/csv.h"
#include "io/report/pieces.h"
#include "site_day/site_day_tables.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostProofRows = 24;  // on a terminal

void write_proof(const SiteDayReport& report, const report::Sink& sink) {
  constexpr std::string_view header = "method,domain,from_s,limit_w,planned_w,guard_w,drawn_w";
  sink(fmt::format("{}\n", header));
  for (const EmulatedDay& method : report.methods) {
    for (std::size_t slot = 0; slot < method.run.domains.size(); ++slot) {
      Table minutes = minutes_of(method.figures.minutes[slot]);
      for (json::value& minute : minutes.records) {
        minute.get_object()["method"] = method.run.method;
        minute.get_object()["domain"] = name_of_domain(report, method.run.domains[slot]);
      }
      const std::string text = minutes.csv(header, 9);
      sink(std::string_view(text).substr(text.find('\n') + 1));
    }
  }
}

/// Bins of the whole site, a column per method.
template <class PowerOf>
void write_trace(const SiteDayReport& report, Seconds from, Seconds width, PowerOf power_of, report::Pieces& pieces) {
  for (std::size_t bin = 0; bin < power_of(report.methods.front()).size(); ++bin) {
    std::string line = fmt::format("{:.9g}", from.value() + width.value() * static_cast<double>(bin));
    for (const EmulatedDay& method : report.methods) line += fmt::format(",{:.8g}", power_of(method)[bin]);
    pieces << line + "\n";
  }
}

std::string trace_header(const SiteDayReport& report) {
  std::string header = "from_s";
  for (const EmulatedDay& method : report.methods) header += fmt::format(",{}_w", method.run.method);
  return header + "\n";
}

void write_power(const SiteDayReport& report, const report::Sink& sink) {
  report::Pieces pieces(sink);
  pieces << trace_header(report);
  const auto power_of = [](const EmulatedDay& m) -> const std::vector<double>& {
    return m.run.domains.front().power_w;
  };
  write_trace(report, Seconds(0), report.methods.front().run.bin_width, power_of, pieces);
}

void write_fine_power(const SiteDayReport& report, const report::Sink& sink) {
  report::Pieces pieces(sink);
  pieces << trace_header(report);
  const auto& traces = report.methods.front().run.fine;
  for (std::size_t k = 0; k < traces.size(); ++k) {
    if (traces[k].name.starts_with("surprise") && !traces[k].name.ends_with("holds")) {
      const auto power_of = [k](const EmulatedDay& m) -> const std::vector<double>& { return m.run.fine[k].power_w; };
      write_trace(report, traces[k].from, traces[k].width, power_of, pieces);
    }
  }
}

std::string jobs_csv(const SiteDayReport& report) {
  std::string text = "job,domain,gpus,least_rate";
  for (const EmulatedDay& method : report.methods) text += fmt::format(",{}_rate", method.run.method);
  text += '\n';
  const model::Site& site = report.day->timed.site;
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    text += fmt::format("{},{},{},{}", formats::csv_field(site.jobs[j].name),
                        formats::csv_field(site.domains[site.jobs[j].domain].name), report.planned->gpus[j],
                        site.jobs[j].least_rate);
    for (const EmulatedDay& method : report.methods) text += fmt::format(",{:.9g}", method.run.rate[j]);
    text += '\n';
  }
  return text;
}

OutputDirectory::IsOurs files_of_a_site_day() {
  return one_of({"day.html", "day.json", "proof.csv", "power.csv", "power_events.csv", "jobs.csv"});
}

}  // namespace

std::vector<report::ReportFact> facts_of(const SiteDayReport& report) {
  const model::SiteDescription& d = *report.description;
  long gpus = 0;
  for (const int n : report.planned->gpus) gpus += n;
  Watts all_max;
  for (const model::SiteJob& job : report.day->timed.site.jobs) all_max += job.all_max;
  std::vector<report::ReportFact> facts{
      {"site", fmt::format("{}, {} domains, {:g} h", d.name, d.domains.size(), d.end.value() / 3600)},
      {"jobs",
       fmt::format("{}, {} GPUs, {} kW at maximum clock", report.planned->gpus.size(), gpus, kilowatts(all_max))},
      {"events", fmt::format("{} unannounced", d.events.size())},
      {"grants",
       fmt::format("median {:g} s, at most {:g} s", d.emulation.delay_median.value(), d.emulation.delay_most.value())},
      {"objective", std::string(model::name_of(report.objective))},
      {"seed", std::to_string(d.emulation.seed)}};
  if (d.emulation.bias > 0 || d.emulation.draw_more != 0) {
    facts.push_back({"bias", fmt::format("jobs draw {:g} % more than planned, with a standard deviation of {:g} %",
                                         100 * d.emulation.draw_more, 100 * d.emulation.bias)});
  }
  const site_emulator::Feedback& feedback = report.day->feedback;
  if (feedback.reports || feedback.meter) {
    facts.push_back(
        {"feedback", fmt::format("{}{}{}", feedback.reports ? "reports" : "",
                                 feedback.reports && feedback.meter ? " and " : "", feedback.meter ? "meter" : "")});
  }
  facts.push_back({"kind", "an emulation from profiles, not a measurement of a site"});
  return facts;
}

std::string site_day_text(const SiteDayReport& report) {
  std::string text = lines_of(facts_of(report)) + "\n" + report::text_of(methods_of(report).text()) + "\n";
  if (!report.methods.front().run.domains.empty())
    text += report::text_of(limits_of(report, report.methods).text()) + "\n";
  text += report::text_of(bands_of(report.methods).text());
  text += "\nThe site under the first method, some minutes:\n" +
          report::text_of(minutes_of(report.methods.front().figures.minutes.front(), kMostProofRows).text());
  return text;
}

json::object site_day_json(const SiteDayReport& report) {
  json::object answer{{"name", report.description->name}, {"inputs", object_of(facts_of(report))}};
  answer["methods"] = methods_of(report, true).json();
  answer["origin"] = origin_json();
  return answer;
}

Status check_site_day(const std::string& directory) { return check_output(directory, files_of_a_site_day()); }

Status write_site_day(const std::string& directory, const SiteDayReport& report) {
  return write_output(directory, files_of_a_site_day(),
                      {{"jobs.csv", jobs_csv(report)},
                       {"proof.csv", [&](const report::Sink& sink) { write_proof(report, sink); }},
                       {"power.csv", [&](const report::Sink& sink) { write_power(report, sink); }},
                       {"power_events.csv", [&](const report::Sink& sink) { write_fine_power(report, sink); }},
                       {"day.json", formats::json_text(site_day_json(report)) + "\n"},
                       {"day.html", [&](const report::Sink& sink) { write_site_day_page(report, sink); }}});
}

}  // namespace perseus::cli
