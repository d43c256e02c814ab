// Any two texts, one after the other with a line of "===" between, are a trace of runs or an error that names one of
// them; a trace that was read is valid, and calibration makes something of it or says why not.
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

#include "evaluation/calibration/calibrate.h"
#include "io/formats/run_trace_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  constexpr std::string_view between = "\n===\n";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find(between);
  const std::string_view ops = text.substr(0, end);
  const std::string_view iterations = end == std::string_view::npos ? "" : text.substr(end + between.size());
  const auto trace = formats::parse_run_trace({ops, "ops"}, {iterations, "iters"});
  if (!trace) {
    const std::string& message = trace.error().message;
    PERSEUS_CHECK(message.starts_with("ops:") || message.starts_with("iters:"), "the error names the file");
    return 0;
  }
  PERSEUS_CHECK(trace->validate().ok(), "a trace that was read is valid");
  std::size_t computations = 0;
  for (const model::TracedPlan& plan : trace->plans) {
    for (const auto& stage : plan.stages) computations += stage.size();
  }
  if (computations > 200) return 0;  // fits take their time
  std::vector<int> plans(trace->plans.size());
  std::iota(plans.begin(), plans.end(), 0);
  const auto calibration = calibration::calibrate(*trace, plans);
  if (!calibration) {
    PERSEUS_CHECK(!calibration.error().message.empty(), "the error says something");
    return 0;
  }
  PERSEUS_CHECK(calibration::make_profile(*calibration, *trace, plans).validate().ok(), "profiles made are valid");
  return 0;
}
