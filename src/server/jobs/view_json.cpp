#include "server/jobs/view_json.h"

#include "server/jobs/describe_view.h"

namespace perseus::jobs {
namespace {

/// The index also has the job's owner.
struct StoredSummary {
  JobSummary summary;
};
void describe(auto& f, MaybeConst<StoredSummary> auto& s) {
  describe(f, s.summary);
  f("owner", s.summary.owner);
}

}  // namespace

std::string job_list_entry_json(const JobListEntry& entry) { return json_text(entry); }
std::string job_json(const JobView& view, const EnergyFactors& factors) {
  return json_object([&](JsonWriter& f) { describe_job(f, view, factors); });
}
std::string format_summary(const JobSummary& summary) { return json_text(StoredSummary{summary}); }
JobSummary parse_summary(std::string_view text) {
  const auto stored = parse_json_as<StoredSummary>(text, "summary");
  return stored ? stored->summary : JobSummary();
}
std::string event_json(const JobEvent& event) { return json_text(event); }

}  // namespace perseus::jobs
