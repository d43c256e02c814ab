#include <fmt/format.h>

#include "io/report/comparison.h"
#include "io/report/comparison_text.h"
#include "io/report/static_page.h"

namespace perseus::report {

void write_comparison_html(const ComparisonInput& input, const std::vector<PairComparison>& pairs, const Sink& sink) {
  std::string drawing;
  write_comparison_svg(input, [&](std::string_view piece) { drawing += piece; });
  std::vector<ReportFact> in_words;
  for (const ComparedMethod& method : input.methods) {
    in_words.push_back({method.name, method.description + (method.note.empty() ? "" : "; " + method.note)});
  }
  write_static_page(
      {"Perseus comparison",
       input.title,
       input.inputs,
       {{"", {drawing}, {}, {}, ""},
        {"Methods",
         {},
         std::move(in_words),
         method_rows(input),
         fmt::format(
             "Saving: against everything at maximum clock, each at its own iteration time. In time: the slowest "
             "plan that is at most {:g} % slower than everything at maximum clock. Gap: of the fastest point, "
             "to the lower bound.",
             100 * input.slowdown)},
        {"Pairwise comparison",
         {},
         {},
         pair_rows(input, pairs),
         "Shares are of the deadlines T from the fastest possible iteration to the slowest one that still saves "
         "energy. "
         "At equal T each method runs its slowest plan that is no slower, and waits for the rest. Mean saving: of the "
         "first against the second, over the T that both reach. A method "
         "dominates where at every T it is at least as good, and at some better."}}},
      sink);
}

}  // namespace perseus::report
