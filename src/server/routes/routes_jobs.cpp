// Calls of /v1 about jobs: lists, registration, profiles, frontiers and timelines.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json_writer.h"
#include "io/report/report_data.h"
#include "server/jobs/api_answers.h"
#include "server/jobs/api_bodies.h"
#include "server/jobs/describe_view.h"
#include "server/jobs/identity.h"
#include "server/live/learned_profile.h"
#include "server/routes/call_input.h"
#include "server/views/job_list.h"

namespace perseus::routes {
namespace {

bool contains_without_case(std::string_view text, std::string_view wanted) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto same = [&](char a, char b) { return lower(a) == lower(b); };
  return wanted.empty() || std::search(text.begin(), text.end(), wanted.begin(), wanted.end(), same) != text.end();
}

constexpr std::size_t kPageRows = 100, kMostPageRows = 1000;
/// Largest age of savings in a row: reports that are not in the log yet do not renew it.
constexpr double kRowAge = 60;

std::string page_json(service::Service& service, const views::JobList::Query& query, const jobs::EnergyFactors& factors,
                      bool shows_site, double now_s) {
  std::vector<std::string> old;
  for (const auto& [place, row] : service.list.list().page(query).rows) {
    if (row->made_s + kRowAge <= now_s) old.push_back(place->job);
  }
  for (const std::string& job : old) service.list.refresh(job);
  const views::JobList::Page page = service.list.list().page(query);
  return json_object([&](JsonWriter& f) {
    f.always("server", JsonObject{[&](JsonWriter& server) {
               server.always("now_s", now_s);
               server("site", shows_site);
             }});
    f("factors", factors);
    f.always("jobs", JsonList{page.rows, [](const auto& row) { return JsonRaw{row.second->text}; }});
    if (page.next) f.always("next", views::format_cursor(*page.next));
  });
}

}  // namespace

void Api::list_jobs(Call call) {
  Parameters parameters(call.request);
  views::JobList::Query query{
      parameters.limit("jobs", kPageRows, kMostPageRows), parameters.after(views::parse_cursor), {}};
  const auto state = parameters.text("state");
  const auto search = parameters.text("search");
  const auto selector_text = parameters.text("selector");
  if (const auto error = parameters.error()) return call.fail(*error);
  if (const auto states = views::listed_states(); state && std::ranges::find(states, *state) == states.end()) {
    return call.fail(wrong_parameter("state", *state, fmt::format("one of {}", fmt::join(states, ", "))));
  }
  const auto selector = jobs::parse_selector(selector_text.value_or(""));
  if (!selector) return call.fail(selector.error());
  const bool is_job = call.identity.role == access::Role::job;
  if (is_job || state || search || !selector->empty()) {
    query.wanted = [&](const views::JobList::Place& place, const views::JobList::Row& row) {
      return (!state || row.state == *state) &&
             (!search || contains_without_case(row.name, *search) || contains_without_case(place.job, *search)) &&
             jobs::selects(*selector, row.labels) && (!is_job || reaches(call.identity, place.job) == true);
    };
  }
  const double now_s = clock_.now_s();
  const std::uint64_t revision = service_.list.list().revision();
  const bool shows_site = !is_job && service_.site.documents().current() != nullptr;
  const std::string key = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", query.limit, parameters.text("after").value_or(""),
                                      state.value_or(""), search.value_or(""), selector_text.value_or(""), shows_site);
  call.send(pages_.answer(call.request, {key, is_job ? call.identity.token + call.identity.job : "", revision, now_s},
                          [&] { return page_json(service_, query, options_.factors, shows_site, now_s); }));
}

void Api::job_changes(Call call) {
  if (refuse_if_full(call, access::HeldCalls::Kind::stream)) return;
  if (changes_.empty()) service_.list.keep_changes(true);
  views::JobChanges::Sees sees;
  if (call.identity.role == access::Role::job) {
    sees = [identity = call.identity](const views::JobList::Change& change) {
      if (!identity.job.empty()) return identity.job == change.job;
      return change.owner && !change.owner->empty() && *change.owner == identity.token;
    };
  }
  call.responder.open_stream();
  const views::JobChanges::Id id = changes_.add(call.responder, std::move(sees));
  keep_open(call, [this, id] {
    changes_.remove(id);
    if (changes_.empty()) service_.list.keep_changes(false);
  });
}

