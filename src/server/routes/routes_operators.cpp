// Calls of /v1 from operators and the infrastructure: stragglers, policies, tokens.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_writer.h"
#include "server/jobs/api_answers.h"
#include "server/jobs/api_bodies.h"
#include "server/live/registration_checks.h"
#include "server/routes/call_input.h"

namespace perseus::routes {

void Api::set_straggler(Call call, jobs::SetStraggler body) {
  body.by = author_of(call.identity);
  service_.stragglers.set(std::move(body), then<jobs::StragglerSet>(call, json_text<jobs::StragglerSet>));
}

void Api::set_job_straggler(Call call, jobs::SetStraggler body) {
  body.job = call.parts[0];
  body.by = author_of(call.identity);
  service_.stragglers.set(std::move(body), then<jobs::StragglerSet>(call, json_text<jobs::StragglerSet>));
}

void Api::withdraw_straggler(Call call) {
  service_.stragglers.withdraw({call.parts[0], call.parts[1], author_of(call.identity)}, then_ok(call));
}

namespace {

Status check_policy_kind(const std::string& kind) {
  if (std::ranges::find(jobs::kPolicyKinds, kind) != jobs::kPolicyKinds.end()) return Ok{};
  return wrong_parameter("kind", kind, fmt::format("one of {}", fmt::join(jobs::kPolicyKinds, ", ")));
}

}  // namespace

void Api::set_policy(Call call, PolicyBody body) {
  if (const Status known = check_policy_kind(call.parts[1]); !known) return call.fail(known.error());
  // The form of the log: an object with one member, the kind.
  auto policy =
      parse_body<jobs::Policy>(json_object([&](JsonWriter& f) { f.always(call.parts[1], JsonRaw{body.json}); }));
  if (!policy) {
    // Its place is in the request, not in that object.
    Error error = policy.error();
    const std::string at = "$." + call.parts[1] + ".";
    if (const std::size_t found = error.message.find(at); found != std::string::npos) {
      error.message.replace(found, at.size(), "$.");
    }
    return call.fail(error);
  }
  service_.operations.set_policy({call.parts[0], *std::move(policy), author_of(call.identity)},
                                 then<jobs::PolicyChanged>(call, json_text<jobs::PolicyChanged>));
}

void Api::clear_policy(Call call) {
  if (const Status known = check_policy_kind(call.parts[1]); !known) return call.fail(known.error());
  service_.operations.clear_policy({call.parts[0], call.parts[1], author_of(call.identity)}, then_ok(call));
}

void Api::set_tier(Call call, jobs::TierBody body) {
  service_.operations.set_tier({call.parts[0], std::move(body.tier), body.reset, author_of(call.identity)},
                               then_ok(call));
}

namespace {

/// The members of a token without its secret.
auto shown(const store::TokenRow& token) {
  return [&token](JsonWriter& f) {
    f.always("id", token.hash);
    f.always("role", token.role);
    f.always("job", token.job);
    f.always("name", token.name);
    f.always("team", token.team);
    f.always("created_at_s", token.created_s);
    if (token.expires_s > 0) f.always("expires_at_s", token.expires_s);
  };
}

}  // namespace

void Api::list_tokens(Call call) {
  call.answer(json_object([&](JsonWriter& f) {
    f.always("tokens", JsonList{tokens_.list(), [](const store::TokenRow& token) { return JsonObject{shown(token)}; }});
  }));
}

void Api::make_token(Call call, jobs::TokenBody body) {
  for (const auto& [what, text] : {std::pair{"name", body.name}, {"team", body.team}, {"job", body.job}}) {
    if (const Status checked = check_text(what, text, 256); !checked) return call.fail(checked.error());
  }
  store::TokenRow wanted;
  wanted.role = body.role;
  wanted.job = body.job;
  wanted.name = body.name;
  wanted.team = body.team;
  if (const Status possible = access::check_token(wanted); !possible) return call.fail(possible.error());
  if (!tokens_.required()) {
    if (const Status first = access::check_first_token(wanted); !first) return call.fail(first.error());
    if (!tokens_.shows_first_secret(call.request.header("Authorization").value_or(""))) {
      return call.fail(
          {ErrorCode::forbidden,
           "create the first token with the secret in this server's log or, before the server starts, with 'perseus "
           "token create --role infrastructure --data DIR'"});
    }
  }
  const double now_s = clock_.now_s();
  const double expires_s = body.expires_in_s ? now_s + *body.expires_in_s : 0;
  if (body.expires_in_s && !(*body.expires_in_s > 0 && *body.expires_in_s <= 1e10)) {
    return call.fail(
        {ErrorCode::usage, fmt::format("expires_in_s: {}; allowed: more than 0, at most 1e10", *body.expires_in_s)});
  }
  wanted.expires_s = expires_s;
  const access::NewToken token = access::make_token(std::move(wanted), now_s);
  tokens_.put(token.row, [call, token](const Status& put) {
    if (!put) return call.fail(put.error());
    http::HttpResponse made = http::json_response(200, json_object([&](JsonWriter& f) {
                                                    f.always("token", token.secret);
                                                    f.always("id", token.id);
                                                  }));
    made.headers.emplace_back("Cache-Control", "no-store");
    call.send(std::move(made));
  });
}

void Api::revoke_token(Call call) {
  tokens_.revoke(call.parts[0], [call](const Status& revoked) {
    if (!revoked) return call.fail(revoked.error());
    call.answer("{}");
  });
}

}  // namespace perseus::routes
