#include "plan/plan_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <system_error>

#include "io/formats/frequency_plan.h"
#include "io/formats/number.h"

namespace perseus::cli {

namespace fs = std::filesystem;

fs::path plan_file_path(const std::string& plans) {
  std::error_code ignored;  // reading it will report any error
  return fs::is_directory(plans, ignored) ? fs::path(plans) / "plans.json" : fs::path(plans);
}

Result<formats::PlanFile> read_plans(const std::string& plans) {
  std::error_code ignored;
  const fs::path folder(plans);
  if (fs::exists(folder / "configurations.csv", ignored) && !fs::exists(folder / "plans.json", ignored)) {
    return Error{
        ErrorCode::usage,
        fmt::format("{}: holds several configurations; name one of its folders, such as {}/1f1b", plans, plans)};
  }
  return formats::read_plan_file(plan_file_path(plans).string());
}

Seconds noted_time(const formats::PlanFile& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  const auto time_s = found == file.metadata.end() ? std::nullopt : formats::number_in<double>(found->second);
  return Seconds(time_s && std::isfinite(*time_s) ? std::max(*time_s, 0.0) : 0);
}

fs::path frequency_plan_path(const fs::path& plan_file, int point) {
  const fs::path path = plan_file.parent_path() / "plans" / formats::frequency_plan_file_name(point);
  std::error_code ignored;
  return fs::exists(path, ignored) ? path : fs::path();
}

}  // namespace perseus::cli
