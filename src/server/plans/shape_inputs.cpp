#include "server/plans/shape_inputs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/jobs/pipeline_input.h"
#include "server/plans/stored_profiles.h"

namespace perseus::plans {

void ShapeInputs::go_on(live::LiveJob& live) {
  const jobs::Job& job = live.job;
  if (live.completes_shape || !job.live() || job.shapes.empty()) return;
  // The job's inputs are about to be replaced.
  if (profiles::awaits_latencies(job, clock_.now_s(), options_.latency_wait_s)) return;
  const auto missing = jobs::missing_input(job);
  if (!missing || live.is_pending("input/" + missing->of)) return;
  live.completes_shape = true;
  store_.read<std::optional<std::string>>(
      [of = missing->of](store::Store& from) { return from.blob("input/" + of); },
      [this, id = job.id, missing = *missing](const Result<std::optional<std::string>>& text) {
        live::LiveJob* const now = jobs_.in_memory(id);
        if (now == nullptr) return;
        if (text && *text) return complete(*now, missing, **text);
        if (text || text.error().code == ErrorCode::internal) {
          return completed(id, missing, Error{ErrorCode::internal, "the job's profile cannot be read"});
        }
        now->completes_shape = false;
        now->retry_s = clock_.now_s() + live::kRetryAfter_s;
        jobs_.set_wake(*now, clock_.now_s());
      });
}

void ShapeInputs::complete(live::LiveJob& live, const jobs::ShapeInput& missing, const std::string& text) {
  const auto complete = [text, missing, limits = input_limits(options_, live.job.spec.degrees.pp),
                         source = live.job.profile_source]() -> Result<profiles::KnownInput> {
    const auto of = jobs::parse_input(text, "input/" + missing.of);
    if (!of) return of.error();
    const auto shape = jobs::with_shape(of->shape, missing.shape);
    if (!shape) return shape.error();
    return profiles::known_input(of->profile_csv, *shape, limits, source, {});
  };
  work::run_off_thread(
      executor_, complete,
      [this, id = live.job.id, missing](const Result<profiles::KnownInput>& known) { completed(id, missing, known); });
}

void ShapeInputs::completed(const std::string& id, const jobs::ShapeInput& missing,
                            const Result<profiles::KnownInput>& known) {
  const auto decide = [missing, known](const jobs::Job& job, double) -> Result<live::Decision> {
    live::Decision decision;
    const auto shape = std::ranges::find(job.shapes, missing.shape.microbatches, &jobs::JobShape::microbatches);
    const bool wanted = job.live() && shape != job.shapes.end() && !shape->inputs.contains(missing.of) &&
                        std::ranges::find(job.input_of, missing.of) != job.input_of.end();
    if (!wanted) return decision;
    jobs::ShapeCompleted event{missing.shape.microbatches, missing.of, "", ""};
    if (known) {
      event.input = known->event.input;
      decision.blobs.push_back(known->blob);
    } else {
      event.why = known.error().message;
    }
    decision.events.emplace_back(std::move(event));
    return decision;
  };
  jobs_.execute(id, {decide, [this, id](const Status& done) {
                       live::LiveJob* const now = jobs_.in_memory(id);
                       if (now == nullptr) return;
                       now->completes_shape = false;
                       if (done) return go_on(*now);
                       now->retry_s = clock_.now_s() + live::kRetryAfter_s;
                       jobs_.set_wake(*now, clock_.now_s());
                     }});
}

}  // namespace perseus::plans
