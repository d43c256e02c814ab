#include "server/openadr/event_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/terminal_text.h"

namespace perseus::openadr {
namespace {

constexpr std::size_t kMostLogged = 10'000;
constexpr std::size_t kStepsShown = 4;
constexpr int kMostDoublings = 16;
constexpr std::size_t kMostSentence = 500;

std::string sentence_on(const std::vector<UnreadEvent>& unread) {
  if (unread.empty()) return {};
  const std::string more = unread.size() > 1 ? fmt::format(" (and {} more)", unread.size() - 1) : "";
  // Again: a character may be cut.
  return line_text(line_text(unread.front().text).substr(0, kMostSentence)) + more;
}

bool is_same_from(double now_s, const SentLimits& a, const SentLimits& b) {
  return a.unread == b.unread && same_from(now_s, a.steps, b.steps);
}

}  // namespace

EventFollower::EventFollower(FollowerOptions options, FollowerParts parts)
    : options_(std::move(options)), parts_(parts), memory_(options_.seed, options_.settings) {}

double EventFollower::step() {
  const bool polls = polls_now();
  if (polls) {
    const Status polled = poll(parts_.wall->now_s());
    poll_failures_ = polled ? 0 : poll_failures_ + 1;
    polled_ = polled_ || polled;
    log_state(poll_state_, polled ? "" : polled.error().message);
    constexpr double jitter = 2.0 / 3;
    const double wait_s = polled ? options_.poll_s * (1 - jitter / 2 + jitter * parts_.host->random())
                                 : std::max(retry_after_s(poll_failures_),
                                            std::min(parts_.source->asked_wait_s(), options_.longest_retry_s));
    next_poll_s_ = parts_.unstepped->now_s() + wait_s;
  }
  if (polled_ && next_send_s_ <= parts_.unstepped->now_s()) send_changes(parts_.wall->now_s());
  if (polls && polled_) parts_.host->polled(memory_.events(), program_units_, parts_.wall->now_s());
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
      GridEvent unread;
      unread.id = id;
      unread.unread = UnreadPart{one.error().message, false, false};
      found.emplace(id, std::move(unread));
      continue;
    }
    if (!one) return one.error();
    found.emplace(id, *std::move(one));
  }
  memory_.take(std::move(listed->list), found, now_s);
  program_units_ = std::move(listed->program_units);
  return Ok{};
}

void EventFollower::send_changes(double now_s) {
  std::vector<SeenEvent> events = memory_.events();
  auto followed = schedule(events, now_s);
  SentLimits limits;
  if (followed) {
    for (const NotFollowed& one : followed->not_followed) log_once(one.key, one.text);
    log_unread(followed->unread);
    limits = {std::move(followed->steps), sentence_on(followed->unread)};
    // After a failure the receiver may have either schedule.
    if (was_sent_ && send_failures_ == 0 && is_same_from(now_s, sent_, limits)) {
      const Result<SentLimits> has = parts_.host->received();
      if (has && is_same_from(now_s, *has, limits)) return;
      if (has) parts_.host->log("the receiver has other limits; the schedule is sent again");
    }
  }
  const Status sent = followed ? parts_.host->send(limits) : Status(followed.error());
  send_failures_ = sent ? 0 : send_failures_ + 1;
  log_state(send_state_, sent ? "" : sent.error().message);
  if (!sent) {
    next_send_s_ = parts_.unstepped->now_s() + retry_after_s(send_failures_);
    return;
  }
  was_sent_ = true;
  sent_ = std::move(limits);
  parts_.host->log(
      fmt::format("{}: {} ({} events known)", options_.sent_word, schedule_text(sent_.steps), events.size()));
}

FollowedSchedule EventFollower::schedule_of(std::span<const SeenEvent> events, double now_s) const {
  return watt_steps(events, program_units_, options_.settings, options_.seed, now_s, known_);
}

Result<FollowedSchedule> EventFollower::schedule(const std::vector<SeenEvent>& events, double now_s) {
  FollowedSchedule followed = schedule_of(events, now_s);
  std::set<std::string> unread;
  bool is_new = false;
  for (const UnreadEvent& one : followed.unread) {
    unread.insert(one.id);
    if (known_.contains(one.id)) continue;
    auto known = known_before(one.id, followed.steps, now_s);
    if (!known) return known.error();
    known_.emplace(one.id, *std::move(known));
    is_new = true;
  }
  if (is_new) followed = schedule_of(events, now_s);
  std::erase_if(known_, [&](const auto& one) { return !unread.contains(one.first); });
  std::erase_if(known_events_, [&](const auto& one) { return !unread.contains(one.first); });
  for (const SeenEvent& seen : events) {
    if (!unread.contains(seen.event.id)) known_events_.emplace(seen.event.id, seen);
  }
  return followed;
}

Result<std::vector<WattStep>> EventFollower::known_before(const std::string& id, const std::vector<WattStep>& others,
                                                          double now_s) {
  if (const auto event = known_events_.find(id); event != known_events_.end()) {
    FollowSettings settings = options_.settings;
    settings.default_limit.reset();
    auto own = watt_steps({&event->second, 1}, program_units_, settings, options_.seed, now_s).steps;
    if (least_limit(own, now_s, kForever) < kForever) return own;
  }
  SentLimits in_force = sent_;
  if (!was_sent_) {
    auto there = parts_.host->received();
    if (!there) return there.error();
    in_force = *std::move(there);
  }
  std::vector<WattStep> before = steps_from(now_s, std::move(in_force.steps));
  return least_limit(before, now_s, kForever) < kForever ? before : others;
}

void EventFollower::log_unread(const std::vector<UnreadEvent>& unread) {
  std::map<std::string, std::string> now;
  for (const UnreadEvent& one : unread) {
    now[one.id] = one.text;
    const auto before = unread_.find(one.id);
    if (before == unread_.end() || before->second != one.text) {
      parts_.host->log(one.text + "; the least limit that was known holds");
    }
  }
  for (const auto& [id, text] : unread_) {
    if (!now.contains(id)) parts_.host->log(fmt::format("event {} is read again, or gone", id));
  }
  unread_ = std::move(now);
}

void EventFollower::log_once(const std::string& key, const std::string& text) {
  if (logged_.size() >= kMostLogged) logged_.clear();
  if (logged_.insert(key).second) parts_.host->log(text);
}

void EventFollower::log_state(std::string& last, const std::string& state) {
  if (last == state) return;
  parts_.host->log(state.empty() ? "answered again after: " + last
                                 : state + (was_sent_ ? "; the schedule that was sent stays" : ""));
  last = state;
}

double EventFollower::retry_after_s(int failures) const {
  const double doubled_s = std::ldexp(options_.first_retry_s, std::min(failures - 1, kMostDoublings));
  constexpr double least_share = 0.75;
  return std::min(doubled_s, options_.longest_retry_s) * (least_share + (1 - least_share) * parts_.host->random());
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
