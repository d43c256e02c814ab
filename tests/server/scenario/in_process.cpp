#include "tests/server/scenario/in_process.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "server/routes/site_json.h"

namespace perseus::testing {

using namespace jobs;
using namespace service;

InProcess::InProcess(service::ServiceOptions options, std::shared_ptr<TestDatabase> database)
    : options_(std::move(options)), database_(std::move(database)) {
  restart();
}

InProcess::~InProcess() {
  service_.reset();
  store_.reset();
}

void InProcess::kill() {
  service_.reset();
  store_.reset();
  queue_.clear();
  held_.clear();
  held_refining_.clear();
  held_answers_.clear();
  held_results_.clear();
  at_store_.clear();
}

void InProcess::restart() {
  kill();
  store_ = std::make_unique<TestStore>([this](std::function<void()> work) { to_store(std::move(work)); }, database_);
  database_->may_read = true;
  auto opened = service::Service::open(options_, *store_, clock_, *this);
  database_->may_read = false;
  PERSEUS_CHECK(opened.ok(), opened.ok() ? "" : opened.error().message.c_str());
  service_ = *std::move(opened);
  service_->tick();
  settle();
}

void InProcess::stay_down(double seconds, const std::function<void()>& meanwhile) {
  kill();
  while (clock_.now_s() < start_s_ + seconds) {
    clock_.turn_to(std::min(clock_.now_s() + 0.25, start_s_ + seconds));
    meanwhile();
  }
  restart();
}

void InProcess::lose_power() {
  kill();
  frozen_ = false;
  restart();
}

void InProcess::sleep_until(double seconds) {
  clock_.turn_to(std::max(start_s_ + seconds, clock_.now_s()));
  service_->tick();
  settle();
}

void InProcess::stop_and_start() {
  auto kept = std::make_shared<bool>(false);
  service_->drain(options_.store_answers_s, [kept](const Result<Ok>&) { *kept = true; });
  settle();
  PERSEUS_CHECK(*kept, "drain() does not end");
  restart();
}

void InProcess::submit(Kind kind, Work work) {
  if (kind == Kind::store) {
    return to_store([this, work = std::move(work)] {
      database_->may_read = true;
      const auto answer = work();
      database_->may_read = false;
      holding_answers_ ? held_answers_.push_back(answer) : answer();
    });
  }
  if (holding_ && kind != Kind::request) {
    held_.push_back(std::move(work));
    return;
  }
  if (holding_refining_ && kind == Kind::refining) {
    held_refining_.push_back(std::move(work));
    return;
  }
  queue_.push_back([this, work = std::move(work)] {
    auto result = work();
    holding_results_ ? held_results_.push_back(std::move(result)) : result();
  });
}

void InProcess::hold_answers(bool hold) {
  holding_answers_ = hold;
  if (hold) return;
  std::ranges::move(std::exchange(held_answers_, {}), std::back_inserter(queue_));
  settle();
}

void InProcess::hold_results(bool hold) {
  holding_results_ = hold;
  if (hold) return;
  std::ranges::move(std::exchange(held_results_, {}), std::back_inserter(queue_));
  settle();
}

void InProcess::hold_refining(bool hold) {
  holding_refining_ = hold;
  if (hold) return;
  for (Work& work : std::exchange(held_refining_, {})) submit(Kind::refining, std::move(work));
  settle();
}

void InProcess::hold_work(bool hold) {
  holding_ = hold;
  if (hold) return;
  for (Work& work : std::exchange(held_, {})) submit(Kind::planning, std::move(work));
  settle();
}

void InProcess::to_store(std::function<void()> work) { (frozen_ ? at_store_ : queue_).push_back(std::move(work)); }

void InProcess::freeze_store(bool frozen) {
  frozen_ = frozen;
  if (frozen) return;
  std::ranges::move(std::exchange(at_store_, {}), std::back_inserter(queue_));
  settle();
}

void InProcess::break_store(bool broken) {
  database_->failure = broken ? std::optional(Error{ErrorCode::unavailable, "the disk is full"}) : std::nullopt;
}

void InProcess::step(int pieces) {
  for (; pieces > 0 && !queue_.empty(); --pieces) {
    const auto work = std::move(queue_.front());
    queue_.pop_front();
    work();
  }
}

void InProcess::settle() {
  while (!queue_.empty()) step(1);
}

void InProcess::go_to(double seconds) {
  go_to_as_due(seconds);
  service_->tick();
  settle();
}

void InProcess::go_to_as_due(double seconds) {
  constexpr int most_at_once = 10;  // what one moment's work makes due at the same moment
  const double until_s = start_s_ + seconds;
  int at_once = 0;
  settle();
  while (true) {
    const auto next = service_->next_wake();
    if (!next || *next > until_s) break;
    // A store that does not answer is polled without end; time must advance nevertheless.
    clock_.turn_to(std::max(*next, clock_.now_s()));
    service_->tick();
    settle();
    at_once = service_->next_wake() == next ? at_once + 1 : 0;
    if (at_once > most_at_once) break;
  }
  clock_.turn_to(std::max(until_s, clock_.now_s()));
}

template <class T>
Result<T> InProcess::answer(const std::function<void(work::Done<T>)>& call) {
  // Shared, because the answer may come when a restart has ended this function call.
  auto result = std::make_shared<std::optional<Result<T>>>();
  call([result](Result<T> value) {
    PERSEUS_CHECK(!*result, "a second answer");
    *result = std::move(value);
  });
  settle();
  PERSEUS_CHECK(result->has_value(), "no answer");
  return **result;
}

namespace {

Status status_of(const auto& result) {
  if (result) return Ok{};
  return result.error();
}

}  // namespace

Status InProcess::put_profile(const jobs::NamedProfile& profile) {
  return status_of(answer<jobs::StoredProfile>([&](auto done) { service_->profiles.put(profile, done); }));
}
Result<jobs::RegisterJobAnswer> InProcess::register_job(const jobs::RegisterJob& request) {
  return answer<jobs::RegisterJobAnswer>([&](auto done) { service_->registrations.register_job(request, done); });
}
Status InProcess::register_rank(const jobs::RegisterRank& request) {
  return status_of(
      answer<jobs::RegisterRankAnswer>([&](auto done) { service_->registrations.register_rank(request, done); }));
}
Status InProcess::upload_profile(const std::string& job, const jobs::NamedProfile& profile) {
  return answer<Ok>([&](auto done) { service_->uploads.upload(job, profile, {}, done); });
}
Status InProcess::report_iterations(const jobs::ReportIterations& request) {
  return status_of(answer<jobs::ReportedIterations>([&](auto done) { service_->reports.report(request, done); }));
}
Status InProcess::drop_plan(const jobs::DropPlan& request) {
  return answer<Ok>([&](auto done) { service_->operations.drop_plan(request, done); });
}
Status InProcess::see_shape(const jobs::SeeShape& request) {
  return answer<Ok>([&](auto done) { service_->operations.see_shape(request, done); });
}
Status InProcess::finish_job(const std::string& job) {
  return answer<Ok>([&](auto done) { service_->operations.finish(job, done); });
}
Result<jobs::StragglerSet> InProcess::set_straggler(const jobs::SetStraggler& request) {
  return answer<jobs::StragglerSet>([&](auto done) { service_->stragglers.set(request, done); });
}
Status InProcess::withdraw_straggler(const jobs::WithdrawStraggler& request) {
  return answer<Ok>([&](auto done) { service_->stragglers.withdraw(request, done); });
}
Status InProcess::set_policy(const jobs::SetPolicy& request) {
  const auto set = answer<jobs::PolicyChanged>([&](auto done) { service_->operations.set_policy(request, done); });
  return set ? Status(Ok{}) : Status(set.error());
}
Status InProcess::clear_policy(const jobs::ClearPolicy& request) {
  return answer<Ok>([&](auto done) { service_->operations.clear_policy(request, done); });
}
Status InProcess::set_tier(const jobs::SetTier& request) {
  return answer<Ok>([&](auto done) { service_->operations.set_tier(request, done); });
}
Result<jobs::JobView> InProcess::job(const std::string& job) {
  const auto view = [&] { return answer<jobs::JobView>([&](auto done) { service_->job(job, done); }); };
  (void)view().ok();  // the view may have scheduled work
  return view();
}

Status InProcess::set_site(const std::string& document) {
  if (document.empty()) {
    return status_of(answer<Ok>([&](auto done) { service_->site.documents().clear(done); }));
  }
  const auto parsed = jobs::parse_site_document(document, "body");
  if (!parsed) return parsed.error();
  Status set = status_of(answer<Ok>([&](auto done) { service_->site.documents().set(*parsed, {}, done); }));
  service_->tick();
  settle();
  return set;
}
Status InProcess::read_meter(const std::string& readings) {
  const auto parsed = jobs::parse_meter_readings(readings, "body");
  if (!parsed) return parsed.error();
  return status_of(answer<Ok>([&](auto done) { service_->site.take_readings(*parsed, done); }));
}
Result<std::string> InProcess::admit(const std::string& request) {
  const auto parsed = jobs::parse_admission_request(request, "body");
  if (!parsed) return parsed.error();
  const auto admission = answer<power::Admission>([&](auto done) { service_->admissions.admit(*parsed, done); });
  if (!admission) return admission.error();
  return routes::admission_json(*admission);
}
Status InProcess::release_admission(const std::string& job) {
  return status_of(answer<Ok>([&](auto done) { service_->admissions.release(job, done); }));
}
Result<std::string> InProcess::site_power() {
  const auto view = service_->site.view();
  if (!view) return view.error();
  return routes::site_power_json(*view);
}

int InProcess::wait_for_plan(const jobs::WaitForPlan& request) {
  auto result = std::make_shared<std::optional<Result<jobs::PlanAnswer>>>();
  waits_.push_back(result);
  wait_ids_.push_back(service_->waiting.wait(request, [result](Result<jobs::PlanAnswer> value) {
    PERSEUS_CHECK(!*result, "a second answer");
    *result = std::move(value);
  }));
  settle();
  return static_cast<int>(waits_.size()) - 1;
}

std::optional<Result<jobs::PlanAnswer>> InProcess::answer_of(int wait) { return *waits_[wait]; }
void InProcess::close_wait(int wait) {
  service_->waiting.closed(wait_ids_[wait]);
  settle();
}

void InProcess::lose_wait(int wait) {
  service_->waiting.cancel(wait_ids_[wait]);
  settle();
}

std::shared_ptr<TestDatabase> database_with(const std::map<std::string, int>& small_profiles,
                                            const service::ServiceOptions& options) {
  static std::map<std::map<std::string, int>, std::map<std::string, std::string, std::less<>>> planned;
  const auto [known, is_new] = planned.try_emplace(small_profiles);
  if (is_new) {
    InProcess target(options);
    for (const auto& [name, microbatches] : small_profiles) {
      PERSEUS_CHECK(target.put_profile(small_profile(name, microbatches)).ok(), "put_profile");
    }
    known->second = target.database().blobs();
  }
  auto database = std::make_shared<TestDatabase>();
  for (const auto& [key, bytes] : known->second) database->put_blob(key, bytes);
  return database;
}

jobs::RegisterRank rank_of(const std::string& job, const jobs::Degrees& degrees, int rank) {
  jobs::RegisterRank request;
  request.job = job;
  request.rank = rank;
  request.dp_rank = rank / (degrees.pp * degrees.tp);
  request.pp_rank = rank / degrees.tp % degrees.pp;
  request.tp_rank = rank % degrees.tp;
  return request;
}

jobs::NamedProfile small_profile(const std::string& name, int microbatches) {
  static const std::string csv = [] {
    std::ifstream file(std::string(PERSEUS_SOURCE_DIR) + "/tests/server/scenario/small.csv");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  jobs::NamedProfile profile;
  profile.name = name;
  profile.profile_csv = csv;
  profile.shape.microbatches = microbatches;
  profile.shape.blocking_power = Watts(70);
  return profile;
}

}  // namespace perseus::testing
