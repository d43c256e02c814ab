#include "server/plans/stored_profiles.h"

#include <fmt/format.h>

#include <utility>

#include "server/jobs/describe.h"
#include "server/live/registration_checks.h"
#include "server/profiles/known_profile.h"

namespace perseus::plans {

/// The stored form of a named profile; the API uses other names (server/jobs/api_bodies.h), hence the separate type.
struct KeptProfile {
  jobs::NamedProfile profile;
};
void describe(auto& f, formats::MaybeConst<KeptProfile> auto& s) {
  f.always("name", s.profile.name);
  f.always("profile_csv", s.profile.profile_csv);
  f.always("shape", s.profile.shape);
  f("accelerator", s.profile.accelerator);
}

namespace {

/// A damaged blob reads as an absent one.
Result<std::optional<std::string>> undamaged(store::Store& store, const std::string& key) {
  auto kept = store.blob(key);
  if (!kept && kept.error().code == ErrorCode::internal) return std::optional<std::string>();
  return kept;
}

Result<std::vector<jobs::LearnedProfile>> all_learned(store::Store& store) {
  const auto keys = store.blob_keys(live::kLearnedPrefix);
  if (!keys) return keys.error();
  std::vector<jobs::LearnedProfile> all;
  for (const std::string& key : *keys) {
    const auto kept = undamaged(store, key);
    if (!kept) return kept.error();
    auto learned = *kept ? live::parse_learned(key, **kept) : Error{ErrorCode::not_found, key};
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

Result<jobs::NamedProfile> read_named_profile(store::Store& store, const std::string& name) {
  if (Status named = live::check_profile_name(name); !named) return named.error();
  const auto stored = store.blob("profile/" + name);
  if (!stored) return stored.error();
  if (!*stored) return Error{ErrorCode::not_found, fmt::format("no profile is named '{}'", name)};
  auto kept = jobs::parse_json_as<KeptProfile>(**stored, "profile/" + name);
  if (!kept) return kept.error();
  return std::move(kept->profile);
}

Result<std::optional<LearnedInput>> read_learned_input(store::Store& store, const std::string& key) {
  const std::optional<LearnedInput> nothing;
  const auto kept = undamaged(store, key);
  if (!kept) return kept.error();
  const auto learned = *kept ? live::parse_learned(key, **kept) : Error{ErrorCode::not_found, "nothing learned"};
  if (!learned || !learned->doubted_by.empty()) return nothing;
  const auto text = undamaged(store, "input/" + learned->input);
  if (!text) return text.error();
  if (!*text) return nothing;
  auto known = jobs::parse_input(**text, "input/" + learned->input);
  return known ? std::optional(LearnedInput{*learned, *std::move(known)}) : nothing;
}

jobs::InputLimits input_limits(const PlanningOptions& options, int ranks) {
  return {ranks, options.max_computations, options.plan_deadlines};
}

Result<StoredProfiles::Completed> StoredProfiles::complete(const jobs::NamedProfile& profile,
                                                           const jobs::InputLimits& limits) {
  auto known = profiles::known_input(profile.profile_csv, profile.shape, limits, profile.name, {});
  if (!known) return known.error();
  const auto input = jobs::parse_input(known->blob.bytes, "input");
  PERSEUS_CHECK(input.ok(), "an input that cannot be read back");
  return Completed{*known, {profile.name, input->stages, input->ranks, known->event.doubts}};
}

void StoredProfiles::put(const jobs::NamedProfile& profile, work::Done<jobs::StoredProfile> done) {
  if (Status named = live::check_profile_name(profile.name); !named) return done(named.error());
  if (Status text = check_text("accelerator", profile.accelerator, 256); !text) return done(text.error());
  work::run_off_thread(
      executor_, [profile, limits = input_limits(options_, 0)] { return complete(profile, limits); },
      [this, profile, done](const Result<Completed>& completed) {
        completed ? save(profile, *completed, done) : done(completed.error());
      });
}

void StoredProfiles::save(const jobs::NamedProfile& profile, const Completed& completed,
                          const work::Done<jobs::StoredProfile>& done) {
  const std::string input = completed.known.event.input;
  store::Blob blob{
      "profile/" + profile.name, jobs::json_text(KeptProfile{profile}), {"input/" + input, "frontier/" + input}};
  store_.put_blob(completed.known.blob,
                  [this, blob = std::move(blob), stored = completed.stored, input, done](const Result<Ok>& put) {
                    if (!put) return done(put.error());
                    store_.put_blob(blob, [this, stored, input, done](const Result<Ok>& named) {
                      if (!named) return done(named.error());
                      plan_in_advance(stored.name, input);
                      done(stored);
                    });
                  });
}

void StoredProfiles::plan_in_advance(const std::string& name, const std::string& input) {
  const std::string wanter = "profile " + name;
  characterizations_.want(input, {wanter, wanter}, [this, input, wanter](const auto&) {
    // A quick frontier is refined once a job has it.
    characterizations_.forget(input, wanter);
  });
}

void StoredProfiles::get(const std::string& name, work::Done<jobs::NamedProfile> done) {
  store_.read<jobs::NamedProfile>([name](store::Store& store) { return read_named_profile(store, name); },
                                  std::move(done));
}

void StoredProfiles::names(work::Done<std::vector<std::string>> done) {
  store_.read<std::vector<std::string>>(profile_names, std::move(done));
}

void StoredProfiles::remove(const std::string& name, work::Done<Ok> done) {
  get(name, [this, name, done](const Result<jobs::NamedProfile>& there) {
    there ? store_.remove_blob("profile/" + name, done) : done(there.error());
  });
}

void StoredProfiles::learned(work::Done<std::vector<jobs::LearnedProfile>> done) {
  store_.read<std::vector<jobs::LearnedProfile>>(all_learned, std::move(done));
}

void StoredProfiles::forget_learned(const std::string& id, work::Done<Ok> done) {
  store_.remove_blob(std::string(live::kLearnedPrefix) + id, std::move(done));
}

void StoredProfiles::forget_learned_by(const jobs::Job& job, work::Done<Ok> done) {
  const std::string key = live::learned_key(job.spec.degrees, job.spec.facts, job.spec.shape);
  if (key.empty()) return done(Ok{});
  store_.remove_blob(key, std::move(done));
}

void StoredProfiles::note_trial(const std::string& id, const jobs::ProfileOnTrial& candidate,
                                const jobs::TrialEnded& ended) {
  const std::string& key = candidate.learned;
  store_.read<std::optional<std::string>>([key](store::Store& from) { return from.blob(key); },
                                          [this, id, candidate, ended](const Result<std::optional<std::string>>& kept) {
                                            if (!kept || !*kept) return;
                                            auto learned = live::parse_learned(candidate.learned, **kept);
                                            // A profile learned meanwhile is a different one.
                                            if (!learned || learned->input != candidate.learned_input) return;
                                            if (ended.agreed) {
                                              ++learned->confirmed;
                                            } else {
                                              learned->doubted_by = id;
                                              learned->doubted_because = ended.text;
                                            }
                                            store_.put_blob(live::learned_blob(candidate.learned, *learned),
                                                            [](const Result<Ok>&) {});
                                          });
}

}  // namespace perseus::plans
