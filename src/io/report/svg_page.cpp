#include "io/report/svg_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io/report/format.h"
#include "io/report/series_look.h"

namespace perseus::report {
namespace {

std::string power_classes(Theme theme) {
  std::string css;
  for (int k = 0; k < kSvgPowerClasses; ++k) {
    const Rgb color = power_color(static_cast<double>(k) / (kSvgPowerClasses - 1), theme);
    const bool dark_bar = 0.299 * color.red + 0.587 * color.green + 0.114 * color.blue < 140;
    css += fmt::format(".p{0}{{fill:{1};stroke:{1}}}.t{0}{{fill:{2}}}", k, color.hex(), dark_bar ? "#fff" : "#000");
  }
  return css;
}

/// Far apart in hue and lightness; markers and dashes distinguish series as well. The last is the text's color.
std::string series_classes(Theme theme) {
  constexpr std::array<std::array<std::string_view, 2>, kSvgSeriesClasses> colors{{{"#0b6bcb", "#5fb0ff"},
                                                                                   {"#a21caf", "#e879f9"},
                                                                                   {"#ca8a04", "#facc15"},
                                                                                   {"#334155", "#cbd5e1"},
                                                                                   {"#0891b2", "#67e8f9"},
                                                                                   {"#c2410c", "#fb923c"},
                                                                                   {"#15803d", "#4ade80"},
                                                                                   {"#1b2230", "#e7ebf2"}}};
  std::string css;
  for (int k = 0; k < kSvgSeriesClasses; ++k) {
    css += fmt::format(".q{0}{{stroke:{1};fill:{1}}}", k, colors[k][theme == Theme::dark ? 1 : 0]);
  }
  return css;
}

std::string style_sheet() {
  return "<style>text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif}"
         ".b{stroke:none}.s{font-size:10.5px}.h{font-size:16px;font-weight:600}.n{fill:none}"
         ".bg{fill:#fff}.fg{fill:#1b2230}.dim{fill:#5b6474}.grid{stroke:#e1e5eb}.wait{fill:#eef1f5}"
         ".critical{stroke:#00a0bf}.halo{stroke:#fff}.hit{fill:#fff;fill-opacity:0;stroke:none}"
         ".hit:hover{stroke:#5b6474;stroke-width:1.5}text{pointer-events:none}" +
         power_classes(Theme::light) + series_classes(Theme::light) +
         "@media screen and (prefers-color-scheme:dark){.bg{fill:#10141b}.fg{fill:#e7ebf2}.dim{fill:#9aa5b5}"
         ".grid{stroke:#272e39}.wait{fill:#1b212b}.critical{stroke:#35d6ee}.halo{stroke:#10141b}" +
         power_classes(Theme::dark) + series_classes(Theme::dark) +
         "}.qn{fill:none}@media print{svg{max-width:100%;max-height:98vh;height:auto;break-inside:avoid}}</style>\n";
}

}  // namespace

std::string open_svg(double width, double height, std::string_view title, std::string_view description) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" "
      "role=\"img\" aria-labelledby=\"title description\">\n<title id=\"title\">{2}</title>\n"
      "<desc id=\"description\">{3}</desc>\n{4}<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n",
      width, height, escape_markup(title), escape_markup(description), style_sheet());
}

double text_width(std::string_view text) { return 7.4 * static_cast<double>(text.size()); }

std::string svg_box(std::string_view css_class, const SvgBox& box, std::string_view tooltip) {
  const std::string rectangle =
      fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"", css_class, box.x,
                  box.y, std::max(0.0, box.width), std::max(0.0, box.height));
  if (tooltip.empty()) return rectangle + "/>\n";
  return rectangle + fmt::format("><title>{}</title></rect>\n", escape_markup(tooltip));
}

std::string svg_hit_circle(double x, double y, double radius, std::string_view tooltip) {
  return fmt::format("<circle class=\"hit\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\"><title>{}</title></circle>\n", x, y,
                     radius, escape_markup(tooltip));
}

std::string svg_text(double x, double y, std::string_view anchor, std::string_view css_class, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y, anchor,
                     css_class, escape_markup(text));
}

}  // namespace perseus::report
