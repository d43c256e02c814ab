// The thread of a session that registers job and rank, and waits for plans.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "training/client/call_cost.h"
#include "training/client/session_state.h"

namespace perseus::client {

void Session::State::ask_for_plans(const std::stop_token& stop) {
  constexpr int most_quick = 8;  // answers in a row, as in profiling
  double wait_s = timing.least_wait_s;
  std::int64_t have = 0;
  int quick = 0;
  while (!stop.stop_requested() && !is_over()) {
    const double asked_s = host_now_s();
    const std::int64_t had = have;
    const bool went_well = (!job.empty() || register_job(stop)) && (rank_known || register_rank(stop, have)) &&
                           (is_over() || wait_for_plan(stop, have));
    if (went_well) {
      wait_s = timing.least_wait_s;
      // If a server returns "unchanged" without having waited, or one plan after the other, wait before the next
      // request.
      quick = host_now_s() - asked_s < timing.least_wait_s ? quick + 1 : 0;
      const bool early = quick > 0 && (have == had || quick > most_quick);
      if (early && !sleep_for(stop, timing.least_wait_s)) return;
      continue;
    }
    // Thousands of ranks lose their server at the same moment; spread their retries.
    const double spread = 1 + 0.5 * static_cast<double>((options.rank * 37) % 101) / 100;
    if (!sleep_for(stop, wait_s * spread)) return;
    wait_s = std::min(2 * wait_s, timing.most_wait_s);
  }
}

bool Session::State::register_job(const std::stop_token& stop) {
  // The server would plan, and count, a job of its own as if all ranks were in it.
  if (options.rank != 0 && options.world_size() > 1) {
    complain(Cause::job, fmt::format("rank {} of {} has no job id, so it gets no plan: give it that of rank 0, "
                                     "which has one as soon as a server has answered",
                                     options.rank, options.world_size()));
    const std::lock_guard lock(mutex);
    tried = true;
    changed.notify_all();
    return false;
  }
  const auto reply = call(*for_plans, new_job_call(), timing.answer_s, stop);
  std::optional<std::string> made;
  if (reply) {
    if (reply->status / 100 != 2) {
      failed(Cause::job, fmt::format("{} rejected the job: {}", shown_url, read_refusal(reply->body, reply->status)));
    } else if (auto read = read_registered_job(reply->body)) {
      made = std::move(*read);
    } else {
      failed(Cause::server, fmt::format("{}: {}", shown_url, read.error().message));
    }
  }
  if (made) {
    tell([&](Outside& to) {
      to.listener.on_job(*made);
      if (to.listener.on_registered) to.listener.on_registered(*made);
    });
  }
  const std::lock_guard lock(mutex);
  tried = true;
  own_job = own_job || made;
  job = made ? *made : own_job ? "" : options.job;  // the given one may be known again
  changed.notify_all();
  return made.has_value();
}

http::HttpCall Session::State::new_job_call() const {
  http::HttpCall call{"POST", "/v1/jobs", new_job_body(options)};
  call.idempotency_key = job_key;
  return call;
}

bool Session::State::register_rank(const std::stop_token& stop, std::int64_t& have) {
  RankFacts known = facts_now();
  known.epoch = epoch;
  known.replaces = restarted;
  const std::string target = "/v1/jobs/" + http::percent_encode(job) + "/ranks?plan=true";
  const double asked_s = host_now_s();
  const auto reply = call(*for_plans, {"POST", target, rank_body(options, known)}, timing.answer_s, stop);
  if (!reply) return false;
  if (reply->status / 100 == 2) {
    answered();
    if (!was_known.exchange(true) && !own_job) {
      tell([&](Outside& to) {
        if (to.listener.on_registered) to.listener.on_registered(job);
      });
    }
    known_as = read_registered_epoch(reply->body);
    restarted = false;
    // Request a plan that cannot be read again, and complain about it then.
    if (auto plan = read_plan_of_registration(reply->body, known)) {
      if (*plan != nullptr) plan_is_valid(asked_s, asked_s, reply->body);
      take_plan(*std::move(plan), have);
    }
    const std::lock_guard lock(mutex);
    rank_known = true;
    facts_are_news = facts_are_news || known.learned_any();  // a server first takes the facts of the registration
    changed.notify_all();
    return true;
  }
  const std::optional<std::string> end = reply->status == kJobOverStatus ? end_of_job(stop) : std::nullopt;
  // No other rank uses a job of one rank. One that this process has registered ends with it.
  const bool again = options.world_size() == 1 && (end ? !own_job && !was_known : reply->status == 404);
  if (end && !again) {
    job_is_over(*end);
    return true;
  }
  failed(Cause::job,
         fmt::format("{} rejected rank {} of job {}: {}{}", shown_url, options.rank, job,
                     end ? *end : read_refusal(reply->body, reply->status), again ? "; it registers a new job" : ""));
  if (again) {
    const std::lock_guard lock(mutex);
    was_known = false;
    job.clear();
  }
  return false;
}

http::HttpCall Session::State::plan_call(std::int64_t have, std::int64_t iteration, double wait_s) const {
  return {
      "GET",
      fmt::format("/v1/jobs/{}/ranks/{}/plan?have={}&iteration={}&wait_s={}{}", http::percent_encode(job), options.rank,
                  have, iteration, wait_s, known_as != 0 ? fmt::format("&epoch={}", known_as.load()) : ""),
      "", ""};
}

/// How the job has ended; nothing: it has not, as far as is known.
std::optional<std::string> Session::State::end_of_job(const std::stop_token& stop) {
  const auto reply = call(*for_plans, plan_call(0, 0, 0), timing.answer_s, stop);
  if (!reply || reply->status != kJobOverStatus) return std::nullopt;
  return read_refusal(reply->body, reply->status);
}

bool Session::State::wait_for_plan(const std::stop_token& stop, std::int64_t& have) {
  std::int64_t iteration = 0;
  tell([&](Outside& to) { iteration = to.listener.iteration(); });
  const RankFacts known = facts_now();
  const double asked_s = host_now_s();
  const auto reply = call(*for_plans, plan_call(have, iteration, timing.poll_s), timing.poll_s + timing.answer_s, stop);
  if (!reply) return false;
  if (reply->status == 404) {
    failed(Cause::job, fmt::format("{}: {}", shown_url, read_refusal(reply->body, reply->status)));
    have = 0;
    const std::lock_guard lock(mutex);
    rank_known = false;
    return false;
  }
  if (reply->status == kJobOverStatus) {
    job_is_over(read_refusal(reply->body, reply->status));
    return true;
  }
  if (reply->status != 200) {
    failed(Cause::server,
           fmt::format("{} answered {}: {}", shown_url, reply->status, read_refusal(reply->body, reply->status)));
    return false;
  }
  Result<std::unique_ptr<ClockPlan>> read = read_plan(reply->body, known);
  if (!read) {
    failed(Cause::server, fmt::format("{} sent an invalid plan: {}", shown_url, read.error().message));
    return false;
  }
  answered();
  plan_is_valid(asked_s, std::min(asked_s + timing.poll_s, host_now_s()), reply->body);
  take_plan(*std::move(read), have);
  return true;
}

/// The server holds a request for `poll_s` at most: an answer that is read later, by a process that was stopped, is
/// old.
void Session::State::plan_is_valid(double asked_s, double sent_by_s, const std::string& answer) {
  const Answered answered{sent_by_s, asked_s, host_now_s(), read_answer_time(answer)};
  tell([&](Outside& to) {
    if (to.listener.on_answer) to.listener.on_answer(answered);
  });
}

void Session::State::take_plan(std::unique_ptr<ClockPlan> plan, std::int64_t& have) {
  if (plan == nullptr) return;
  have = plan->version;
  tell([&](Outside& to) {
    {
      const std::lock_guard lock(mutex);
      if (over) return;  // an answer to a report came first: nothing would end this plan's pace
      leased = plan->budget.has_value();
    }
    to.listener.on_plan(std::move(plan));
  });
}

}  // namespace perseus::client
