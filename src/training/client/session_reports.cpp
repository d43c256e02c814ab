// The thread of a session that reports measured iterations, newly learned facts, dropped plans, shapes of steps and
// that the rank straggles.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/count_text.h"
#include "training/client/call_cost.h"
#include "training/client/session_state.h"

namespace perseus::client {

/// False: try again. A refusal is not repeated.
bool Session::State::tell_facts(const std::stop_token& stop) {
  RankFacts known;
  std::string of_job;
  {
    const std::lock_guard lock(mutex);
    if (!facts_are_news || !rank_known) return true;
    known = facts;
    of_job = job;
    facts_are_news = false;
  }
  known.epoch = epoch;
  const auto reply =
      call(*for_reports, {"POST", "/v1/jobs/" + http::percent_encode(of_job) + "/ranks", rank_body(options, known)},
           timing.answer_s, stop);
  if (reply) return true;
  const std::lock_guard lock(mutex);
  facts_are_news = true;
  return false;
}

/// False: try again. A refusal is not repeated.
bool Session::State::tell_dropped(const std::stop_token& stop) {
  std::optional<DroppedPlan> telling;
  std::string of_job;
  {
    const std::lock_guard lock(mutex);
    if (!dropped || !rank_known) return true;
    telling = dropped;
    of_job = job;
  }
  const auto reply =
      call(*for_reports,
           {"POST", fmt::format("/v1/jobs/{}/ranks/{}/plan_dropped", http::percent_encode(of_job), options.rank),
            plan_dropped_body(*telling, known_as)},
           timing.answer_s, stop);
  if (!reply) return false;
  const std::lock_guard lock(mutex);
  if (dropped && dropped->version == telling->version) dropped.reset();
  return true;
}

/// False: try again. A server that gives this rank's token no right to report stragglers is not asked again.
bool Session::State::tell_degree(const std::stop_token& stop) {
  std::optional<double> telling;
  std::string of_job;
  {
    const std::lock_guard lock(mutex);
    if (!degree || !rank_known) return true;
    telling = degree;
    of_job = job;
  }
  for_reports->set_timeout(std::chrono::milliseconds(static_cast<std::int64_t>(1000 * timing.answer_s)));
  const auto reply = for_reports->call({"POST", fmt::format("/v1/jobs/{}/stragglers", http::percent_encode(of_job)),
                                        straggler_body(options.rank, *telling)},
                                       stop);
  if (!reply || reply->status >= 500 || reply->status == 429) return false;
  const std::lock_guard lock(mutex);
  if (degree == telling) degree.reset();
  return true;
}

/// False: try again.
bool Session::State::tell_shapes(const std::stop_token& stop) {
  while (true) {
    SeenShape telling;
    std::string of_job;
    {
      const std::lock_guard lock(mutex);
      if (shapes.empty() || !rank_known) return true;
      telling = std::move(shapes.front());
      shapes.pop_front();
      of_job = job;
    }
    const auto reply =
        call(*for_reports,
             {"POST", fmt::format("/v1/jobs/{}/ranks/{}/shape", http::percent_encode(of_job), options.rank),
              shape_body(telling, known_as)},
             timing.answer_s, stop);
    if (!reply) {
      const std::lock_guard lock(mutex);
      shapes.push_front(std::move(telling));
      return false;
    }
    if (reply->status / 100 == 4 && reply->status != kJobOverStatus) {
      complain(Cause::shape,
               fmt::format("{} plans no steps of {}: {}", shown_url, count_text(telling.microbatches, "microbatch"),
                           read_refusal(reply->body, reply->status)));
    }
  }
}

std::vector<MeasuredIteration> Session::State::next_report(bool all) {
  const std::lock_guard lock(mutex);
  window_ready = false;
  if (over) iterations.clear();
  return job.empty() ? std::vector<MeasuredIteration>() : iterations.next(all);
}

void Session::State::send_reports(const std::stop_token& stop) {
  double due_s = host_now_s() + options.report_interval_s;
  double wait_s = timing.least_wait_s;
  // The last reports are sent after the request to stop, uninterrupted: stop() of the thread waits for a while.
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex);
      changed.wait_for(lock, stop, std::chrono::duration<double>(std::max(due_s - host_now_s(), 0.0)), [&] {
        return (window_ready && !job.empty()) ||
               ((facts_are_news || dropped || degree || !shapes.empty()) && rank_known);
      });
    }
    last = stop.stop_requested();
    const bool all = last || host_now_s() >= due_s;
    if (all) due_s = host_now_s() + options.report_interval_s;
    while (!last && !(tell_facts(stop) && tell_dropped(stop) && tell_degree(stop) && tell_shapes(stop)) &&
           sleep_for(stop, wait_s))
      wait_s = std::min(2 * wait_s, timing.most_wait_s);
    wait_s = timing.least_wait_s;
    while (!unsent.empty() || !(unsent = next_report(all)).empty()) {
      if (send(unsent, last ? std::stop_token() : stop)) {
        unsent.clear();
        wait_s = timing.least_wait_s;
        continue;
      }
      if (last) return;
      if (!sleep_for(stop, wait_s)) break;  // the last round sends it
      wait_s = std::min(2 * wait_s, timing.most_wait_s);
    }
  }
}

/// False: try again.
bool Session::State::send(const std::vector<MeasuredIteration>& report, const std::stop_token& stop) {
  const std::string of_job = job_now();
  std::optional<SeenClocks> clocks;
  const double now_s = host_now_s();
  tell([&](Outside& by) {
    if (by.listener.clocks && now_s >= clocks_due_s) clocks = by.listener.clocks();
  });
  if (of_job.empty()) return true;
  const auto reply = call(*for_reports,
                          {"POST", "/v1/jobs/" + http::percent_encode(of_job) + "/iterations",
                           iterations_body(options.rank, report, known_as, clocks, options.microbatches)},
                          timing.answer_s, stop);
  if (!reply) return false;
  if (reply->status / 100 == 2) {
    answered();
    if (clocks) clocks_due_s = now_s + timing.clocks_s;
    tell([&](Outside& to) { to.complaints.clear(Cause::reports, shown_url + " accepts iterations again"); });
  } else if (reply->status == kJobOverStatus) {
    if (was_known) job_is_over(read_refusal(reply->body, reply->status));  // else the registration learns it
  } else if (reply->status != 404) {
    complain(Cause::reports, fmt::format("{} rejected iterations up to {}: {}", shown_url, report.back().iteration,
                                         read_refusal(reply->body, reply->status)));
  }
  return true;
}

}  // namespace perseus::client
