#include "training/client/session.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "io/http/http_client.h"
#include "training/client/call_cost.h"

namespace perseus::client {
namespace {

/// The only conflict for requests of plans and reports of iterations. For a registration a conflict can also mean
/// that the server knows another process as this rank.
constexpr int kJobOverStatus = 409;
constexpr std::size_t kMostKeptIterations = 1000;  ///< while the server is unreachable; the oldest are dropped

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

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::max(seconds, 0.001) * 1000));
}

}  // namespace

/// Shared with the threads, which may outlive the Session by the time of a name look-up.
struct Session::State {
  ClientOptions options;
  SessionTiming timing;
  http::HttpPeer peer;
  std::string shown_url;                                       ///< the server's, without credentials
  std::optional<http::HttpConnection> for_plans, for_reports;  ///< each used by its own thread
  bool own_job = false;
  std::string job_key;     ///< of the request that registers the job, the same for every retry
  std::int64_t epoch = 0;  ///< time of day: greater in a later process
  bool restarted = false;  ///< by torch elastic; until the server knows this process

  std::mutex mutex;  ///< guards all members below
  std::condition_variable_any changed;
  std::optional<SessionListener> listener;  ///< none: stopped
  Complaints* complaints = nullptr;         ///< likewise
  RankFacts facts;
  bool facts_are_news = false;         ///< they are new to the server
  std::optional<DroppedPlan> dropped;  ///< that the server does not know yet
  std::string job;
  bool tried = false;  ///< registration was tried
  bool rank_known = false;
  std::optional<double> silent_since_s;
  bool held = false;
  std::atomic<std::int64_t> known_as{0};  ///< epoch that the server assigned to this process; 0: it takes no epoch
  bool takes_begins = true;               ///< the server takes begins and ends of computations
  std::deque<MeasuredIteration> iterations;
  std::vector<MeasuredIteration> unsent;  ///< the reporting thread's: the server has not confirmed them yet
  bool window_ready = false;              ///< it contains a whole one
  bool over = false;                      ///< the server reports the job as ended: no more requests

  std::atomic<bool> reached{false};
  std::atomic<std::int64_t> failures{0};

  void ask_for_plans(const std::stop_token& stop);
  void send_reports(const std::stop_token& stop);

  bool register_job(const std::stop_token& stop);
  [[nodiscard]] http::HttpCall new_job_call() const;
  bool register_rank(const std::stop_token& stop, std::int64_t& have);
  bool tell_facts(const std::stop_token& stop);
  bool tell_dropped(const std::stop_token& stop);
  bool wait_for_plan(const std::stop_token& stop, std::int64_t& have);
  /// Null: no plan yet, or no new one.
  void take_plan(std::unique_ptr<ClockPlan> plan, std::int64_t& have);
  bool job_has_ended(const std::stop_token& stop);
  [[nodiscard]] http::HttpCall plan_call(std::int64_t have, std::int64_t iteration, double wait_s) const;
  std::vector<MeasuredIteration> next_report(bool all);
  bool send(const std::vector<MeasuredIteration>& report, const std::stop_token& stop);

  std::optional<http::HttpReply> call(http::HttpConnection& by, const http::HttpCall& what, double limit_s,
                                      const std::stop_token& stop);
  void failed(Cause cause, const std::string& why);
  void answered();
  void job_is_over(const std::string& how);
  bool is_over() {
    const std::lock_guard lock(mutex);
    return over;
  }
  template <class Tell>
  void tell(const Tell& what) {
    const std::lock_guard lock(mutex);
    if (listener) what(*listener);
  }
};