void Api::register_job(Call call, jobs::RegisterJobBody body) {
  for (const auto& [pipeline, profile] : body.profile_of) {
    const auto number = number_from<int>("profile_of", pipeline, "the number of a pipeline");
    if (!number) return call.fail(number.error());
    body.job.profile_of.emplace(*number, profile);
  }
  const auto key = idempotency_key_of(call.request);
  if (!key) return call.fail(key.error());
  body.job.idempotency_key = *key;
  body.job.fingerprint = key->empty() ? "" : jobs::content_key(call.request.body);
  const auto answer = then<jobs::RegisterJobAnswer>(call, json_text<jobs::RegisterJobAnswer>);
  jobs::RegisterJob repeated = body.job;
  if (!call.identity.token.empty()) repeated.facts[std::string(live::kOwnerFact)] = call.identity.token;
  auto job = owned(call, std::move(body.job));
  if (job) return service_.registrations.register_job(*std::move(job), answer);
  if (key->empty() || job.error().code != ErrorCode::too_large) return call.fail(job.error());
  // The token's last job already counts.
  service_.registrations.registered_before(repeated, [answer, refused = job.error()](
                                                         const Result<jobs::RegisterJobAnswer>& before) {
    answer(before || before.error().code != ErrorCode::not_found ? before : Result<jobs::RegisterJobAnswer>(refused));
  });
}

void Api::show_job(Call call) {
  service_.job(call.parts[0], then<jobs::JobView>(call, [this](const jobs::JobView& view) {
                 return jobs::job_json(view, options_.factors);
               }));
}

void Api::finish_job(Call call, NoBody /*body*/) {
  service_.operations.finish(call.parts[0], then_ok(call), author_of(call.identity));
}

void Api::delete_job(Call call) { service_.operations.remove(call.parts[0], then_ok(call), author_of(call.identity)); }

void Api::upload_profile(Call call, jobs::ProfileBody body) {
  if (Status room = has_room(call.identity); !room) return call.fail(room.error());
  const auto answer = then<jobs::JobView>(call, [](const jobs::JobView& view) {
    return json_object([&](JsonWriter& f) { f("doubts", view.profile_doubts); });
  });
  const auto uploaded = [this, call, answer](const Result<Ok>& done) {
    done ? service_.job(call.parts[0], answer) : call.fail(done.error());
  };
  service_.uploads.upload(call.parts[0], std::move(body.profile), body.pipelines, uploaded, author_of(call.identity));
}

using Frontier = std::shared_ptr<const jobs::CharacterizedPipeline>;

void Api::frontier(Call call) {
  Parameters parameters(call.request);
  const int pipeline = parameters.take<int>("pipeline", "a pipeline's number").value_or(0);
  if (const auto error = parameters.error()) return call.fail(*error);
  service_.reads.frontier(call.parts[0], pipeline, then<Frontier>(call, [](const Frontier& found) {
                            std::string text;
                            report::write_frontier_data(found->dag, found->frontier,
                                                        [&](std::string_view piece) { text += piece; });
                            return text;
                          }));
}

void Api::timeline(Call call) {
  Parameters parameters(call.request);
  const int pipeline = parameters.take<int>("pipeline", "a pipeline's number").value_or(0);
  const auto point = parameters.take<int>("point", "a point's number");
  if (const auto error = parameters.error()) return call.fail(*error);
  service_.reads.timeline(
      call.parts[0], pipeline, point, then<jobs::TimelineView>(call, [](const jobs::TimelineView& found) {
        std::string text;
        report::write_timeline_data(found.pipeline->dag, found.pipeline->frontier.points[found.point].plan,
                                    found.switch_latency, [&](std::string_view piece) { text += piece; });
        return text;
      }));
}

}  // namespace perseus::routes
