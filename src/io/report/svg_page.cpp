#include "io/report/svg_page.h"

#include <fmt/format.h>

#include <array>

#include "io/report/escape.h"
#include "io/report/power_ramp.h"

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

/// Far apart in hue and lightness; shapes distinguish them as well.
std::string series_classes(Theme theme) {
  constexpr std::array<std::array<std::string_view, 2>, kSvgSeriesClasses> colors{{{"#0b6bcb", "#5fb0ff"},
                                                                                   {"#d97706", "#fbbf24"},
                                                                                   {"#a21caf", "#e879f9"},
                                                                                   {"#15803d", "#4ade80"},
                                                                                   {"#854d0e", "#d6b45a"},
                                                                                   {"#dc2626", "#f87171"},
                                                                                   {"#334155", "#cbd5e1"}}};
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
         ".bound{stroke:#1b2230}.dots{stroke:#0b6bcb}.critical{stroke:#00a0bf}.halo{stroke:#fff}.max{fill:#c2410c}.min{"
         "fill:#15803d}"
         ".straggler{stroke:#9333ea}.straggler-text{fill:#9333ea}" +
         power_classes(Theme::light) + series_classes(Theme::light) +
         "@media(prefers-color-scheme:dark){.bg{fill:#10141b}.fg{fill:#e7ebf2}.dim{fill:#9aa5b5}.grid{stroke:#272e39}"
         ".wait{fill:#1b212b}.bound{stroke:#e7ebf2}.dots{stroke:#5fb0ff}.critical{stroke:#35d6ee}.halo{stroke:#10141b}."
         "max{fill:#fb923c}"
         ".min{fill:#4ade80}.straggler{stroke:#c084fc}.straggler-text{fill:#c084fc}" +
         power_classes(Theme::dark) + series_classes(Theme::dark) + "}.qn{fill:none}</style>\n";
}

}  // namespace

std::string open_svg(double width, double height, std::string_view title, std::string_view description) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" "
      "role=\"img\" aria-labelledby=\"title description\">\n<title id=\"title\">{2}</title>\n"
      "<desc id=\"description\">{3}</desc>\n{4}<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n",
      width, height, escape_markup(title), escape_markup(description), style_sheet());
}

std::string svg_text(double x, double y, std::string_view anchor, std::string_view css_class, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y, anchor,
                     css_class, escape_markup(text));
}

}  // namespace perseus::report
