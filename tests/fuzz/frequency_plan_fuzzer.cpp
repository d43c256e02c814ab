// Any text is a plan of clocks or an error; a plan that fits a pipeline survives being written and read again.
#include <cstdint>

#include "io/formats/frequency_plan.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "tests/support/model_samples.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  static const model::ComputationDag dag =
      *model::build_dag(testing::two_clock_profile(), *model::make_schedule("1f1b", {2, 1, 1}), {Watts(80), {}});
  const auto frequencies = formats::parse_frequency_plan({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!frequencies) {
    PERSEUS_CHECK(frequencies.error().message.starts_with("fuzz:"), "the error names the file");
    return 0;
  }
  const auto plan = formats::to_plan(*frequencies, dag);
  if (!plan) return 0;
  const auto again = formats::parse_frequency_plan(formats::FrequencyPlanWriter(dag).write(*plan), "fuzz");
  PERSEUS_CHECK(again.ok() && *again == *frequencies, "written and read again it is the same");
  return 0;
}
