# The built page of web/ as part of the module io/report: see src/io/report/bundle.cpp.
set(web_dist ${CMAKE_SOURCE_DIR}/web/dist)
set_source_files_properties(src/io/report/bundle.cpp PROPERTIES
  COMPILE_DEFINITIONS "PERSEUS_WEB_DIST=\"${web_dist}\""
  OBJECT_DEPENDS "${web_dist}/charts.js;${web_dist}/report.js;${web_dist}/report.css;${web_dist}/dashboard.html")
