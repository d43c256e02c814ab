// What the server promises, as a client, an operator, or a reader of the log can check it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/server/scenario/deployed_plan.h"
#include "tests/server/simulation/simulated_calls.h"
#include "tests/server/simulation/simulated_cluster.h"

namespace perseus::testing {
namespace {

constexpr double kSlack_w = 1e-3, kMixed = 1.03;  // clocks of two plans may draw more than either
const Watts kMostOfARank_w(260);
constexpr double kLate_s = 0.5;                         // what is due may be seen so much later
constexpr double kLongestLease_s = 30, kSilent_s = 45;  // a rank is silent the lease and so long after its last call

bool is_provisional(std::int64_t version) { return version >= live::kProvisional; }

}  // namespace

void SimulatedCluster::check(bool thorough) {
  follow_logs();
  for (std::size_t k = 0; k < jobs_.size(); ++k) {
    if (logs_.contains(jobs_[k]->id)) {
      check_job(*jobs_[k], thorough);
      continue;
    }
    gone_.push_back(std::move(jobs_[k]));
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(k--));
  }
  check_site();
  check_calls();
  check_tokens();
  if (!failure_.empty()) throw BrokenPromise(failure_);
}

// ---- The log

FollowedLog& SimulatedCluster::log_of(const std::string& id) { return logs_.try_emplace(id, id).first->second; }

void SimulatedCluster::follow_logs() {
  const TestDatabase& database = server_->database();
  if (followed_writes_ == database.writes && followed_jobs_ == logs_.size()) return;
  std::set<std::string, std::less<>> stored;
  for (const store::JobIndexRow& row : database.jobs()) {
    const std::string& id = *stored.insert(row.job).first;
    FollowedLog& log = log_of(id);
    if (log.job.sequence == row.last_sequence) continue;
    if (log.job.sequence > row.last_sequence) broken(id + ": committed events are gone");
    const std::size_t before = log.events.size();
    if (Status followed = log.follow(database); !followed) broken(id + ": " + followed.error().message);
    for (std::size_t k = before; k < log.events.size(); ++k) {
      const jobs::EventBody& body = log.events[k].body;
      // It counts again for what its ranks may draw.
      excused_ |= std::holds_alternative<jobs::JobHeard>(body) || std::holds_alternative<jobs::JobRevived>(body) ||
                  std::holds_alternative<jobs::RankRegistered>(body);
      note(fmt::format("    {} #{}: {}", id.substr(id.size() - 4), k + 1,
                       jobs::format_event(log.events[k]).substr(0, 200)));
    }
  }
  std::erase_if(logs_, [&](const auto& one) {
    const bool is_gone = !stored.contains(one.first);
    if (is_gone && !one.second.events.empty() && !removal_.contains(one.first)) broken(one.first + ": it is gone");
    return is_gone;
  });
  followed_writes_ = database.writes;
  followed_jobs_ = logs_.size();
}

void SimulatedCluster::require(const std::string& id, const std::string& what,
                               const std::function<bool(const jobs::EventBody&)>& is) {
  if (removal_.contains(id)) return;
  follow_logs();
  const auto log = logs_.find(id);
  const bool there = log != logs_.end() &&
                     std::ranges::any_of(log->second.events, [&](const jobs::Event& event) { return is(event.body); });
  if (!there) broken(fmt::format("{}: {} is acknowledged and not in the database", id, what));
}

/// Each event once, in its order, when it is durable.
void SimulatedCluster::subscribe(SimulatedJob& job) {
  server_->service().subscriptions.subscribe(
      job.id, job.streamed,
      [this, &job, run = run_](const jobs::JobEvent& event) {
        if (run != run_ || event.kind == jobs::kJobRemoved || event.kind == jobs::kPartOver) return;
        if (event.sequence != job.streamed + 1) {
          broken(fmt::format("{}: event {} comes after {}", job.id, event.sequence, job.streamed));
        }
        job.streamed = event.sequence;
        const TestDatabase& database = server_->database();
        if (database.has_job(job.id) && database.log(job.id, event.sequence - 1).empty()) {
          broken(fmt::format("{}: event {} is shown before it is durable", job.id, event.sequence));
        }
      },
      [](const auto&) {});
}