Session::Session(const ClientOptions& options, RankFacts facts, SessionListener listener, Complaints& complaints)
    : state_(std::make_shared<State>()) {
  State& s = *state_;
  s.options = options;
  s.facts = std::move(facts);
  s.epoch = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
                .count();
  s.job_key = random_key(s.epoch);
  s.restarted = is_restarted();
  s.timing = options.timing;
  s.peer = {options.server, options.token, options.ca_file, milliseconds(options.timing.answer_s)};
  s.shown_url = http::without_user(options.server);
  s.for_plans.emplace(s.peer);
  s.for_reports.emplace(s.peer);
  s.own_job = options.job.empty();
  s.job = options.job;
  s.listener = std::move(listener);
  s.complaints = &complaints;
  if (!s.job.empty()) s.listener->on_job(s.job);
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
  if (state_->iterations.size() == kMostKeptIterations) state_->iterations.pop_front();
  const bool whole = iteration.ends_window;
  state_->iterations.push_back(std::move(iteration));
  if (!whole) return;
  state_->window_ready = true;
  state_->changed.notify_all();
}

void Session::learnt(RankFacts facts) {
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
  const std::lock_guard lock(s.mutex);
  s.listener.reset();
  s.complaints = nullptr;
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
    failed(Cause::server, fmt::format("{} answered {}: {}", shown_url, reply->status, read_refusal(reply->body)));
    return std::nullopt;
  }
  return std::move(*reply);
}

/// Counts one more failed request. After the grace time it requests the highest clock.
void Session::State::failed(Cause cause, const std::string& why) {
  failures.fetch_add(1);
  reached = false;
  const std::lock_guard lock(mutex);
  const double now = host_now_s();
  if (!silent_since_s) silent_since_s = now;
  if (complaints != nullptr) complaints->raise(cause, why + "; training goes on, and the client asks again for plans");
  if (!held && listener && now - *silent_since_s >= timing.grace_s) {
    held = true;
    listener->on_held(true);
  }
}

void Session::State::answered() {
  reached = true;
  const std::lock_guard lock(mutex);
  if (over) return;
  silent_since_s.reset();
  if (complaints != nullptr) {
    complaints->clear(Cause::server, shown_url + " answers again");
    complaints->clear(Cause::job, fmt::format("{} knows job {} again", shown_url, job));
  }
  if (held && listener) listener->on_held(false);
  held = false;
}

/// The rank that started the job has ended it, or the job expired. Other ranks learn that while they end themselves:
/// this is no problem. A rank that continues training runs without plans.
void Session::State::job_is_over(const std::string& how) {
  reached = true;
  const std::lock_guard lock(mutex);
  if (std::exchange(over, true)) return;
  iterations.clear();
  if (complaints != nullptr) {
    complaints->clear(Cause::server, shown_url + " answers again");
    complaints->clear(Cause::job, fmt::format("{} knows job {} again", shown_url, job));
    complaints->say(LogLevel::info, fmt::format("{}: {}", shown_url, how));
  }
  if (listener && !held) listener->on_held(true);
  held = true;
}

// ---- Registration and plans

