// report.html: one self-contained page; works from file:// and without a network.
// Input, output, errors, cost, threads: as io/report/report.h.
#pragma once

#include <string>

#include "io/report/report.h"

namespace perseus::report {

/// The line of the page's list of inputs.
std::string fact_line(const ReportFact& fact);

void write_html(const ReportInput& input, const Sink& sink);

}  // namespace perseus::report
