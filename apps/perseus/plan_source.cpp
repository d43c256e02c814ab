#include "plan_source.h"

#include <system_error>

#include "wire/frequency_plan.h"

namespace perseus {

namespace fs = std::filesystem;

fs::path plan_file_path(const std::string& plans) {
  std::error_code ignored;  // whatever it is, reading it will say so
  return fs::is_directory(plans, ignored) ? fs::path(plans) / "plans.json" : fs::path(plans);
}

fs::path frequency_plan_path(const fs::path& plan_file, int point) {
  const fs::path path = plan_file.parent_path() / "plans" / frequency_plan_file_name(point);
  std::error_code ignored;
  return fs::exists(path, ignored) ? path : fs::path();
}

}  // namespace perseus
