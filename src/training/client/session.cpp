#include "training/client/session.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "training/client/call_cost.h"
#include "training/client/session_state.h"

namespace perseus::client {
namespace {

/// 128 random bits, or the time if there is no source of them.
std::string random_key(std::int64_t now) {
  std::array<std::uint64_t, 2> bits{static_cast<std::uint64_t>(now), static_cast<std::uint64_t>(getpid())};
  (void)getrandom(bits.data(), sizeof(bits), GRND_NONBLOCK);
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

/// True if torch elastic has restarted the job's processes, including this one.
bool is_restarted() {
  const char* const count = std::getenv("TORCHELASTIC_RESTART_COUNT");
  return count != nullptr && std::atoi(count) > 0;
}

/// What a server answered that refuses its service, and what to do about a refused token.
std::string refusal_of(const http::HttpPeer& peer, const std::string& shown_url, const http::HttpReply& reply) {
  constexpr int unauthorized = 401;
  if (reply.status == unauthorized && peer.token.empty()) {
    return fmt::format("{} requires a token: set PERSEUS_TOKEN, or the option token", shown_url);
  }
  return fmt::format("{} answered {}: {}{}", shown_url, reply.status, read_refusal(reply.body, reply.status),
                     reply.status == unauthorized ? " (PERSEUS_TOKEN, or the option token)" : "");
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::max(seconds, 0.001) * 1000));
}

}  // namespace

Session::Session(const ClientOptions& options, RankFacts facts, SessionListener listener, Complaints& complaints)
    : state_(std::make_shared<State>()) {
  State& s = *state_;
  s.options = options;
  s.facts = std::move(facts);
  if (s.facts.whole_module) s.options.facts.emplace("power", "of the module, CPU included");
  s.epoch = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
                .count();
  s.job_key = random_key(s.epoch);
  s.restarted = is_restarted();
  s.timing = options.timing;
  s.peer = {options.server, options.token, options.ca_file, milliseconds(options.timing.answer_s), kMostAnswerBytes};
  s.shown_url = http::without_user(options.server);
  s.for_plans.emplace(s.peer);
  s.for_reports.emplace(s.peer);
  s.own_job = options.job.empty();
  s.job = options.job;
  s.outside = std::make_shared<State::Outside>(State::Outside{std::move(listener), complaints});
  if (!s.job.empty()) s.outside->listener.on_job(s.job);
  keep_running();
}

void Session::keep_running() {
  if (!asking_.running()) {
    asking_.start("perseus-plans", [state = state_](const std::stop_token& stop) { state->ask_for_plans(stop); });
  }
  if (!reporting_.running()) {
    reporting_.start("perseus-reports", [state = state_](const std::stop_token& stop) { state->send_reports(stop); });
  }
}

Session::~Session() { stop(0); }

void Session::wait_for_job(double limit_s) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, std::chrono::duration<double>(limit_s),
                           [&] { return !state_->job.empty() || state_->tried; });
}

void Session::report(MeasuredIteration iteration) {
  const std::lock_guard lock(state_->mutex);
  const bool whole = iteration.ends_window;
  state_->iterations.add(std::move(iteration));
  if (!whole) return;
  state_->window_ready = true;
  state_->changed.notify_all();
}

void Session::learned(RankFacts facts) {
  const std::lock_guard lock(state_->mutex);
  state_->facts = std::move(facts);
  state_->facts_are_news = true;
  state_->changed.notify_all();
}

void Session::plan_dropped(DroppedPlan dropped) {
  const std::lock_guard lock(state_->mutex);
  state_->dropped = std::move(dropped);
  state_->changed.notify_all();
}

void Session::straggles(double degree) {
  const std::lock_guard lock(state_->mutex);
  state_->degree = degree;
  state_->changed.notify_all();
}

void Session::shape_seen(SeenShape shape) {
  constexpr std::size_t most = 16;
  const std::lock_guard lock(state_->mutex);
  state_->shapes.push_back(std::move(shape));
  if (state_->shapes.size() > most) state_->shapes.pop_front();
  state_->changed.notify_all();
}

