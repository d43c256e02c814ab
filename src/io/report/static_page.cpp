#include "io/report/static_page.h"

#include <fmt/format.h>

#include "io/report/bundle.h"
#include "io/report/format.h"
#include "io/report/pieces.h"

namespace perseus::report {
namespace {

constexpr std::string_view kStaticPolicy = "default-src 'none'; style-src 'unsafe-inline'";
constexpr std::string_view kOwnStyle =
    "svg{width:100%;height:auto}.table{max-height:none}.table tbody tr{cursor:default}"
    ".table td:first-child,.table th:first-child{text-align:left}main li{overflow-wrap:anywhere}"
    "@media screen{.drawing{overflow-x:auto}}@media screen and (max-width:640px){.drawing "
    "svg{width:auto;min-width:760px;max-width:none}}";

/// A part that scrolls where it is wider than the page; it takes the focus, so that arrow keys scroll it too.
std::string scroller(std::string_view css_class, std::string_view name) {
  return fmt::format("<div class=\"{}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">", css_class,
                     escape_markup(name));
}

std::string table(const TextRows& rows, std::string_view name) {
  std::string html = scroller("table", name) + "<table>\n<thead><tr>";
  for (const std::string& cell : rows.header) html += fmt::format("<th scope=\"col\">{}</th>", escape_markup(cell));
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : rows.rows) {
    html += "<tr>";
    for (const std::string& cell : row) html += fmt::format("<td>{}</td>", escape_markup(cell));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string list(const std::vector<ReportFact>& items) {
  std::string html = "<ul>\n";
  for (const ReportFact& item : items)
    html += fmt::format("<li><b>{}</b>: {}</li>\n", escape_markup(item.name), escape_markup(item.value));
  return html + "</ul>\n";
}

void replace_once(std::string& text, std::string_view from, const std::string& to) {
  if (const std::size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
}

/// The ids of open_svg(), which must be unique on a page: the first drawing keeps them.
std::string with_own_ids(std::string svg, int number) {
  if (number == 1) return svg;
  replace_once(svg, "aria-labelledby=\"title description\"",
               fmt::format("aria-labelledby=\"title-{0} description-{0}\"", number));
  replace_once(svg, "id=\"title\"", fmt::format("id=\"title-{}\"", number));
  replace_once(svg, "id=\"description\"", fmt::format("id=\"description-{}\"", number));
  return svg;
}

}  // namespace

void write_static_page(const StaticPage& page, const Sink& sink) {
  Pieces out(sink);
  out << fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{} - {}</title>\n<style>",
      kStaticPolicy, escape_markup(page.title), escape_markup(page.kicker));
  out << report_style() << kOwnStyle;
  out << fmt::format("</style>\n</head>\n<body>\n<header>\n<p class=\"kicker\">{}</p>\n<h1>{}</h1>\n",
                     escape_markup(page.kicker), escape_markup(page.title));
  if (!page.facts.empty()) {
    out << "<ul class=\"inputs\">\n";
    for (const ReportFact& fact : page.facts) out << fact_line(fact);
    out << "</ul>\n";
  }
  out << "</header>\n<main>\n";
  int drawings = 0;
  for (const PageSection& section : page.sections) {
    out << "<section>";
    if (!section.heading.empty()) out << fmt::format("<h2>{}</h2>\n", escape_markup(section.heading));
    for (const std::string& drawing : section.drawings) {
      ++drawings;
      out << scroller("drawing", fmt::format("Drawing {}", drawings)) << with_own_ids(drawing, drawings) << "</div>\n";
    }
    if (!section.list.empty()) out << list(section.list);
    if (!section.table.header.empty())
      out << table(section.table, "Table: " + (section.heading.empty() ? page.title : section.heading));
    if (!section.note.empty()) out << fmt::format("<p class=\"note\">{}</p>", escape_markup(section.note));
    out << "</section>\n";
  }
  out << "</main>\n</body>\n</html>\n";
}

}  // namespace perseus::report
