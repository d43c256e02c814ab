#include "server/plans/profile_uploads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "server/live/learned_profile.h"
#include "server/profiles/known_profile.h"

namespace perseus::plans {

namespace {

Status check_pipelines(const jobs::Job& job, const std::vector<int>& pipelines) {
  if (!job.live()) return live::job_is_over(job);
  for (const int pipeline : pipelines) {
    if (pipeline >= 0 && pipeline < job.num_pipelines()) continue;
    return Error{ErrorCode::usage,
                 fmt::format("pipeline: {}; job {} has 0 to {}", pipeline, job.id, job.num_pipelines() - 1)};
  }
  return Ok{};
}

Result<live::Decision> decide_upload(const jobs::Job& job, const profiles::KnownInput& known, double now_s) {
  const std::vector<int>& pipelines = known.event.pipelines;
  if (Status checked = check_pipelines(job, pipelines); !checked) return checked.error();
  live::Decision decision;
  const bool new_to_some =
      std::ranges::any_of(job.input_of, [&](const std::string& input) { return input != known.event.input; });
  if (!new_to_some) return decision;
  live::note_learned(job, known.event, now_s, decision);
  decision.events.emplace_back(known.event);
  decision.blobs.push_back(known.blob);
  return decision;
}

}  // namespace

Result<JobProfiles> JobProfiles::read(store::Store& store, const jobs::RegisterJob& request, double switch_latency_s) {
  JobProfiles profiles;
  profiles.by = request.by;
  const auto add_given = [&](std::string csv, jobs::PipelineShape shape, const std::string& name,
                             std::vector<int> pipelines) {
    if (request.switch_latency) shape.switch_latency = request.switch_latency;
    const bool fixed = shape.switch_latency.has_value();
    if (!fixed && switch_latency_s > 0) shape.switch_latency = Seconds(switch_latency_s);
    profiles.given.push_back({std::move(csv), std::move(shape), name, std::move(pipelines), fixed});
  };
  const auto add = [&](const std::string& name, std::vector<int> pipelines) -> Status {
    auto profile = read_named_profile(store, name);
    if (!profile) return profile.error();
    add_given(std::move(profile->profile_csv),
              profiles::with_constants_of(request.shape.value_or(profile->shape), profile->shape), name,
              std::move(pipelines));
    return Ok{};
  };
  if (!request.profile.empty()) {
    if (Status added = add(request.profile, {}); !added) return added.error();
  } else if (const std::string key = live::learned_key(request.degrees, request.facts, request.shape);
             request.profile_online && !key.empty()) {
    const auto known = read_learned_input(store, key);
    if (!known) return known.error();
    if (*known) {  // the same computations, possibly a different number of them
      const auto& [learned, input] = **known;
      jobs::PipelineShape measured = input.shape;
      measured.switch_latency.reset();  // the ranks measure their own
      jobs::PipelineShape shape = profiles::with_constants_of(request.shape.value_or(input.shape), measured);
      add_given(input.profile_csv, std::move(shape), "known from an earlier run", {});
      profiles.learned = {key, learned, std::move(profiles.given.back())};
      profiles.given.pop_back();
    }
  }
  std::map<std::string, std::vector<int>> others;
  for (const auto& [pipeline, name] : request.profile_of) others[name].push_back(pipeline);
  for (auto& [name, pipelines] : others) {
    if (Status added = add(name, pipelines); !added) return added.error();
  }
  return profiles;
}

Result<live::Decision> JobProfiles::complete(const jobs::InputLimits& limits) const {
  live::Decision decision;
  for (const Given& one : given) {
    auto known = profiles::known_input(one.csv, one.shape, limits, one.name, one.pipelines, one.fixed_latency);
    if (!known) return known.error();
    known->event.by = by;
    decision.events.emplace_back(std::move(known->event));
    decision.blobs.push_back(std::move(known->blob));
  }
  if (learned) {
    const auto& [key, profile, tried] = *learned;
    auto known = profiles::known_input(tried.csv, tried.shape, limits, tried.name, {}, tried.fixed_latency);
    if (!known) return decision;  // learned with a shape that this job does not have
    decision.events.emplace_back(jobs::ProfileOnTrial{std::move(known->event), key, profile.input, profile.job});
    decision.blobs.push_back(std::move(known->blob));
    decision.holds.push_back(key);
  }
  return decision;
}

void ProfileUploads::upload(const std::string& job, jobs::NamedProfile profile, std::vector<int> pipelines,
                            work::Done<Ok> done, std::string by) {
  access_.with(job, [this, job, profile = std::move(profile), pipelines = std::move(pipelines), by = std::move(by),
                     done = std::move(done)](const Result<live::LiveJob*>& live) {
    if (!live) return done(live.error());
    const jobs::Job& now = (*live)->job;
    if (Status checked = check_pipelines(now, pipelines); !checked) return done(checked.error());
    const auto complete = [csv = profile.profile_csv, shape = profiles::with_measurements(profile.shape, now),
                           limits = input_limits(options_, now.spec.degrees.pp),
                           source = profile.name.empty() ? "uploaded" : profile.name, pipelines,
                           fixed = profile.shape.switch_latency || now.spec.switch_latency_s] {
      return profiles::known_input(csv, shape, limits, source, pipelines, fixed);
    };
    work::run_off_thread(executor_, complete, [this, job, by, done](Result<profiles::KnownInput> known) {
      if (!known) return done(known.error());
      known->event.by = by;
      jobs_.execute(job, {[known = *known](const jobs::Job& current, double now_s) {
                            return decide_upload(current, known, now_s);
                          },
                          done});
    });
  });
}

}  // namespace perseus::plans
