// The built pages of web/, part of the program so that reports and the server need no other file.
#pragma once

#include <string_view>

namespace perseus::report {

std::string_view charts_script();  ///< ECharts; every page runs it first
std::string_view report_script();
std::string_view report_style();
std::string_view dashboard_frame();  ///< a whole page but for the charts; see io/report/dashboard.h

}  // namespace perseus::report
