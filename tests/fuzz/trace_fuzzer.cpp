// Any text is a timeline or an error that names the file, or the mapping's place that is not in it; what was read is in
// range, and understanding it ends. The first half of a text with a line "---" is a mapping of names.
#include <cmath>
#include <cstdint>

#include "evaluation/what_if/other_plans.h"
#include "evaluation/what_if/replay_step.h"
#include "evaluation/what_if/slowdown_causes.h"
#include "io/trace/read_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  std::string text(reinterpret_cast<const char*>(data), size);
  std::optional<trace::TraceNames> names;
  if (const std::size_t cut = text.find("\n---\n"); cut != std::string::npos) {
    const auto parsed = trace::parse_trace_names(text.substr(0, cut), "names");
    if (!parsed) return 0;
    names = *parsed;
    text.erase(0, cut + 5);
  }
  const auto timeline = trace::parse_trace({{"fuzz", text}}, names, 1000);
  if (!timeline) {
    const std::string& message = timeline.error().message;
    PERSEUS_CHECK(message.starts_with("fuzz:") || message.starts_with("names: [places]"), "the error names the file");
    return 0;
  }
  for (const trace::Span& s : timeline->spans) {
    PERSEUS_CHECK(std::isfinite(s.start_s) && s.duration_s >= 0 && std::isfinite(s.duration_s), "a time");
    PERSEUS_CHECK(s.thread >= 0 && s.thread < static_cast<int>(timeline->threads.size()), "a thread");
    PERSEUS_CHECK(s.step >= -1 && s.microbatch >= -1 && s.stage >= -1 && s.chunk >= -1, "numbers from -1");
  }
  if (const auto job = what_if::understand(*timeline)) {
    const what_if::Slowdown slowdown = what_if::explain(*job);
    const std::vector<int> layers(static_cast<std::size_t>(job->stages), 3);
    for (const what_if::OtherPlan& other : what_if::other_plans(*job, slowdown, layers))
      PERSEUS_CHECK(other.pipeline_s > 0, "a time of a pipeline");
    PERSEUS_CHECK(std::isfinite(what_if::replay_errors(*job).early), "a share of a step");
    PERSEUS_CHECK(slowdown.as_run_s >= 0 && !job->steps.empty(), "a time of a step");
  }
  return 0;
}
