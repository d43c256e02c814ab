// The files are taken in by the assembler: no generated source, and no time spent compiling half a megabyte of digits.
// PERSEUS_WEB_DIST is set by the build, which also recompiles this file when they change.
#include "report/bundle.h"

#define PERSEUS_EMBED(symbol, file)                                                                   \
  asm(".pushsection .rodata\n" #symbol "_begin:\n.incbin \"" PERSEUS_WEB_DIST "/" file "\"\n" #symbol \
      "_end:\n.byte 0\n.popsection\n"                                                                 \
      ".globl " #symbol "_begin\n.globl " #symbol "_end\n")

PERSEUS_EMBED(perseus_charts_script, "charts.js");
PERSEUS_EMBED(perseus_report_script, "report.js");
PERSEUS_EMBED(perseus_report_style, "report.css");
PERSEUS_EMBED(perseus_dashboard_frame, "dashboard.html");

extern "C" {
extern const char perseus_charts_script_begin[], perseus_charts_script_end[];
extern const char perseus_report_script_begin[], perseus_report_script_end[];
extern const char perseus_report_style_begin[], perseus_report_style_end[];
extern const char perseus_dashboard_frame_begin[], perseus_dashboard_frame_end[];
}

namespace perseus {

std::string_view charts_script() { return {perseus_charts_script_begin, perseus_charts_script_end}; }
std::string_view report_script() { return {perseus_report_script_begin, perseus_report_script_end}; }
std::string_view report_style() { return {perseus_report_style_begin, perseus_report_style_end}; }
std::string_view dashboard_frame() { return {perseus_dashboard_frame_begin, perseus_dashboard_frame_end}; }

}  // namespace perseus
