// Any text is a scenario or an error that names the file; what was read holds together.
#include <cstdint>

#include "io/formats/scenario_toml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  const auto scenario = formats::parse_scenario({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!scenario) {
    PERSEUS_CHECK(scenario.error().message.starts_with("fuzz:"), "the error names the file");
    return 0;
  }
  const int kinds = static_cast<int>(scenario->kinds.size()), pipelines = scenario->num_pipelines();
  PERSEUS_CHECK(pipelines >= 1 && pipelines <= 65536, "there are pipelines");
  PERSEUS_CHECK(!(scenario->duration && scenario->iterations), "one horizon");
  PERSEUS_CHECK(scenario->duration || scenario->iterations || scenario->sweep, "something to do");
  PERSEUS_CHECK(scenario->random.empty() || scenario->duration, "stragglers are drawn until then");
  for (const model::Straggler& s : scenario->stragglers) {
    PERSEUS_CHECK(s.pipeline >= 0 && s.pipeline < pipelines, "of a pipeline that there is");
    PERSEUS_CHECK(s.hardship.slowdown >= 1 && s.duration > Seconds(0), "slower, for some time");
    PERSEUS_CHECK(
        s.hardship.cause != model::StragglerCause::failure || (s.hardship.becomes >= 0 && s.hardship.becomes < kinds),
        "becomes a kind that there is");
  }
  for (const model::RandomStragglers& r : scenario->random) {
    PERSEUS_CHECK(r.least_slowdown <= r.most_slowdown && r.mean_between > Seconds(0), "can be drawn");
  }
  if (scenario->sweep) {
    PERSEUS_CHECK(
        !scenario->sweep->scaling.empty() && !scenario->sweep->gpus.empty() && !scenario->sweep->slowdowns.empty(),
        "a sweep has something in each direction");
  }
  return 0;
}
