// Calls of /v1 about named profiles and those that jobs learned.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_writer.h"
#include "server/jobs/api_answers.h"
#include "server/jobs/api_bodies.h"
#include "server/routes/call_input.h"

namespace perseus::routes {

void Api::list_profiles(Call call) {
  service_.profiles.names(then<std::vector<std::string>>(call, [](const std::vector<std::string>& names) {
    return json_object([&](JsonWriter& f) { f.always("profiles", names); });
  }));
}

void Api::show_profile(Call call) {
  service_.profiles.get(call.parts[0], then<jobs::NamedProfile>(call, json_text<jobs::NamedProfile>));
}

void Api::put_profile(Call call, jobs::NamedProfile body) {
  body.name = call.parts[0];
  service_.profiles.put(body, then<jobs::StoredProfile>(call, json_text<jobs::StoredProfile>));
}

void Api::remove_profile(Call call) { service_.profiles.remove(call.parts[0], then_ok(call)); }

namespace {

/// Tokens of the role job see what their team has learned; other roles see everything.
bool is_for(const access::Identity& identity, const jobs::LearnedProfile& learned) {
  return identity.role != access::Role::job || learned.team == identity.team;
}

}  // namespace

void Api::list_learned(Call call) {
  const auto format = [identity = call.identity](const std::vector<jobs::LearnedProfile>& all) {
    std::vector<jobs::LearnedShown> shown;
    for (const jobs::LearnedProfile& one : all) {
      if (is_for(identity, one)) shown.push_back({one});
    }
    return json_object([&](JsonWriter& f) { f.always("profiles", shown); });
  };
  service_.profiles.learned(then<std::vector<jobs::LearnedProfile>>(call, format));
}

void Api::forget_learned(Call call) {
  service_.profiles.learned([this, call = std::move(call)](const Result<std::vector<jobs::LearnedProfile>>& all) {
    if (!all) return call.fail(all.error());
    const std::string& id = call.parts[0];
    const bool known = std::ranges::any_of(
        *all, [&](const jobs::LearnedProfile& one) { return one.id == id && is_for(call.identity, one); });
    if (known) return service_.profiles.forget_learned(id, then_ok(call));
    call.fail({ErrorCode::not_found, fmt::format("no profile was learned under the id '{}'", id)});
  });
}

}  // namespace perseus::routes