// ---- Ranks

void SimulatedCluster::take_answer(SimulatedJob& job, SimulatedRank& rank) {
  const auto wait = rank.process.waits();
  if (!wait || *wait == rank.seen) return;
  if (!server_->is_answered(*wait)) return;
  const auto answer = server_->answer_of(*wait);
  rank.seen = *wait;
  const std::size_t number = static_cast<std::size_t>(&rank - job.ranks.data());
  if (!*answer) {
    const Error& error = answer->error();
    note(fmt::format("  {}: rank {} gets {}", job.name, number, entry_of(error.code).name));
    check_error({fmt::format("{}: rank {}'s plan", job.id, number), rank.process.asked_s()}, error);
    if (error.code == ErrorCode::not_found && !removal_.contains(job.id)) {
      later_.emplace_back([this, &job, number] {
        if (job.ranks[number].alive) start_rank(job, number);
      });
    }
    if (error.code == ErrorCode::conflict || removal_.contains(job.id)) rank.alive = false;
    return;
  }
  const auto& schedule = (*answer)->schedule;
  if (!schedule) return;
  note(fmt::format("  {}: rank {} gets version {}", job.name, number, schedule->version));
  follow_logs();
  const jobs::Job& log = log_of(job.id).job;
  const bool asked_since = rank.process.asked_s() > log.updated_s;
  if (log.state == jobs::JobState::expired && asked_since && trouble_ == Trouble::none) {
    broken(fmt::format("{}: rank {} gets a plan, and its job has expired", job.id, number));
  }
  std::vector<int> clocks;
  for (const auto& one : schedule->clocks) clocks.push_back(static_cast<int>(one.clock.value()));
  const std::string what =
      fmt::format("{} MHz, {} %, {}", fmt::join(clocks, " "), schedule->saving_pct.value_or(-1), schedule->reason);
  const auto known = job.plans.try_emplace({schedule->version, static_cast<int>(number)}, what).first;
  if (known->second != what) {
    broken(fmt::format("{}: version {} is two plans: {}; {}", job.id, schedule->version, known->second, what));
  }
  if (is_provisional(schedule->version)) return;
  if (schedule->version > log_of(job.id).version) broken(job.id + ": a rank has a plan that is not durable");
  if (schedule->version < rank.version) broken(job.id + ": a rank's plan goes back");
  rank.version = schedule->version;
}

void SimulatedCluster::check_ranks(SimulatedJob& job, const jobs::Job& log) {
  for (std::size_t number = 0; number < job.ranks.size(); ++number) {
    SimulatedRank& rank = job.ranks[number];
    if (log.ranks[number] && static_cast<double>(log.ranks[number]->epoch) < rank.acknowledged) {
      broken(fmt::format("{}: the epoch of rank {} goes back", job.id, number));
    }
    const auto wait = rank.process.waits();
    if (!rank.alive || !wait || server_->is_answered(*wait)) continue;
    check_due(job, rank, log);
    if (!healthy_for(15)) continue;
    const double waited_s = now_s() - std::max(rank.process.asked_s(), awake_s_);
    if (log.live() && log.plan && log.plan->version == log.version && log.version != rank.process.named_version()) {
      broken(fmt::format("{}: rank {} waits with version {}, and {} is durable", job.id, number,
                         rank.process.named_version(), log.version));
    }
    if (!log.live()) broken(fmt::format("{}: rank {} waits for a job that has ended", job.id, number));
    if (log.plan && log.plan->budget && waited_s > log.plan->budget->lease_s / 3 + 2) {
      broken(fmt::format("{}: rank {} waits for {:.1f} s, its lease is {} s", job.id, number, waited_s,
                         log.plan->budget->lease_s));
    }
  }
}

