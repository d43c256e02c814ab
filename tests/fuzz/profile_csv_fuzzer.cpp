// Any text is a valid profile or an error; a profile that was read can be planned for.
#include <cstdint>

#include "io/formats/profile_csv.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/model/make_schedule.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  const auto profile = formats::parse_profile_csv({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!profile) {
    PERSEUS_CHECK(profile.error().message.starts_with("fuzz:"), "the error names the file");
    return 0;
  }
  PERSEUS_CHECK(profile->validate().ok(), "what was read is valid");
  const auto schedule = model::make_schedule("1f1b", {profile->num_stages(), 2, 1});
  const auto dag = model::build_dag(*profile, *schedule, {Watts(1), Seconds(1)});
  PERSEUS_CHECK(!dag || dag->validate().ok(), "its DAG is valid");
  return 0;
}
