#include "server/openadr/event_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace perseus::openadr {
namespace {

constexpr std::size_t kMostLogged = 10'000;
constexpr std::size_t kStepsShown = 4;
constexpr int kMostDoublings = 16;

}  // namespace

EventFollower::EventFollower(FollowerOptions options, FollowerParts parts)
    : options_(std::move(options)), parts_(std::move(parts)), memory_(options_.seed) {}

double EventFollower::step() {
  const bool polls = polls_now();
  if (polls) {
    const Status polled = poll(parts_.wall->now_s());
    poll_failures_ = polled ? 0 : poll_failures_ + 1;
    polled_ = polled_ || polled;
    log_state(poll_state_, polled ? "" : polled.error().message);
    constexpr double jitter = 2.0 / 3;
    const double wait_s = polled ? options_.poll_s * (1 - jitter / 2 + jitter * parts_.random())
                                 : std::max(retry_after_s(poll_failures_),
                                            std::min(parts_.source->asked_wait_s(), options_.longest_retry_s));
    next_poll_s_ = parts_.unstepped->now_s() + wait_s;
  }
  if (polled_ && next_send_s_ <= parts_.unstepped->now_s()) send_changes(parts_.wall->now_s());
  if (polls && polled_ && parts_.after_poll) {
    parts_.after_poll(memory_.events(), program_units_, parts_.wall->now_s());
  }
  const double next_s = send_failures_ > 0 ? std::min(next_poll_s_, next_send_s_) : next_poll_s_;
  return std::max(0.0, next_s - parts_.unstepped->now_s());
}

Status EventFollower::poll(double now_s) {
  auto listed = parts_.source->events();
  if (!listed) return listed.error();
  std::map<std::string, std::optional<GridEvent>> found;
  for (const std::string& id : memory_.absent_from(listed->list, now_s)) {
    if (found.size() == kMostConfirmed) break;
    auto one = parts_.source->event(id);
    if (!one && one.error().code == ErrorCode::invalid_input) {
      log_once(id + " " + one.error().message, fmt::format("event {} stays as it was: {}", id, one.error().message));
      continue;
    }
    if (!one) return one.error();
    found.emplace(id, *std::move(one));
  }
  for (const UnreadableEvent& event : listed->list.unreadable) {
    log_once(
        event.id + " " + event.why,
        fmt::format("event {} cannot be read, so it is not followed, or as it was before: {}", event.id, event.why));
  }
  memory_.take(std::move(listed->list), found, now_s);
  program_units_ = std::move(listed->program_units);
  return Ok{};
}

void EventFollower::send_changes(double now_s) {
  const std::vector<SeenEvent> events = memory_.events();
  const FollowedSchedule schedule = watt_steps(events, program_units_, options_.settings, options_.seed, now_s);
  for (const NotFollowed& one : schedule.not_followed) log_once(one.key, one.text);
  // After a failure the receiver may have either schedule.
  if (was_sent_ && send_failures_ == 0 && same_from(now_s, sent_, schedule.steps)) {
    const Result<bool> has = parts_.still_has ? parts_.still_has(schedule.steps) : Result<bool>(true);
    if (has && *has) return;
    if (has) parts_.log("the receiver has other limits; the schedule is sent again");
  }
  const Status sent = parts_.send(schedule.steps);
  send_failures_ = sent ? 0 : send_failures_ + 1;
  log_state(send_state_, sent ? "" : sent.error().message);
  if (!sent) {
    next_send_s_ = parts_.unstepped->now_s() + retry_after_s(send_failures_);
    return;
  }
  was_sent_ = true;
  sent_ = schedule.steps;
  parts_.log(fmt::format("{}: {} ({} events known)", options_.sent_word, schedule_text(sent_), events.size()));
}

void EventFollower::log_once(const std::string& key, const std::string& text) {
  if (logged_.size() >= kMostLogged) logged_.clear();
  if (logged_.insert(key).second) parts_.log(text);
}

void EventFollower::log_state(std::string& last, const std::string& state) {
  if (last == state) return;
  parts_.log(state.empty() ? "answered again after: " + last
                           : state + (was_sent_ ? "; the schedule that was sent stays" : ""));
  last = state;
}

double EventFollower::retry_after_s(int failures) const {
  const double doubled_s = std::ldexp(options_.first_retry_s, std::min(failures - 1, kMostDoublings));
  constexpr double least_share = 0.75;
  return std::min(doubled_s, options_.longest_retry_s) * (least_share + (1 - least_share) * parts_.random());
}

std::string schedule_text(const std::vector<WattStep>& steps) {
  std::string text;
  for (std::size_t k = 0; k < std::min(steps.size(), kStepsShown); ++k) {
    text += fmt::format("{}{} from {}", k > 0 ? ", " : "",
                        steps[k].limit ? fmt::format("{} W", steps[k].limit->value()) : "no limit",
                        k == 0 ? "now" : time_text(steps[k].from_s));
  }
  if (steps.size() > kStepsShown) text += fmt::format(", {} more", steps.size() - kStepsShown);
  return text;
}

}  // namespace perseus::openadr