void SimulatedCluster::check_due(const SimulatedJob& job, const SimulatedRank& rank, const jobs::Job& log) {
  constexpr double late_s = 3;  // as long may the database take before it counts as late
  const bool lasts = trouble_ != Trouble::none && now_s() < trouble_until_s_ && now_s() > trouble_s_ + late_s &&
                     up_s_ < trouble_s_ && awake_s_ < trouble_s_;
  const bool known = log.live() && log.plan && log.plan->version == log.version &&
                     rank.process.named_version() == log.version && !log.plan->budget && !has_site_;
  if (!lasts || !known || trouble_ == Trouble::results_are_late) return;
  const int pipeline = static_cast<int>(&rank - job.ranks.data()) / 2;
  const auto wanted = wanted_points(server_->database(), log, now_s());
  if (wanted.empty() || wanted != wanted_points(server_->database(), log, now_s() - late_s)) return;
  if (wanted[pipeline] != log.plan->of(pipeline).point) {
    broken(fmt::format("{}: a rank waits with version {}, point {}; {} is due", job.id, log.version,
                       log.plan->of(pipeline).point, wanted[pipeline]));
  }
}

// ---- Jobs

void SimulatedCluster::check_job(SimulatedJob& job, bool thorough) {
  const jobs::Job& log = log_of(job.id).job;
  if (log.state == jobs::JobState::none) return;
  if (job.finished && log.state != jobs::JobState::finished) broken(job.id + ": it had finished");
  if (log.state == jobs::JobState::finished) {
    if (!job.may_be_gone) broken(job.id + ": nobody has finished it");
    job.finished = true;
  }
  if (log.state == jobs::JobState::expired) {
    for (const SimulatedRank& rank : job.ranks) {
      // After a restart the log says to an eighth when a rank has called. At the moment of the end it called after it.
      const double before_s = log.updated_s - rank.contact_s;
      if (before_s > 0 && before_s < 0.875 * options_.idle_expiry_s)
        broken(job.id + ": it expired, and a rank had called");
    }
  }
  for (const jobs::Notice& notice : log.notices) {
    if (notice.detected) broken(job.id + ": a straggler is seen where all ranks are in time");
  }
  if (log.plan && log.plan->from_iteration > 1'000'000) broken(job.id + ": one rank's word moved its iteration");
  const bool granted = log.live() && log.grant && log.grant->granted_w;
  if (granted && !job.keeps_budgets) broken(job.id + ": watts are granted to ranks that keep no budget");
  if (granted && !has_site_ && healthy_for(30)) broken(job.id + ": it has a grant, and there are no limits");
  check_grant(job, log);
  check_ranks(job, log);
  check_silence(job, log);
  if (trouble_ == Trouble::hangs && now_s() < trouble_until_s_) check_durable_view(job, log);
  // Events follow at once where the database accepts them.
  if (!healthy_for(15)) return;
  // Before the view, which would be an occasion to do what is due.
  if (Status plan = check_deployed_plan(server_->database(), log, now_s()); !plan) broken(plan.error().message);
  if (thorough || log.sequence != job.viewed) check_view(job, log);
  job.viewed = log.sequence;
  if (log.live() && job.streamed < log.sequence) broken(job.id + ": its stream lacks events");
}

void SimulatedCluster::check_grant(SimulatedJob& job, const jobs::Job& log) {
  const auto granted_w = log.grant ? log.grant->granted_w : std::nullopt;
  const double correction = log.grant ? log.grant->correction : 1;
  if (log.silent && job.was_silent && granted_w && job.granted_w && correction == job.correction &&
      *granted_w > *job.granted_w + kSlack_w) {
    broken(fmt::format("{}: it is silent, and its grant grows from {:.3f} to {:.3f} W", job.id, *job.granted_w,
                       *granted_w));
  }
  if (granted_w && !job.granted_w && generous_ && site_sure_ && healthy_for(30)) {
    broken(fmt::format("{}: {:.3f} W are granted, and no limit is near", job.id, *granted_w));
  }
  job.granted_w = granted_w;
  job.correction = correction;
  job.was_silent = log.silent.has_value();
}