void Session::stop(double limit_s) {
  const double until = host_now_s() + limit_s;
  asking_.stop(std::min(limit_s, 0.2));
  reporting_.stop(limit_s / 2);  // it sends the rest
  State& s = *state_;
  std::string job;
  {
    const std::lock_guard lock(s.mutex);
    if (s.own_job && s.reached && !s.over) job = s.job;
  }
  if (!job.empty() && host_now_s() < until) {
    // On a thread, so that a name look-up does not delay the process's end.
    BackgroundThread finishing;
    finishing.start("perseus-finish", [state = state_, job, left = until - host_now_s()](const std::stop_token& stop) {
      http::HttpPeer peer = state->peer;
      peer.timeout = milliseconds(left);
      (void)http::http_call(peer, {"POST", "/v1/jobs/" + http::percent_encode(job) + "/finish", "{}"}, stop);
    });
    // Ends by itself; stop() would interrupt it.
    finishing.wait(until - host_now_s());
  }
  const std::lock_guard outside_lock(s.outside_mutex);
  s.outside.reset();
  const std::lock_guard lock(s.mutex);
  s.own_job = false;
}

bool Session::reached() const { return state_->reached; }
std::int64_t Session::failures() const { return state_->failures; }

// ---- Requests

std::optional<http::HttpReply> Session::State::call(http::HttpConnection& by, const http::HttpCall& what,
                                                    double limit_s, const std::stop_token& stop) {
  by.set_timeout(milliseconds(limit_s));
  Result<http::HttpReply> reply = by.call(what, stop);
  if (stop.stop_requested()) return std::nullopt;
  if (!reply) {
    failed(Cause::server, reply.error().message);
    return std::nullopt;
  }
  if (reply->status >= 500 || reply->status == 401 || reply->status == 403 || reply->status == 429) {
    failed(Cause::server, refusal_of(peer, shown_url, *reply));
    return std::nullopt;
  }
  return std::move(*reply);
}

/// Counts one more failed request. After the grace time it requests the highest clock.
void Session::State::failed(Cause cause, const std::string& why) {
  failures.fetch_add(1);
  reached = false;
  tell([&](Outside& to) {
    bool holds = false, has_lease = false;
    {
      const std::lock_guard lock(mutex);
      const double now = host_now_s();
      if (!silent_since_s) silent_since_s = now;
      holds = !held && !leased && now - *silent_since_s >= timing.grace_s;
      held = held || holds;
      has_lease = leased;
    }
    to.complaints.raise(
        cause,
        why + (has_lease
                   ? "; training continues, under its plan until the lease of its power budget ends"
                   : fmt::format("; training continues: after {:g} s without an answer at the highest clock, where it "
                                 "saves nothing, until it gets a plan",
                                 timing.grace_s)));
    if (holds) to.listener.on_held(true);
  });
}

void Session::State::answered() {
  reached = true;
  tell([&](Outside& to) {
    bool held_before = false;
    {
      const std::lock_guard lock(mutex);
      if (over) return;
      silent_since_s.reset();
      held_before = std::exchange(held, false);
    }
    answers_again(to);
    if (held_before) to.listener.on_held(false);
  });
}

void Session::State::answers_again(Outside& to) {
  to.complaints.clear(Cause::server, shown_url + " answers again");
  to.complaints.clear(Cause::job, fmt::format("{} knows job {}", shown_url, job_now()));
}

/// The rank that started the job has ended it, or the job expired. Other ranks learn that while they end themselves:
/// this is no problem. A rank that continues training runs without plans.
void Session::State::job_is_over(const std::string& how) {
  reached = true;
  tell([&](Outside& to) {
    bool held_before = false;
    {
      const std::lock_guard lock(mutex);
      if (std::exchange(over, true)) return;
      iterations.clear();
      held_before = std::exchange(held, true);
    }
    answers_again(to);
    if (was_known) {
      to.complaints.say(LogLevel::info, fmt::format("{}: {}", shown_url, how));
    } else {
      to.complaints.raise(Cause::job, fmt::format("{}: {}, so rank {}, which starts now, gets no plan: give all ranks "
                                                  "another job's id, which rank 0 gets if it starts without one",
                                                  shown_url, how, options.rank));
    }
    if (!held_before) to.listener.on_held(true);
  });
}

}  // namespace perseus::client
