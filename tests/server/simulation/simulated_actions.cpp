// What happens in the simulated cluster, by the dice.
#include <fmt/format.h>

#include <algorithm>

#include "tests/server/simulation/simulated_calls.h"
#include "tests/server/simulation/simulated_cluster.h"

namespace perseus::testing {
namespace {

constexpr std::array kDomains{"hall", "row-a", "row-b"};
constexpr std::array kTeams{"red", "blue"};
constexpr double kAnswer_s = 10;    // ServiceOptions::store_answers_s
constexpr double kAsksOnce_s = 20;  // PlanningOptions::maximum_clock_after_s
constexpr double kGenerous_w = 1e5;

void ignore(const auto& /*answer*/) {}

}  // namespace

SimulatedJob* SimulatedCluster::some_job() {
  return jobs_.empty() ? nullptr : jobs_[dice_.roll(0, static_cast<int>(jobs_.size()) - 1)].get();
}

void SimulatedCluster::act() {
  switch (dice_.roll(0, 29)) {
    case 0:
      return job_comes();
    case 1:
      return job_goes();
    case 2:
      return job_is_removed();
    case 3:
      return rank_ends();
    case 4:
      return job_dies();
    case 5:
    case 6:
    case 7:
      return ranks_return();
    case 8:
    case 9:
    case 10:
      return straggler();
    case 11:
      return straggler_withdrawn();
    case 12:
    case 13:
      return policy();
    case 14:
      return tier();
    case 15:
    case 16:
      return limits();
    case 17:
      return limits_end();
    case 18:
      return meter();
    case 19:
      return admission();
    case 20:
    case 21:
      return train();
    case 22:
      return timed_wait();
    case 23:
    case 24:
      return trouble();
    case 25:
      return kill_within_a_call();
    case 26:
    case 27:
      return network();
    case 28:
      if (trouble_ != Trouble::none) return;
      return stop_in_order();
    default: {
      if (trouble_ != Trouble::none) return;
      const double for_s = dice_.real(1, 60);
      note(fmt::format("the server is killed, and stays down for {:.1f} s", for_s));
      server_->stay_down(seconds_ += for_s, [] {});
      return killed();
    }
  }
}

// ---- Jobs

void SimulatedCluster::job_comes() {
  if (std::ranges::count_if(jobs_, [](const auto& job) { return !job->finished; }) >= 4) return;
  jobs::RegisterJob request;
  request.name = fmt::format("job-{}", ++named_);
  request.degrees = {dice_.one_in(2) ? 1 : dice_.roll(1, 3), 2, 1};
  request.profile = dice_.one_in(2) ? "short" : "long";
  if (request.degrees.dp > 1 && dice_.one_in(3)) {
    request.profile_of[request.degrees.dp - 1] = request.profile == "short" ? "long" : "short";
  }
  request.detect_stragglers = dice_.one_in(2);
  if (dice_.one_in(2)) request.tier.domain = kDomains[dice_.roll(0, 2)];
  if (dice_.one_in(3)) request.tier.least_rate = dice_.one_in(2) ? 0.9 : 0.5;
  request.facts["token"] = fmt::format("token-{}", dice_.roll(0, 1));
  if (dice_.one_in(2)) {
    request.idempotency_key = fmt::format("a key of 16 or more {}", named_);
    request.fingerprint = request.name;
  }
  send_registration(request, 1);
}

/// A client without an answer sends the same request again; only with a key that is the same job.
void SimulatedCluster::send_registration(const jobs::RegisterJob& request, int attempt) {
  note(fmt::format("{} registers: dp {}, {}{}", request.name, request.degrees.dp, request.profile,
                   attempt > 1 ? ", again" : ""));
  const auto registered = [this, request](const jobs::RegisterJobAnswer& answer) {
    require(answer.job, "its registration",
            [](const auto& body) { return std::holds_alternative<jobs::JobRegistered>(body); });
    if (!request.idempotency_key.empty()) {
      const auto known = job_of_key_.emplace(request.idempotency_key, answer.job).first;
      if (known->second != answer.job) broken("a key made two jobs: " + answer.job + ", " + known->second);
    }
    later_.emplace_back([this, id = answer.job, request] { job_arrived(id, request); });
  };
  server_->service().registrations.register_job(
      request, expect<jobs::RegisterJobAnswer>("register " + request.name, 3 * kAnswer_s, registered));
  const bool keyed = !request.idempotency_key.empty();
  if (keyed && (attempt == 1 ? dice_.one_in(2) : dice_.one_in(3))) {
    later_.emplace_back([this, request, attempt] { send_registration(request, attempt + 1); });
  }
  server_->settle();
}

void SimulatedCluster::job_arrived(const std::string& id, const jobs::RegisterJob& request) {
  if (std::ranges::any_of(jobs_, [&](const auto& job) { return job->id == id; })) return;
  ++figures_.jobs;
  auto job = std::make_unique<SimulatedJob>();
  job->id = id;
  job->name = request.name;
  job->token = request.facts.at("token");
  job->request = request;
  job->microbatches = request.profile == "short" ? 3 : 6;
  job->keeps_budgets = !dice_.one_in(6);
  job->paces = dice_.one_in(2);
  const bool patient = dice_.one_in(4);
  const char row = dice_.one_in(2) ? 'a' : 'b';
  for (int rank = 0; rank < request.degrees.world_size(); ++rank) {
    const std::string host = dice_.one_in(5) ? "unknown" : fmt::format("{}-{}", row, rank);
    job->ranks.push_back({BudgetedRank(id, rank, job->microbatches, host)});
    if (patient) job->ranks.back().process.be_patient();
  }
  SimulatedJob& arrived = *job;
  jobs_.push_back(std::move(job));
  subscribe(arrived);
  const bool all = !dice_.one_in(8);  // otherwise the last one comes later
  for (std::size_t rank = 0; rank < arrived.ranks.size() - (all ? 0 : 1); ++rank) start_rank(arrived, rank);
  excused_ = true;
}

void SimulatedCluster::start_rank(SimulatedJob& job, std::size_t rank) {
  SimulatedRank& one = job.ranks[rank];
  note(fmt::format("{}: rank {} starts", job.name, rank));
  one.alive = true;
  one.closed = false;
  one.process.cut_off(0);
  one.contact_s = now_s();
  excused_ = true;
  const auto epoch = std::make_shared<std::int64_t>(0);
  const auto earlier = one.process.waits();
  const auto registered = [this, &job, rank, epoch, earlier](const jobs::RegisterRankAnswer& answer) {
    require(job.id, fmt::format("rank {}, epoch {}", rank, *epoch), [&](const jobs::EventBody& body) {
      const auto* event = std::get_if<jobs::RankRegistered>(&body);
      return event != nullptr && event->rank == static_cast<int>(rank) && event->epoch >= *epoch;
    });
    SimulatedRank& of = job.ranks[rank];
    of.acknowledged = std::max(of.acknowledged, static_cast<double>(*epoch));
    if (static_cast<double>(answer.epoch) < of.acknowledged) broken(job.id + ": the epoch of a rank goes back");
    if (earlier && healthy_for(15)) timed_.push_back({*earlier, now_s() + 1});  // it holds the rank no longer
  };
  auto done = expect<jobs::RegisterRankAnswer>(fmt::format("{}: rank {} registers", job.name, rank), 2 * kAnswer_s,
                                               registered, &job);
  *epoch = one.process.epoch() + 1;
  one.process.start(*server_, job.keeps_budgets, job.paces, std::move(done));
}

void SimulatedCluster::job_goes() {
  SimulatedJob* const job = some_job();
  if (job == nullptr || job->finished || dice_.one_in(2)) return;
  note(job->name + " finishes");
  for (SimulatedRank& rank : job->ranks) {
    if (rank.alive) rank.process.end(*server_, true);
    rank.alive = false;
  }
  job->may_be_gone = true;
  server_->service().operations.finish(
      job->id, expect<Ok>("finish " + job->name, 2 * kAnswer_s, [this, job](const Ok&) {
        require(job->id, "its end", [](const auto& body) { return std::holds_alternative<jobs::JobFinished>(body); });
        job->finished = true;
      }));
  server_->settle();
}

void SimulatedCluster::job_is_removed() {
  SimulatedJob* const job = some_job();
  if (job == nullptr) return;
  const jobs::Job& log = log_of(job->id).job;
  const bool live = log.live() && !job->may_be_gone;
  note("remove " + job->name);
  removal_.insert(job->id);
  server_->service().operations.remove(job->id,
                                       expect<Ok>("remove " + job->name, 2 * kAnswer_s, [this, job, live](const Ok&) {
                                         if (live) broken(job->id + ": a live job was removed");
                                         if (server_->database().has_job(job->id)) broken(job->id + " is still there");
                                       }));
  server_->settle();
}

// ---- Ranks

void SimulatedCluster::rank_ends() {
  SimulatedJob* const job = some_job();
  if (job == nullptr || job->finished) return;
  SimulatedRank& rank = job->ranks[dice_.roll(0, static_cast<int>(job->ranks.size()) - 1)];
  if (!rank.alive) return;
  rank.closed = !dice_.one_in(3);
  note(fmt::format("a rank of {} ends{}", job->name, rank.closed ? "" : ": its host is cut off"));
  rank.process.end(*server_, rank.closed);
  rank.alive = false;
  if (!rank.process.is_cut_off(now_s())) rank.contact_s = std::max(rank.contact_s, now_s());
}

/// Hosts run on and are cut off: their processes return as they were.
void SimulatedCluster::network() {
  SimulatedJob* const job = some_job();
  if (job == nullptr || job->finished) return;
  const double for_s = dice_.one_in(2) ? dice_.real(5, 300) : dice_.real(1, 20) * 3600;
  const bool all = !dice_.one_in(3);
  note(fmt::format("{} of {} are cut off for {:.0f} s", all ? "all hosts" : "some hosts", job->name, for_s));
  for (SimulatedRank& rank : job->ranks) {
    if (!rank.alive || !rank.process.waits() || (!all && dice_.one_in(2))) continue;
    rank.process.end(*server_, false);
    rank.process.cut_off(now_s() + for_s);
    rank.contact_s = std::max(rank.contact_s, now_s());
  }
}

void SimulatedCluster::job_dies() {
  SimulatedJob* const job = some_job();
  if (job == nullptr || job->finished) return;
  const bool closes = !dice_.one_in(3);
  note(fmt::format("all ranks of {} end{}", job->name, closes ? "" : ": their hosts are cut off"));
  for (SimulatedRank& rank : job->ranks) {
    if (!rank.alive) continue;
    rank.process.end(*server_, closes);
    rank.closed = closes;
    rank.alive = false;
    if (!rank.process.is_cut_off(now_s())) rank.contact_s = std::max(rank.contact_s, now_s());
  }
  if (dice_.one_in(2)) pass(dice_.real(60, 130));
}

void SimulatedCluster::ranks_return() {
  SimulatedJob* const job = some_job();
  if (job == nullptr || job->finished) return;
  if (job->may_be_gone && dice_.one_in(2)) return;
  bool any = false;
  for (std::size_t rank = 0; rank < job->ranks.size(); ++rank) {
    if (!job->ranks[rank].alive) any = true, start_rank(*job, rank);
  }
  if (any) return;
  const int restarted = dice_.roll(0, static_cast<int>(job->ranks.size()) - 1);
  if (dice_.one_in(2)) job->ranks[restarted].process.end(*server_, true);
  start_rank(*job, restarted);
}

/// Reports follow each other: two late steps in a row are no straggler yet.
void SimulatedCluster::train() {
  SimulatedJob* const job = some_job();
  if (job == nullptr) return;
  for (int reports = dice_.roll(1, 4); reports > 0 && report(*job); --reports) pass(dice_.real(3, 30));
}

/// All ranks report what they have run since they last did, by the plan; once in a while the first pipeline is late.
bool SimulatedCluster::report(SimulatedJob& of) {
  SimulatedJob* const job = &of;
  const auto cut_off = [this](const SimulatedRank& rank) { return rank.process.is_cut_off(now_s()); };
  if (!job->runs() || !healthy_for(15) || std::ranges::any_of(job->ranks, cut_off)) return false;
  const jobs::Job& log = log_of(job->id).job;
  const auto view = server_->job(job->id);
  if (!view || !log.live() || !log.plan || view->pipelines.empty()) return false;
  const Seconds takes = std::ranges::max(view->pipelines, {}, &jobs::JobView::PipelineView::time).time;
  if (takes <= Seconds(0)) return false;
  const double most = (now_s() - std::max(job->trained_s, log.joined_s)) / takes.value();
  // Of a rank that has not joined the others' restart nothing counts, so nothing is rejected.
  const bool together =
      std::ranges::all_of(log.ranks, [&](const auto& rank) { return rank && rank->restarts == log.restarts; });
  const bool lies = dice_.one_in(3) && together && now_s() < log.created_s + 3500 * takes.value();
  if (log.version != job->steps_of) job->late_steps = 0;
  job->steps_of = log.version;
  // Two late steps after and before two in time are no straggler.
  const bool late = !lies && (job->late_steps == 1 || (job->late_steps <= -2 && dice_.one_in(3)));
  const auto count = lies ? 20'000 : static_cast<std::int64_t>(std::min(most, late ? 1.0 : dice_.roll(1, 40)));
  if (count < 1) return false;
  note(fmt::format("{} reports {} iterations{}", job->name, count, lies ? ", more than there can be" : ""));
  if (!lies) {
    job->trained_s = now_s();
    job->iteration += count;
    job->late_steps = late ? std::max(job->late_steps, 0) + 1 : std::min(job->late_steps, 0) - 1;
  }
  for (std::size_t rank = 0; rank < job->ranks.size(); ++rank) {
    jobs::ReportIterations report;
    report.job = job->id;
    report.rank = static_cast<int>(rank);
    report.epoch = job->ranks[rank].process.epoch();
    report.last_iteration = lies ? job->iteration + count : job->iteration;
    report.plan_version = job->ranks[rank].process.version(now_s());
    report.iteration_time.assign(static_cast<std::size_t>(count), view->pipelines[rank / 2].time);
    if (late && rank < 2) report.iteration_time[0] = 1.6 * report.iteration_time[0];
    const auto reported = [this, lies](const jobs::ReportedIterations& answer) {
      if (lies && answer.rejected.empty()) broken("iterations count that cannot be");
    };
    server_->service().reports.report(
        report,
        expect<jobs::ReportedIterations>(fmt::format("{}: rank {} reports", job->name, rank), kAnswer_s, reported));
    job->ranks[rank].contact_s = now_s();
  }
  server_->settle();
  return true;
}

void SimulatedCluster::timed_wait() {
  SimulatedJob* const job = some_job();
  if (job == nullptr || job->finished) return;
  const int rank = dice_.roll(0, static_cast<int>(job->ranks.size()) - 1);
  SimulatedRank& of = job->ranks[rank];
  if (!of.alive || of.process.is_cut_off(now_s())) return;
  jobs::WaitForPlan request{job->id,           rank, of.process.named_version(), std::nullopt, 1.0 * dice_.roll(1, 20),
                            of.process.epoch()};
  if (dice_.one_in(4)) request.iteration = 1'000'000'000;  // only this rank says so
  if (dice_.one_in(4)) request.asks_once = true, request.max_wait_s.reset();
  note(fmt::format("{}: rank {} waits for {} s", job->name, rank, request.max_wait_s.value_or(kAsksOnce_s)));
  timed_.push_back({server_->wait_for_plan(request), now_s() + request.max_wait_s.value_or(kAsksOnce_s),
                    request.asks_once ? live::kRetryAfter_s : 0});
  of.contact_s = timed_.back().until_s;  // also if its process ends before
  const bool durable = of.acknowledged == static_cast<double>(of.process.epoch()) && of.process.epoch() > 1;
  if (!durable || !healthy_for(15)) return;
  request.epoch = of.process.epoch() - 1;
  const auto answer = server_->answer_of(server_->wait_for_plan(request));
  const bool refused = answer && !*answer && answer->error().code == ErrorCode::conflict;
  if (!refused && log_of(job->id).job.live()) broken(job->id + ": a call of an earlier process is not refused");
}

// ---- Operators

void SimulatedCluster::straggler() {
  SimulatedJob* const job = some_job();
  if (job == nullptr || job->finished) return;
  jobs::SetStraggler request;
  request.job = job->id;
  const int rank = dice_.roll(0, static_cast<int>(job->ranks.size()) - 1);
  switch (dice_.roll(0, 3)) {
    case 0:
      request.target.rank = rank;
      break;
    case 1:
      request.target.accelerator = fmt::format("{}-gpu-{}", job->id, rank);
      if (dice_.one_in(2)) request.job.clear();
      break;
    default:
      request.target.pipeline = rank / 2;
  }
  request.delay = Seconds(dice_.one_in(2) ? 0 : dice_.roll(1, 60));
  request.degree = dice_.one_in(3) ? 1 : 0.9 + 0.1 * dice_.roll(1, 6);
  set_straggler(*job, request, dice_.one_in(4) ? 2 : 1);  // a retry
}

void SimulatedCluster::set_straggler(SimulatedJob& of, const jobs::SetStraggler& request, int times) {
  SimulatedJob* const job = &of;
  note(fmt::format("{}: a straggler by {:.1f} in {:.0f} s", job->name, request.degree, request.delay.value()));
  job->straggled = true;
  straggles_s_.push_back(now_s());
  straggles_s_.push_back(now_s() + request.delay.value());
  // A notice among others that are to come, or an end, may be a new one each time.
  follow_logs();
  bool is_plain = request.degree > 1 && !request.job.empty();
  for (const jobs::Notice& notice : log_of(job->id).job.notices) is_plain &= notice.in_force;
  const auto first = std::make_shared<std::set<std::string>>();
  for (int k = 0; k < times; ++k) {
    server_->service().stragglers.set(
        request, expect<jobs::StragglerSet>("straggler of " + job->name, 4 * kAnswer_s,
                                            [this, first, is_plain](const jobs::StragglerSet& set) {
                                              std::set<std::string> ids;
                                              for (const auto& one : set.notices) ids.insert(one.job + one.id);
                                              if (first->empty()) *first = ids;
                                              if (ids != *first && is_plain) broken("a repeated notice is another one");
                                              for (const auto& one : set.notices) {
                                                if (one.id.empty()) continue;
                                                require(one.job, "notice " + one.id, [&](const jobs::EventBody& body) {
                                                  const auto* event = std::get_if<jobs::StragglerNoticed>(&body);
                                                  return event != nullptr && event->id == one.id;
                                                });
                                              }
                                            }));
  }
  server_->settle();
}

void SimulatedCluster::straggler_withdrawn() {
  SimulatedJob* const job = some_job();
  if (job == nullptr || job->finished) return;
  const auto& notices = log_of(job->id).job.notices;
  const std::string id = notices.empty() ? "s1" : notices[dice_.roll(0, static_cast<int>(notices.size()) - 1)].id;
  note(fmt::format("{}: {} is withdrawn", job->name, id));
  straggles_s_.push_back(now_s());
  server_->service().stragglers.withdraw({job->id, id},
                                         expect<Ok>("withdraw", 2 * kAnswer_s, [this, job, id](const Ok&) {
                                           require(job->id, "withdrawal of " + id, [&](const jobs::EventBody& body) {
                                             const auto* event = std::get_if<jobs::StragglerWithdrawn>(&body);
                                             return event != nullptr && event->id == id;
                                           });
                                         }));
  server_->settle();
}

void SimulatedCluster::policy() {
  SimulatedJob* const job = some_job();
  if (job == nullptr || job->finished) return;
  if (dice_.one_in(3)) {
    const std::string kind = dice_.one_in(2) ? "pinned" : "max_slowdown";
    note(fmt::format("{}: no policy {}", job->name, kind));
    server_->service().operations.clear_policy({job->id, kind}, expect<Ok>("clear policy", 2 * kAnswer_s));
  } else {
    jobs::SetPolicy request{job->id, jobs::Pin{std::nullopt, dice_.roll(0, 40)}};
    if (dice_.one_in(2)) { return set_signal(*job, 25); }
    note(fmt::format("{}: policy {}", job->name, jobs::kind_of(request.policy)));
    server_->service().operations.set_policy(
        request, expect<jobs::PolicyChanged>("policy", 2 * kAnswer_s, [this, request](const jobs::PolicyChanged&) {
          require(request.job, "policy", [&](const jobs::EventBody& body) {
            const auto* event = std::get_if<jobs::PolicySet>(&body);
            return event != nullptr && event->policy == request.policy;
          });
        }));
  }
  straggles_s_.push_back(now_s());
  server_->settle();
}

void SimulatedCluster::set_signal(SimulatedJob& job, double falls_in_s) {
  const jobs::SetPolicy request{
      job.id, jobs::MaxSlowdown{1 + 0.1 * dice_.roll(0, 3), 5, {{now_s() - 5, 9}, {now_s() + falls_in_s, 1}}, "EUR"}};
  straggles_s_.push_back(now_s());
  straggles_s_.push_back(now_s() + falls_in_s);
  note(fmt::format("{}: a signal that falls in {:.0f} s", job.name, falls_in_s));
  server_->service().operations.set_policy(request, expect<jobs::PolicyChanged>("signal", 2 * kAnswer_s));
  server_->settle();
}

void SimulatedCluster::tier() {
  SimulatedJob* const job = some_job();
  if (job == nullptr || job->finished) return;
  jobs::SetTier request;
  request.job = job->id;
  request.reset = dice_.one_in(4);
  if (dice_.one_in(2)) request.tier.domain = kDomains[dice_.roll(0, 2)];
  if (dice_.one_in(2)) request.tier.priority = dice_.roll(1, 5);
  if (dice_.one_in(2)) request.tier.least_rate = dice_.real(0, 1);
  note(fmt::format("{}: another tier", job->name));
  excused_ = true;
  const jobs::Tier before = log_of(job->id).job.operator_tier;
  const bool quiet = trouble_ == Trouble::none && calls_.empty();
  server_->service().operations.set_tier(
      request, expect<Ok>("tier", 2 * kAnswer_s, [this, request, before, quiet](const Ok&) {
        if (!quiet) return;
        follow_logs();
        jobs::Tier wanted = request.reset ? jobs::Tier{} : before;
        if (!request.tier.domain.empty()) wanted.domain = request.tier.domain;
        if (request.tier.priority) wanted.priority = request.tier.priority;
        if (request.tier.least_rate) wanted.least_rate = request.tier.least_rate;
        const auto log = logs_.find(request.job);
        if (log != logs_.end() && !(log->second.job.operator_tier == wanted)) {
          broken(request.job + ": the tier is not what was set and what was there before");
        }
      }));
  server_->settle();
}

// ---- The site

void SimulatedCluster::limits() {
  std::string domains;
  double watts = 0;
  for (const auto& job : jobs_) {
    if (!job->finished) watts += 525.0 * job->request.degrees.dp;
  }
  watts = std::max(500.0, watts);
  const bool generous = dice_.one_in(4);
  for (int d = 0; d < 3; ++d) {
    std::string limits;
    double from_s = 0;
    for (int steps = d == 0 ? dice_.roll(1, 3) : dice_.roll(0, 2); steps > 0; --steps) {
      const double limit_w = generous ? kGenerous_w : watts * dice_.real(d == 0 ? 0.5 : 0.3, 1.1);
      limits += fmt::format(R"({}{{"from_s":{},"limit_w":{}}})", limits.empty() ? "" : ",", from_s, limit_w);
      from_s = std::max(from_s, now_s()) + dice_.real(5, 60);
    }
    domains += fmt::format(R"({}{{"name":"{}",{}"limits":[{}]}})", d == 0 ? "" : ",", kDomains[d],
                           d == 0 ? "" : R"("parent":"hall",)", limits);
  }
  const bool paces = !dice_.one_in(3);
  const std::string text =
      fmt::format(R"({{"domains":[{}],"hosts":[{{"prefix":"a-","domain":"row-a"}},{{"prefix":"b-","domain":"row-b"}}],)"
                  R"("dwell_s":{},"lease_s":{},"pacing":{}}})",
                  domains, dice_.roll(1, 10), dice_.roll(15, 30), paces);
  const auto document = jobs::parse_site_document(text, "site");
  PERSEUS_CHECK(document.ok(), "a site document");
  note("limits: " + text);
  excused_ = true;
  pacing_ = paces;
  site_sure_ = generous_ = false;
  const auto acknowledged = [this, generous, text = *document](const Ok&) {
    has_site_ = site_sure_ = true;
    generous_ = generous;
    site_text_ = jobs::format_site_document(text);
  };
  server_->service().site.documents().set(*document, {}, expect<Ok>("limits", 2 * kAnswer_s, acknowledged));
  server_->settle();
  server_->service().tick();
  server_->settle();
}

void SimulatedCluster::limits_end() {
  if (!has_site_) return;
  note("there are no limits any more");
  excused_ = true;
  site_sure_ = false;
  server_->service().site.documents().clear(expect<Ok>("no limits", 2 * kAnswer_s, [this](const Ok&) {
    site_sure_ = true;
    site_text_.clear();
  }));
  server_->settle();
}

void SimulatedCluster::meter() {
  if (!has_site_) return;
  const double watts = dice_.real(100, 3000);
  note(fmt::format("a meter reads {:.0f} W", watts));
  excused_ = true;
  generous_ = false;
  server_->service().site.take_readings({{"hall", now_s(), Watts(watts)}}, expect<Ok>("meter", 2 * kAnswer_s));
  server_->settle();
}

void SimulatedCluster::admission() {
  if (!has_site_) return;
  const std::string name = fmt::format("admitted-{}", dice_.roll(0, 3));
  excused_ = true;
  if (dice_.one_in(3)) {
    note(name + " is released");
    server_->service().admissions.release(
        name, expect<Ok>("release", 3 * kAnswer_s, [this, name](const Ok&) { reserved_.erase(name); }));
  } else {
    note(name + " asks for admission");
    jobs::AdmissionRequest request;
    request.job = name;
    request.domain = kDomains[dice_.roll(0, 2)];
    request.accelerators = 2;
    request.profile = "short";
    server_->service().admissions.admit(
        request, expect<power::Admission>("admission", 4 * kAnswer_s, [this, name](const power::Admission& answer) {
          if (answer.reserved) reserved_.insert(name);
        }));
  }
  server_->settle();
}

// ---- Trouble

void SimulatedCluster::trouble() {
  if (trouble_ != Trouble::none) return;
  const int kind = dice_.roll(0, 5);
  const double for_s = kind > 3 || dice_.one_in(2) ? dice_.real(0.1, 9) : dice_.real(9, 40);
  if (SimulatedJob* const job = some_job(); job != nullptr && !job->finished && dice_.one_in(2)) {
    // What is announced becomes due meanwhile, and mostly so early that it shows whether ranks follow.
    const double most_s = dice_.one_in(4) ? for_s + 1 : std::max(1.0, for_s / 2);
    for (int notices = dice_.roll(0, 2); notices > 0; --notices) {
      jobs::SetStraggler request{job->id, {}, Seconds(dice_.real(0.5, most_s)), 1 + 0.1 * dice_.roll(1, 6)};
      request.target.pipeline = 0;
      set_straggler(*job, request);
    }
    if (dice_.one_in(2)) set_signal(*job, dice_.real(0.5, most_s));
  }
  trouble_s_ = now_s();
  trouble_until_s_ = now_s() + for_s;
  switch (kind) {
    case 0:
      trouble_ = Trouble::hangs;
      server_->freeze_store(true);
      break;
    case 1:
      trouble_ = Trouble::refuses;
      server_->break_store(true);
      break;
    case 2:
      trouble_ = Trouble::full;
      server_->fill_disk(true);
      break;
    case 3:
      trouble_ = Trouble::loses_answers;
      server_->lose_answers(true);
      break;
    case 4:
      trouble_ = Trouble::reads_are_late;
      server_->hold_answers(true);
      break;
    default:
      trouble_ = Trouble::results_are_late;
      server_->hold_results(true);
  }
  constexpr std::array names{"",
                             "hangs",
                             "refuses everything",
                             "refuses changes",
                             "loses its answers",
                             "reads late",
                             "answers in time, and the planner late,"};
  note(fmt::format("the database {} for {:.1f} s", names[static_cast<std::size_t>(trouble_)], for_s));
  // Something is under way meanwhile.
  for (int k = dice_.roll(0, 3); k > 0; --k) {
    dice_.one_in(2) ? straggler() : dice_.one_in(2) ? policy() : ranks_return();
    one_moment(dice_.real(0, 3));
  }
}

/// Nothing that was reported is lost.
void SimulatedCluster::stop_in_order() {
  note("the server stops in order and starts");
  std::vector<std::pair<SimulatedJob*, std::int64_t>> counted;
  const auto total_of = [this](const SimulatedJob& job) {
    const auto view = server_->job(job.id);
    return view && view->total ? view->total->iterations : 0;
  };
  for (const auto& job : jobs_) {
    if (dice_.one_in(2)) (void)report(*job);
    if (healthy_for(15) && log_of(job->id).job.live()) counted.emplace_back(job.get(), total_of(*job));
  }
  server_->stop_and_start();
  killed();
  for (const auto& [job, before] : counted) {
    const std::int64_t now = total_of(*job);
    if (now != before)
      broken(fmt::format("{}: {} iterations count after an orderly stop, {} before", job->id, now, before));
    job->counted = now;
  }
}

/// A client gets no answer; what of it is durable, the dice decide.
void SimulatedCluster::kill_within_a_call() {
  SimulatedJob* const job = some_job();
  if (job == nullptr || job->finished) return;
  jobs::SetStraggler request{job->id, {}, Seconds(dice_.one_in(2) ? 0 : 20), 1 + 0.1 * dice_.roll(0, 3)};
  request.target.pipeline = 0;
  job->straggled = true;
  straggles_s_.push_back(now_s());
  straggles_s_.push_back(now_s() + request.delay.value());
  const int pieces = dice_.roll(0, 3);
  note(fmt::format("a straggler of {}; the server is killed after {} pieces of work", job->name, pieces));
  server_->service().stragglers.set(request, [](const Result<jobs::StragglerSet>& answer) { ignore(answer); });
  server_->step(pieces);
  // Power is lost for the database, too: what it has not committed is gone, and it starts anew.
  end_trouble();
  server_->hold_answers(false);
  server_->hold_results(false);
  server_->lose_power();
  killed();
}

}  // namespace perseus::testing