void SimulatedCluster::check_silence(SimulatedJob& job, const jobs::Job& log) {
  if (!log.live() || log.ranks_registered == 0 || !healthy_for(15)) return;
  double contact_s = std::max({up_s_, awake_s_, log.joined_s});
  bool waits = false, calls = false;
  for (const SimulatedRank& rank : job.ranks) {
    contact_s = std::max(contact_s, rank.contact_s);
    waits |= rank.alive && rank.process.waits() && !server_->is_answered(*rank.process.waits());
    calls |= rank.alive && !rank.process.is_cut_off(now_s()) && now_s() - rank.process.asked_s() < kSilent_s;
  }
  const double patience_s = kLongestLease_s + kSilent_s + kLate_s;
  if (waits && log.silent) broken(job.id + ": it counts as silent, and a rank of it waits");
  const bool dead = std::ranges::all_of(
      job.ranks, [this](const SimulatedRank& rank) { return !rank.alive || rank.process.is_cut_off(now_s()); });
  if (dead && now_s() - std::max(contact_s, well_s_) > patience_s && !log.silent) {
    broken(fmt::format("{}: no rank has called for {:.0f} s, and it does not count as silent", job.id,
                       now_s() - contact_s));
  }
  for (std::size_t number = 0; number < job.ranks.size(); ++number) {
    const SimulatedRank& rank = job.ranks[number];
    const bool rank_waits = rank.alive && rank.process.waits() && !server_->is_answered(*rank.process.waits());
    if (rank_waits && log.silent_ranks.contains(static_cast<int>(number)) && now_s() - rank.process.asked_s() > 1) {
      broken(fmt::format("{}: rank {} counts as silent and waits", job.id, number));
    }
    // Others call: the server looks at each call, every 15 s at most.
    const double since_s = std::max({up_s_, well_s_, awake_s_, log.joined_s, log.heard_s, rank.contact_s});
    const bool looked = calls && !log.silent && log.plan && log.plan->budget;
    if (!rank.alive && log.ranks[number] && looked && now_s() - since_s > patience_s + 2 * kSilent_s &&
        !log.silent_ranks.contains(static_cast<int>(number))) {
      broken(fmt::format("{}: rank {} has not called for {:.0f} s, and is not named", job.id, number,
                         now_s() - rank.contact_s));
    }
  }
}

/// Nothing: the answer needs the database.
std::optional<Result<jobs::JobView>> SimulatedCluster::view_of(const std::string& id) {
  // Shared, since the answer may come later.
  const auto answer = std::make_shared<std::optional<Result<jobs::JobView>>>();
  server_->service().job(id, [answer](const Result<jobs::JobView>& view) { *answer = view; });
  server_->settle();
  return *answer;
}

/// While the database hangs, clients see no change that is not durable; what time makes due they see.
void SimulatedCluster::check_durable_view(SimulatedJob& job, const jobs::Job& log) {
  const auto answer = view_of(job.id);
  if (!answer || !*answer) return;
  const jobs::JobView& view = **answer;
  if (view.stragglers.size() > log.notices.size() || view.policies.size() != log.policies.size() ||
      (view.header.state == "finished") != (log.state == jobs::JobState::finished)) {
    broken(fmt::format("{}: a change is shown that is not durable: {}, {} stragglers, {} policies; {}, {}, {}", job.id,
                       view.header.state, view.stragglers.size(), view.policies.size(), jobs::shown_state(log),
                       log.notices.size(), log.policies.size()));
  }
}

