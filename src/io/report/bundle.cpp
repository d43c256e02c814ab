// The build sets PERSEUS_WEB_DIST.
#include "io/report/bundle.h"

#include "base/embed.h"

namespace perseus::report {

PERSEUS_EMBED(charts_script, PERSEUS_WEB_DIST "/charts.js");
PERSEUS_EMBED(report_script, PERSEUS_WEB_DIST "/report.js");
PERSEUS_EMBED(report_style, PERSEUS_WEB_DIST "/report.css");
PERSEUS_EMBED(dashboard_frame, PERSEUS_WEB_DIST "/dashboard.html");

}  // namespace perseus::report
