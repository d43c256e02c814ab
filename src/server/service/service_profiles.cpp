// Profiles in requests: named ones, a new job's, and those uploaded to a running job. The executor parses them and
// builds their DAGs.
#include <fmt/format.h>

#include "server/jobs/describe.h"
#include "server/jobs/pipeline_input.h"
#include "server/service/learned_profile.h"
#include "server/service/registration.h"
#include "server/service/service_state.h"

namespace perseus::service {

/// The stored form of a named profile; the API uses other names (server/jobs/api_bodies.h), hence the separate type.
struct KeptProfile {
  jobs::NamedProfile profile;
};
template <class F, class S>
requires std::is_same_v<std::remove_const_t<S>, KeptProfile>
void describe(F& f, S& s) {
  f.always("name", s.profile.name);
  f.always("profile_csv", s.profile.profile_csv);
  f.always("shape", s.profile.shape);
  f("accelerator", s.profile.accelerator);
}

namespace {

Result<Decision> completed(const JobProfiles& profiles, const jobs::InputLimits& limits) {
  Decision decision;
  for (const JobProfiles::Given& given : profiles.given) {
    auto known = jobs::known_input(given.csv, given.shape, limits, given.name, given.pipelines, given.fixed_latency);
    if (!known) return known.error();
    decision.events.emplace_back(std::move(known->event));
    decision.blobs.push_back(std::move(known->blob));
  }
  if (profiles.learned) {
    const auto& [key, learned, given] = *profiles.learned;
    auto known = jobs::known_input(given.csv, given.shape, limits, given.name, {}, given.fixed_latency);
    if (!known) return decision;  // learned with a shape that this job does not have
    decision.events.emplace_back(jobs::ProfileOnTrial{std::move(known->event), key, learned.input, learned.job});
    decision.blobs.push_back(std::move(known->blob));
    decision.holds.push_back(key);
  }
  return decision;
}

Status check_pipelines(const jobs::Job& job, const std::vector<int>& pipelines) {
  if (!job.live()) return Error{ErrorCode::conflict, fmt::format("job {} is {}", job.id, name_of(job.state))};
  for (const int pipeline : pipelines) {
    if (pipeline >= 0 && pipeline < job.num_pipelines()) continue;
    return Error{ErrorCode::usage,
                 fmt::format("pipeline: {}; job {} has 0 to {}", pipeline, job.id, job.num_pipelines() - 1)};
  }
  return Ok{};
}

Result<Decision> decide_upload(const jobs::Job& job, const jobs::KnownInput& known, double now_s) {
  const std::vector<int>& pipelines = known.event.pipelines;
  if (Status checked = check_pipelines(job, pipelines); !checked) return checked.error();
  Decision decision;
  const bool new_to_some =
      std::ranges::any_of(job.input_of, [&](const std::string& input) { return input != known.event.input; });
  if (!new_to_some) return decision;
  note_learned(job, known.event, now_s, decision);
  decision.events.emplace_back(known.event);
  decision.blobs.push_back(known.blob);
  return decision;
}

struct CompletedProfile {
  jobs::KnownInput known;
  jobs::StoredProfile stored;
};

Result<CompletedProfile> complete_named(const jobs::NamedProfile& profile, const jobs::InputLimits& limits) {
  auto known = jobs::known_input(profile.profile_csv, profile.shape, limits, profile.name, {});
  if (!known) return known.error();
  const auto input = jobs::parse_input(known->blob.bytes, "input");
  PERSEUS_CHECK(input.ok(), "an input that cannot be read back");
  return CompletedProfile{*std::move(known), {profile.name, input->stages, input->ranks}};
}

}  // namespace

// ---- State

namespace {

/// The next functions read the store: call them off the io thread.
Result<jobs::NamedProfile> named_profile(store::Store& store, const std::string& name) {
  if (Status named = check_profile_name(name); !named) return named.error();
  const auto stored = store.blob("profile/" + name);
  if (!stored) return stored.error();
  if (!*stored) return Error{ErrorCode::not_found, fmt::format("no profile is named '{}'", name)};
  auto kept = jobs::parse_json_as<KeptProfile>(**stored, "profile/" + name);
  if (!kept) return kept.error();
  return std::move(kept->profile);
}

/// A damaged blob reads as an absent one.
Result<std::optional<std::string>> undamaged(store::Store& store, const std::string& key) {
  auto kept = store.blob(key);
  if (!kept && kept.error().code == ErrorCode::internal) return std::optional<std::string>();
  return kept;
}

struct LearnedInput {
  jobs::LearnedProfile profile;
  jobs::PipelineInput input;
};
/// The profile that an earlier run of the same training has learned and that no later run has contradicted.
Result<std::optional<LearnedInput>> learned_input(store::Store& store, const std::string& key) {
  const std::optional<LearnedInput> nothing;
  const auto kept = undamaged(store, key);
  if (!kept) return kept.error();
  const auto learned = *kept ? parse_learned(key, **kept) : Error{ErrorCode::not_found, "nothing learned"};
  if (!learned || !learned->doubted_by.empty()) return nothing;
  const auto text = undamaged(store, "input/" + learned->input);
  if (!text) return text.error();
  if (!*text) return nothing;
  auto known = jobs::parse_input(**text, "input/" + learned->input);
  return known ? std::optional(LearnedInput{*learned, *std::move(known)}) : nothing;
}

Result<std::vector<jobs::LearnedProfile>> all_learned(store::Store& store) {
  const auto keys = store.blob_keys(kLearnedPrefix);
  if (!keys) return keys.error();
  std::vector<jobs::LearnedProfile> all;
  for (const std::string& key : *keys) {
    const auto kept = undamaged(store, key);
    if (!kept) return kept.error();
    auto learned = *kept ? parse_learned(key, **kept) : Error{ErrorCode::not_found, key};
    if (learned) all.push_back(*std::move(learned));
  }
  return all;
}

Result<std::vector<std::string>> profile_names(store::Store& store) {
  auto keys = store.blob_keys("profile/");
  if (!keys) return keys.error();
  for (std::string& key : *keys) key.erase(0, std::string_view("profile/").size());
  return keys;
}

}  // namespace

Result<JobProfiles> JobProfiles::read(store::Store& store, const jobs::RegisterJob& request, double switch_latency_s) {
  JobProfiles profiles;
  const auto add_given = [&](std::string csv, jobs::PipelineShape shape, const std::string& name,
                             std::vector<int> pipelines) {
    if (request.switch_latency) shape.switch_latency = request.switch_latency;
    const bool fixed = shape.switch_latency.has_value();
    if (!fixed && switch_latency_s > 0) shape.switch_latency = Seconds(switch_latency_s);
    profiles.given.push_back({std::move(csv), std::move(shape), name, std::move(pipelines), fixed});
  };
  const auto add = [&](const std::string& name, std::vector<int> pipelines) -> Status {
    auto profile = named_profile(store, name);
    if (!profile) return profile.error();
    add_given(std::move(profile->profile_csv),
              jobs::with_constants_of(request.shape.value_or(profile->shape), profile->shape), name,
              std::move(pipelines));
    return Ok{};
  };
  if (!request.profile.empty()) {
    if (Status added = add(request.profile, {}); !added) return added.error();
  } else if (const std::string key = learned_key(request.degrees, request.facts, request.shape);
             request.profile_online && !key.empty()) {
    const auto known = learned_input(store, key);
    if (!known) return known.error();
    if (*known) {  // the same computations, possibly a different number of them
      const auto& [learned, input] = **known;
      jobs::PipelineShape measured = input.shape;
      measured.switch_latency.reset();  // the ranks measure their own
      jobs::PipelineShape shape = jobs::with_constants_of(request.shape.value_or(input.shape), measured);
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

jobs::InputLimits Service::State::limits(int ranks) const {
  return {ranks, options.max_computations, options.plan_deadlines};
}

void Service::State::forget_learned(const jobs::Job& job, Done<Ok> done) {
  const std::string key = learned_key(job.spec.degrees, job.spec.facts, job.spec.shape);
  if (key.empty()) return done(Ok{});
  store->remove_blob(key, std::move(done));
}

void Service::State::note_trial(const std::string& id, const jobs::ProfileOnTrial& candidate,
                                const jobs::TrialEnded& ended) {
  const std::string& key = candidate.learned;
  store->read<std::optional<std::string>>(
      [key](store::Store& from) { return from.blob(key); },
      [weak = weak_from_this(), id, candidate, ended](const Result<std::optional<std::string>>& kept) {
        const auto self = weak.lock();
        if (!self || !kept || !*kept) return;
        auto learned = parse_learned(candidate.learned, **kept);
        // A profile learned meanwhile is a different one.
        if (!learned || learned->input != candidate.learned_input) return;
        if (ended.agreed) {
          ++learned->confirmed;
        } else {
          learned->doubted_by = id;
          learned->doubted_because = ended.text;
        }
        self->store->put_blob(learned_blob(candidate.learned, *learned), [](const Result<Ok>&) {});
      });
}

void Service::State::complete_profiles(JobProfiles profiles, int ranks,
                                       std::function<void(State&, Result<Decision>)> then) {
  if (profiles.given.empty() && !profiles.learned) return then(*this, completed(profiles, limits(ranks)));
  away<Result<Decision>>(
      [profiles = std::move(profiles), limits = limits(ranks)] { return completed(profiles, limits); },
      std::move(then));
}

std::optional<Seconds> Service::State::latency_to_replan(const LiveJob& live, const std::string& input) {
  const auto latency = jobs::latency_to_plan_with(live.job, input);
  const auto failed = live.not_replanned.find(input);
  if (latency && failed != live.not_replanned.end() && failed->second == *latency) return std::nullopt;
  return latency;
}

void Service::State::replan_for_latency(LiveJob& live) {
  const jobs::Job& job = live.job;
  if (live.replanning || !job.live() || jobs::awaits_latencies(job, clock.now_s(), options.latency_wait_s)) return;
  std::string input;
  for (const auto& [known, planned] : job.planned_with) {
    if (latency_to_replan(live, known)) input = known;
  }
  if (input.empty()) return;
  const Seconds latency = *latency_to_replan(live, input);
  live.replanning = true;
  store->read<std::optional<std::string>>(
      [input](store::Store& from) { return from.blob("input/" + input); },
      [weak = weak_from_this(), id = job.id, input, latency](const Result<std::optional<std::string>>& text) {
        const auto self = weak.lock();
        LiveJob* const now = self ? self->jobs->in_memory(id) : nullptr;
        if (now == nullptr) return;
        now->replanning = text && *text;
        if (now->replanning) return self->replan(id, input, latency, **text);
        if (text || text.error().code == ErrorCode::internal) {  // for example, damaged
          now->not_replanned[input] = latency;
          return self->release_first_plan(*now);
        }
        now->retry_s = self->clock.now_s() + kRetryAfter_s;
        self->jobs->set_wake(*now, self->clock.now_s());
      });
}

void Service::State::replan(const std::string& id, const std::string& input, Seconds latency, const std::string& text) {
  const jobs::Job& job = jobs->in_memory(id)->job;
  std::vector<int> pipelines;
  for (int p = 0; p < job.num_pipelines(); ++p) {
    if (job.input_of[p] == input) pipelines.push_back(p);
  }
  if (static_cast<int>(pipelines.size()) == job.num_pipelines()) pipelines.clear();
  const auto complete = [bytes = text, input, latency, limits = limits(job.spec.degrees.pp),
                         source = job.profile_source, pipelines]() -> Result<jobs::KnownInput> {
    auto known = jobs::parse_input(bytes, "input/" + input);
    if (!known) return known.error();
    known->shape.switch_latency = latency;
    return jobs::known_input(known->profile_csv, known->shape, limits, source, pipelines);
  };
  away<Result<jobs::KnownInput>>(
      complete, [id = job.id, input, latency](State& state, const Result<jobs::KnownInput>& known) {
        LiveJob* const now = state.jobs->in_memory(id);
        if (now != nullptr) now->replanning = false;
        if (!known) {
          if (now == nullptr) return;
          now->not_replanned[input] = latency;
          return state.release_first_plan(*now);
        }
        const auto decide = [input, known = *known](const jobs::Job& current, double) -> Result<Decision> {
          Decision decision;
          const bool still = current.live() && std::ranges::find(current.input_of, input) != current.input_of.end() &&
                             jobs::latency_to_plan_with(current, input);
          if (!still) return decision;
          decision.events.emplace_back(known.event);
          decision.blobs.push_back(known.blob);
          return decision;
        };
        state.jobs->execute(id, {decide, {}});
      });
}

// ---- The facade

void Service::put_profile(jobs::NamedProfile profile, Done<jobs::StoredProfile> done) {
  if (Status named = check_profile_name(profile.name); !named) return done(named.error());
  if (Status text = check_text("accelerator", profile.accelerator, 256); !text) return done(text.error());
  const auto save = [profile, done](State& state, const Result<CompletedProfile>& completed) {
    if (!completed) return done(completed.error());
    const std::string& input = completed->known.event.input;
    store::Blob blob{
        "profile/" + profile.name, jobs::json_text(KeptProfile{profile}), {"input/" + input, "frontier/" + input}};
    state.store->put_blob(
        completed->known.blob, [weak = state.weak_from_this(), blob = std::move(blob), stored = completed->stored,
                                key = completed->known.event.input, done](const Result<Ok>& put) {
          const auto self = weak.lock();
          if (!self) return;
          if (!put) return done(put.error());
          self->store->put_blob(blob, [weak, stored, key, done](const Result<Ok>& named) {
            const auto self_again = weak.lock();
            if (!self_again) return;
            if (!named) return done(named.error());
            // Later jobs that name the profile will find its frontier.
            const std::string wanter = "profile " + stored.name;
            self_again->characterizations->want(key, {wanter, wanter}, [weak, key, wanter](const auto&) {
              // A quick frontier is refined once a job has it.
              if (const auto now = weak.lock()) now->characterizations->forget(key, wanter);
            });
            done(stored);
          });
        });
  };
  state_->away<Result<CompletedProfile>>(
      [profile, limits = state_->limits(0)] { return complete_named(profile, limits); }, save);
}

void Service::learned_profiles(Done<std::vector<jobs::LearnedProfile>> done) {
  state_->store->read<std::vector<jobs::LearnedProfile>>(all_learned, std::move(done));
}

void Service::forget_learned(const std::string& id, Done<Ok> done) {
  state_->store->remove_blob(std::string(kLearnedPrefix) + id, std::move(done));
}

void Service::profile(const std::string& name, Done<jobs::NamedProfile> done) {
  state_->store->read<jobs::NamedProfile>([name](store::Store& store) { return named_profile(store, name); },
                                          std::move(done));
}

void Service::profiles(Done<std::vector<std::string>> done) {
  state_->store->read<std::vector<std::string>>(profile_names, std::move(done));
}

void Service::remove_profile(const std::string& name, Done<Ok> done) {
  profile(name, [weak = std::weak_ptr(state_->store), name, done](const Result<jobs::NamedProfile>& there) {
    const auto store = weak.lock();
    if (!store) return;
    there ? store->remove_blob("profile/" + name, done) : done(there.error());
  });
}

void Service::upload_profile(const std::string& job, jobs::NamedProfile profile, std::vector<int> pipelines,
                             Done<Ok> done) {
  state_->asked(job, [self = state_.get(), job, profile = std::move(profile), pipelines = std::move(pipelines),
                      done = std::move(done)](const Result<LiveJob*>& live) {
    if (!live) return done(live.error());
    const jobs::Job& now = (*live)->job;
    if (Status checked = check_pipelines(now, pipelines); !checked) return done(checked.error());
    const auto complete = [csv = profile.profile_csv, shape = jobs::with_measurements(profile.shape, now),
                           limits = self->limits(now.spec.degrees.pp),
                           source = profile.name.empty() ? "uploaded" : profile.name, pipelines,
                           fixed = profile.shape.switch_latency || now.spec.switch_latency_s] {
      return jobs::known_input(csv, shape, limits, source, pipelines, fixed);
    };
    self->away<Result<jobs::KnownInput>>(complete, [job, done](State& state, const Result<jobs::KnownInput>& known) {
      if (!known) return done(known.error());
      state.jobs->execute(job, {[known = *known](const jobs::Job& current, double now_s) {
                                  return decide_upload(current, known, now_s);
                                },
                                [done](const Status& status) { status ? done(Ok{}) : done(status.error()); }});
    });
  });
}

}  // namespace perseus::service