void SimulatedCluster::check_view(SimulatedJob& job, const jobs::Job& log) {
  const auto answer = view_of(job.id);
  follow_logs();
  if (!answer || !*answer) { return broken(job.id + ": no view: " + (answer ? answer->error().message : "no answer")); }
  const jobs::JobView& view = **answer;
  const auto differ = [&](const char* what, auto shown, auto durable) {
    if (shown != durable) broken(fmt::format("{}: {}: {} is shown, {} is durable", job.id, what, shown, durable));
  };
  differ("sequence", view.sequence, log.sequence);
  differ("state", std::string_view(view.header.state), jobs::shown_state(log));
  differ("ranks", view.ranks_registered, log.ranks_registered);
  differ("stragglers", view.stragglers.size(), log.notices.size());
  differ("policies", view.policies.size(), log.policies.size());
  differ("version", view.plan ? view.plan->version : 0, log.plan ? log.plan->version : 0);
  differ("saving now", view.per_iteration.has_value(), log.live() && log.plan.has_value());
  const auto& row = server_->database().job(job.id);
  differ("state in the index", std::string_view(row.state), jobs::shown_state(log));
  const auto* listed = server_->service().list.list().find(job.id);
  if (listed == nullptr) return broken(job.id + ": it is not in the list of jobs");
  differ("state in the list", std::string_view(listed->state), jobs::shown_state(log));
  if (view.total) {
    const std::int64_t iterations = view.total->iterations;
    if (iterations > job.iteration + 1) {
      broken(fmt::format("{}: {} iterations count, its ranks have reported {}", job.id, iterations, job.iteration));
    }
    if (iterations < job.counted) {
      broken(fmt::format("{}: {} iterations count, {} did before", job.id, iterations, job.counted));
    }
    job.counted = iterations;
  }
}

// ---- The site

void SimulatedCluster::check_site() {
  has_site_ = server_->service().site.documents().current() != nullptr;
  if (site_sure_) {
    const auto stored = server_->service().site.documents().text();
    const std::string text = stored ? *stored : "";
    if (text != site_text_) broken("the site's limits are not those that were acknowledged: " + text);
  }
  excused_ |= std::erase_if(straggles_s_, [this](double at_s) { return at_s <= now_s(); }) > 0;
  if (!has_site_) return counted_.clear();
  const auto view = server_->service().site.view();
  server_->settle();
  if (!view) return broken("no view of the site");
  Watts no_longer_paced;
  for (const auto& job : jobs_) {
    const jobs::Job& log = log_of(job->id).job;
    const auto shown = std::ranges::find(view->jobs, job->id, &power::SiteJobView::job);
    if (shown == view->jobs.end()) {
      if (log.live() && healthy_for(15)) broken(job->id + ": it is not in the site");
      continue;
    }
    // A process that has not registered yet draws what nobody knows.
    const bool known = std::ranges::all_of(job->ranks, [](const SimulatedRank& rank) {
      return rank.acknowledged == static_cast<double>(rank.process.epoch());
    });
    if (job->ranks.size() == 2 && job->runs() && known && now_s() - awake_s_ > 1) {
      const Watts draws = job->draws(now_s());
      const bool same = job->ranks[0].process.version(now_s()) == job->ranks[1].process.version(now_s());
      if (draws > (same ? 1 : kMixed) * shown->counted + Watts(kSlack_w)) {
        broken(fmt::format("{} draws {:.3f} W and counts as {:.3f} W ({}, {}): {}; {}", job->id, draws.value(),
                           shown->counted.value(), shown->state, shown->reason, job->ranks[0].process.text(now_s()),
                           job->ranks[1].process.text(now_s())));
      }
    }
    const bool starts = log.ranks_registered < static_cast<int>(log.ranks.size()) && !log.has_reports();
    if (starts && healthy_for(15) && !log.characterized.empty() &&
        shown->counted > kMostOfARank_w * log.ranks_registered) {
      broken(fmt::format("{}: {} ranks have registered, and it counts as {:.3f} W", job->id, log.ranks_registered,
                         shown->counted.value()));
    }
    if (starts && log.grant && log.grant->granted_w)
      broken(job->id + ": it has a grant before all its ranks have registered");
    // It keeps what it had.
    const bool silent = log.silent.has_value();
    if (silent && job->counted_silent && !excused_ && shown->counted > job->counted_w + Watts(kSlack_w)) {
      broken(fmt::format("{}: it is silent, and counts as {:.3f} W, {:.3f} before", job->id, shown->counted.value(),
                         job->counted_w.value()));
    }
    job->counted_silent = silent;
    check_place(*job, log, *shown, view->domains[shown->domain].name);
    if (!pacing_) no_longer_paced += std::max(Watts(0), shown->counted - job->counted_w);
    job->counted_w = shown->counted;
    // Whose ranks have all ended frees its watts.
    const bool dead = log.live() && log.silent && log.silent->ended == static_cast<int>(job->ranks.size());
    const Watts idle(kBlocking_w * static_cast<double>(job->ranks.size()));
    if (dead && log.plan && healthy_for(15) && shown->counted > idle + Watts(kSlack_w)) {
      broken(fmt::format("{}: its ranks have ended, and it counts as {:.3f} W", job->id, shown->counted.value()));
    }
  }
  for (const power::SiteDomainView& domain : view->domains) {
    Watts& before = counted_[domain.name];
    const Watts limit = domain.limit.value_or(Watts(1e9));
    if (!excused_ && healthy_for(2) && domain.counted > std::max(limit, before) + no_longer_paced + Watts(kSlack_w)) {
      broken(fmt::format("{}: {:.3f} W count, {:.3f} before, the limit is {:.3f} W", domain.name,
                         domain.counted.value(), before.value(), limit.value()));
    }
    before = domain.counted;
  }
  excused_ = false;
}

