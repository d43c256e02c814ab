// A page of headings, drawings, tables and notes: self-contained, without scripts, for light and dark.
//
// Input:   a title, the list of inputs, and sections in the order shown; drawings are SVG from the writers of this
//          module (several may be on one page: their element ids are made distinct).
// Output:  HTML through a sink. The page's content policy forbids every request.
// Cost:    O(text).
#pragma once

#include <string>
#include <vector>

#include "io/report/report.h"
#include "io/report/table.h"

namespace perseus::report {

struct PageSection {
  std::string heading = {};  ///< empty: none is shown, as on top of a page
  std::vector<std::string> drawings = {};
  std::vector<ReportFact> list = {};
  TextRows table = {};    ///< none is shown without a header
  std::string note = {};  ///< one paragraph of text; may be empty
};

struct StaticPage {
  std::string kicker;  ///< the kind of page
  std::string title;
  std::vector<ReportFact> facts;
  std::vector<PageSection> sections;
};

void write_static_page(const StaticPage& page, const Sink& sink);

}  // namespace perseus::report