void Session::State::ask_for_plans(const std::stop_token& stop) {
  double wait_s = timing.least_wait_s;
  std::int64_t have = 0;
  while (!stop.stop_requested() && !is_over()) {
    const double asked_s = host_now_s();
    const std::int64_t had = have;
    const bool went_well = (!job.empty() || register_job(stop)) && (rank_known || register_rank(stop, have)) &&
                           (is_over() || wait_for_plan(stop, have));
    if (went_well) {
      wait_s = timing.least_wait_s;
      // If a server returns "unchanged" without having waited, wait before the next request.
      const bool early = have == had && host_now_s() - asked_s < timing.least_wait_s;
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
    const std::lock_guard lock(mutex);
    tried = true;
    if (complaints != nullptr) {
      complaints->raise(Cause::job,
                        fmt::format("rank {} of {} has no job id, so it gets no plan: give it that of rank 0, "
                                    "which has one as soon as a server has answered",
                                    options.rank, options.world_size()));
    }
    changed.notify_all();
    return false;
  }
  const auto reply = call(*for_plans, new_job_call(), timing.answer_s, stop);
  std::optional<std::string> made;
  if (reply) {
    if (reply->status / 100 != 2) {
      failed(Cause::job, fmt::format("{} did not take the job: {}", shown_url, read_refusal(reply->body)));
    } else if (auto read = read_registered_job(reply->body)) {
      made = std::move(*read);
    } else {
      failed(Cause::server, fmt::format("{}: {}", shown_url, read.error().message));
    }
  }
  {
    const std::lock_guard lock(mutex);
    tried = true;
    if (made) {
      job = *made;
      if (listener) listener->on_job(job);
    }
    changed.notify_all();
  }
  return made.has_value();
}

http::HttpCall Session::State::new_job_call() const {
  http::HttpCall call{"POST", "/v1/jobs", new_job_body(options)};
  call.idempotency_key = job_key;
  return call;
}

bool Session::State::register_rank(const std::stop_token& stop, std::int64_t& have) {
  RankFacts known;
  tell([&](const SessionListener&) { known = facts; });
  known.epoch = epoch;
  known.replaces = restarted;
  const std::string target = "/v1/jobs/" + http::percent_encode(job) + "/ranks?plan=true";
  const auto reply = call(*for_plans, {"POST", target, rank_body(options, known)}, timing.answer_s, stop);
  if (!reply) return false;
  if (reply->status / 100 == 2) {
    answered();
    known_as = read_registered_epoch(reply->body);
    restarted = false;
    // Request a plan that cannot be read again, and complain about it then. An older server sends none.
    if (auto plan = read_plan_of_registration(reply->body, known)) take_plan(*std::move(plan), have);
    const std::lock_guard lock(mutex);
    rank_known = true;
    facts_are_news = facts_are_news || known.learnt_any();  // a server first takes the facts of the registration
    changed.notify_all();
    return true;
  }
  if (reply->status == kJobOverStatus && job_has_ended(stop)) return true;
  failed(Cause::job,
         fmt::format("{} did not take rank {} of job {}: {}", shown_url, options.rank, job, read_refusal(reply->body)));
  // No other rank uses a job of one rank: register a new one.
  if (reply->status == 404 && own_job && options.world_size() == 1) {
    const std::lock_guard lock(mutex);
    job.clear();
  }
  return false;
}

/// False: try again. Older servers, which do not know this request, get it only once.
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

/// False: try again. A server that does not know of dropped plans (an older one) answers 404.
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

http::HttpCall Session::State::plan_call(std::int64_t have, std::int64_t iteration, double wait_s) const {
  return {
      "GET",
      fmt::format("/v1/jobs/{}/ranks/{}/plan?have={}&iteration={}&wait_s={}{}", http::percent_encode(job), options.rank,
                  have, iteration, wait_s, known_as != 0 ? fmt::format("&epoch={}", known_as.load()) : ""),
      "", ""};
}

/// True if the job has ended and that was logged.
bool Session::State::job_has_ended(const std::stop_token& stop) {
  const auto reply = call(*for_plans, plan_call(0, 0, 0), timing.answer_s, stop);
  if (!reply || reply->status != kJobOverStatus) return false;
  job_is_over(read_refusal(reply->body));
  return true;
}

bool Session::State::wait_for_plan(const std::stop_token& stop, std::int64_t& have) {
  std::int64_t iteration = 0;
  RankFacts known;
  tell([&](const SessionListener& to) {
    iteration = to.iteration();
    known.clocks_mhz = facts.clocks_mhz;
  });
  const auto reply = call(*for_plans, plan_call(have, iteration, timing.poll_s), timing.poll_s + timing.answer_s, stop);
  if (!reply) return false;
  if (reply->status == 404) {
    failed(Cause::job, fmt::format("{}: {}", shown_url, read_refusal(reply->body)));
    have = 0;
    const std::lock_guard lock(mutex);
    rank_known = false;
    return false;
  }
  if (reply->status == kJobOverStatus) {
    job_is_over(read_refusal(reply->body));
    return true;
  }
  if (reply->status != 200) {
    failed(Cause::server, fmt::format("{} answered {}: {}", shown_url, reply->status, read_refusal(reply->body)));
    return false;
  }
  Result<std::unique_ptr<ClockPlan>> read = read_plan(reply->body, known);
  if (!read) {
    failed(Cause::server, fmt::format("{} sent what is no plan: {}", shown_url, read.error().message));
    return false;
  }
  answered();
  take_plan(*std::move(read), have);
  return true;
}

void Session::State::take_plan(std::unique_ptr<ClockPlan> plan, std::int64_t& have) {
  if (plan == nullptr) return;
  have = plan->version;
  const std::lock_guard lock(mutex);
  if (listener) listener->on_plan(std::move(plan));
}

// ---- Reports

/// The next report: a whole window; or, once it is time, iterations of one plan version. Half a window that another
/// plan has ended is dropped.
std::vector<MeasuredIteration> Session::State::next_report(bool all) {
  std::vector<MeasuredIteration> report;
  const std::lock_guard lock(mutex);
  window_ready = false;
  if (over) iterations.clear();
  while (!iterations.empty() && !job.empty() && report.empty()) {
    const MeasuredIteration& first = iterations.front();
    const auto other = [&](const MeasuredIteration& i) {
      return i.window != first.window || i.plan_version != first.plan_version;
    };
    auto end = std::ranges::find_if(iterations, other);
    if (first.window >= 0) {
      const auto last = std::find_if(iterations.begin(), end, [](const auto& i) { return i.ends_window; });
      if (last == end) {
        if (end == iterations.end()) return report;  // more of it follows
        iterations.erase(iterations.begin(), end);
        continue;
      }
      end = last + 1;
    } else if (!all && end == iterations.end()) {
      return report;
    }
    report.assign(std::make_move_iterator(iterations.begin()), std::make_move_iterator(end));
    iterations.erase(iterations.begin(), end);
  }
  return report;
}

void Session::State::send_reports(const std::stop_token& stop) {
  double due_s = host_now_s() + options.report_interval_s;
  double wait_s = timing.least_wait_s;
  // The last reports are sent after the request to stop, uninterrupted: stop() of the thread waits for a while.
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex);
      changed.wait_for(lock, stop, std::chrono::duration<double>(std::max(due_s - host_now_s(), 0.0)),
                       [&] { return (window_ready && !job.empty()) || ((facts_are_news || dropped) && rank_known); });
    }
    last = stop.stop_requested();
    const bool all = last || host_now_s() >= due_s;
    if (all) due_s = host_now_s() + options.report_interval_s;
    while (!last && !(tell_facts(stop) && tell_dropped(stop)) && sleep_for(stop, wait_s))
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
  std::string of_job;
  tell([&](const SessionListener&) { of_job = job; });
  if (of_job.empty()) return true;
  const auto reply = call(*for_reports,
                          {"POST", "/v1/jobs/" + http::percent_encode(of_job) + "/iterations",
                           iterations_body(options.rank, report, known_as, takes_begins)},
                          timing.answer_s, stop);
  if (!reply) return false;
  const bool too_new = reply->status / 100 == 4 && read_refusal(reply->body).find("begin_s") != std::string::npos;
  if (too_new && std::exchange(takes_begins, false)) return send(report, stop);  // an older server
  if (reply->status / 100 == 2) {
    answered();
    const std::lock_guard lock(mutex);
    if (complaints != nullptr) complaints->clear(Cause::reports, shown_url + " accepts iterations again");
  } else if (reply->status == kJobOverStatus) {
    job_is_over(read_refusal(reply->body));
  } else if (reply->status != 404) {
    const std::lock_guard lock(mutex);
    if (complaints != nullptr) {
      complaints->raise(Cause::reports, fmt::format("{} did not take iterations up to {}: {}", shown_url,
                                                    report.back().iteration, read_refusal(reply->body)));
    }
  }
  return true;
}

}  // namespace perseus::client