/// The domain: an operator's, the job's own, or that of its hosts as far as the site knows them.
void SimulatedCluster::check_place(const SimulatedJob& job, const jobs::Job& log, const power::SiteJobView& shown,
                                   const std::string& domain) {
  if (trouble_ != Trouble::none) return;
  std::string hosts = "hall";
  for (const jobs::RankSlot& rank : log.ranks) {
    if (rank && rank->host.starts_with("a-")) hosts = "row-a";
    if (rank && rank->host.starts_with("b-")) hosts = "row-b";
  }
  const std::string& set = log.operator_tier.domain;
  const std::string& asked = job.request.tier.domain;
  const std::string& wanted = !set.empty() ? set : !asked.empty() ? asked : hosts;
  if (healthy_for(5) && domain != wanted) broken(job.id + ": it counts in " + domain + ", not in " + wanted);
  const double least_rate = log.operator_tier.least_rate.value_or(job.request.tier.least_rate.value_or(0));
  if (healthy_for(5) && shown.least_rate != least_rate) broken(job.id + ": another least rate holds");
}

// ---- Calls

void SimulatedCluster::check_calls() {
  std::erase_if(calls_, [](const auto& call) { return call->answered; });
  for (const auto& call : calls_) {
    if (now_s() - std::max(call->sent_s, awake_s_) > call->limit_s + kLate_s) {
      broken(fmt::format("{}: no answer for {:.1f} s", call->what, now_s() - call->sent_s));
    }
  }
  std::erase_if(timed_, [this](const TimedWait& one) { return server_->is_answered(one.wait); });
  for (const TimedWait& one : timed_) {
    const double late_s = healthy_for(25) ? one.late_s + kLate_s : 31;
    if (now_s() > std::max(one.until_s, awake_s_) + late_s) broken("a wait with a time limit has no answer");
  }
}

void SimulatedCluster::check_tokens() {
  if (!calls_.empty() || !healthy_for(15)) return;
  std::map<std::string, std::int64_t> jobs_of;
  for (const auto& [id, log] : logs_) jobs_of[log.job.spec.facts.at("token")] += log.job.live() ? 1 : 0;
  for (const auto& [token, jobs] : jobs_of) {
    (void)server_->service().list.list();
    const std::int64_t owned = server_->service().owned_by(token).jobs;
    if (owned != jobs) broken(fmt::format("{} owns {} live jobs, {} are counted", token, jobs, owned));
  }
}

}  // namespace perseus::testing
