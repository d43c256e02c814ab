#include "training/client/complaints.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/terminal_text.h"
#include "training/client/call_cost.h"

namespace perseus::client {
namespace {

/// Messages quote servers, drivers and files: one line of bounded length, without control of a terminal.
std::string printable(std::string_view message) {
  constexpr std::size_t most_bytes = 2000;
  return line_text(message.substr(0, most_bytes)) + (message.size() > most_bytes ? " ..." : "");
}

}  // namespace

std::string_view name_of(Cause cause) {
  constexpr std::string_view names[] = {"server",      "job",           "reports",       "plan",         "slowdown",
                                        "late_clocks", "clock_control", "stuck_clock",   "device",       "energy",
                                        "cuda",        "records",       "threads",       "device_time",  "graph",
                                        "budget",      "shape",         "foreign_clock", "limited_clock"};
  static_assert(std::size(names) == static_cast<std::size_t>(Cause::limited_clock) + 1);
  return names[static_cast<std::size_t>(cause)];
}

Complaints::Complaints(Log log, PauseLimits pauses, std::function<double()> now_s)
    : log_(std::move(log)), pauses_(pauses), now_s_(now_s ? std::move(now_s) : host_now_s) {}

void Complaints::silence(double limit_s) {
  silent_ = true;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
  std::unique_lock lock(logging_, std::try_to_lock);
  while (!lock && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    (void)lock.try_lock();
  }
}

void Complaints::say(LogLevel level, const std::string& message) const {
  try {
    const std::lock_guard lock(logging_);
    if (silent_) return;
    log_(level, printable(message));
  } catch (...) {  // a failing log must not stop training
  }
}

Complaints::Known* Complaints::known(Cause cause) {
  const auto found = std::ranges::find_if(known_, [&](const Known& k) { return k.complaint.cause == cause; });
  return found == known_.end() ? nullptr : &*found;
}

/// The line to log now about a cause; empty: none.
std::string Complaints::due(Known& known) {
  const double now_s = now_s_();
  if (!known.holds || known.logged || now_s < known.quiet_until_s || quiet(known.line_s)) return {};
  std::string line = known.complaint.message;
  if (known.unlogged > 1) line += fmt::format(" ({} times since the last message about it)", known.unlogged);
  known.logged = known.shown = true;
  known.unlogged = 0;
  known.pause_s = std::clamp(2 * known.pause_s, pauses_.least_s, pauses_.most_s);
  known.quiet_until_s = now_s + known.pause_s;
  known.line_s = now_s;
  return line;
}

void Complaints::raise(Cause cause, const std::string& message) { take(cause, message, false); }

void Complaints::raise_again(Cause cause, const std::string& message) { take(cause, message, true); }

void Complaints::take(Cause cause, const std::string& message, bool again) {
  std::string line;
  {
    const std::lock_guard lock(mutex_);
    Known* one = known(cause);
    if (one == nullptr) {
      one = &known_.emplace_back();
      one->complaint.cause = cause;
      one->seen_s = now_s_();
    }
    one->complaint.message = printable(message);
    if (!one->holds || again) {
      if (now_s_() - one->seen_s > pauses_.most_s) one->quiet_until_s = one->pause_s = 0;
      if (!one->holds) one->complaint.since_s = SystemClock().now_s();
      one->holds = true;
      one->logged = false;
      one->gone.reset();
      ++one->unlogged;
      ++one->complaint.times;
    }
    one->seen_s = now_s_();
    line = due(*one);
  }
  if (!line.empty()) say(LogLevel::warning, line);
}

void Complaints::clear(Cause cause, const std::string& now_what) {
  {
    const std::lock_guard lock(mutex_);
    Known* const one = known(cause);
    if (one == nullptr || !one->holds) return;
    one->holds = false;
    one->seen_s = now_s_();
    if (!one->shown) return;
    if (!one->logged || quiet(one->line_s)) {
      one->gone = now_what;
      one->gone_from_s = (one->logged ? one->line_s : one->seen_s) + pauses_.least_s;
      return;
    }
    one->shown = false;
    one->line_s = one->seen_s;
  }
  say(LogLevel::info, now_what);
}

void Complaints::note(News news, const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    auto line = std::ranges::find(news_, news, &Line::news);
    if (line == news_.end()) line = news_.insert(news_.end(), Line{news, kNever_s, {}});
    if (quiet(line->line_s)) {
      line->waits = message;
      return;
    }
    line->line_s = now_s_();
    line->waits.reset();
  }
  say(LogLevel::info, message);
}

void Complaints::remind(bool at_once) {
  std::vector<std::pair<LogLevel, std::string>> lines;
  {
    const std::lock_guard lock(mutex_);
    const auto log = [&](std::optional<std::string>& waits, double from_s, double& line_s) {
      if (!waits || (now_s_() < from_s && !at_once)) return false;
      lines.emplace_back(LogLevel::info, *std::exchange(waits, std::nullopt));
      line_s = now_s_();
      return true;
    };
    for (Known& one : known_) {
      if (std::string line = due(one); !line.empty()) lines.emplace_back(LogLevel::warning, std::move(line));
      if (log(one.gone, one.gone_from_s, one.line_s)) one.shown = false;
    }
    for (Line& one : news_) log(one.waits, one.line_s + pauses_.least_s, one.line_s);
  }
  for (const auto& [level, line] : lines) say(level, line);
}

bool Complaints::raised(Cause cause) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(known_, [&](const Known& k) { return k.holds && k.complaint.cause == cause; });
}

std::vector<Complaint> Complaints::all() const {
  std::vector<Complaint> all;
  const std::lock_guard lock(mutex_);
  for (const Known& one : known_) {
    if (one.holds) all.push_back(one.complaint);
  }
  std::ranges::stable_sort(all, {}, &Complaint::since_s);
  return all;
}

void LateClockComplaint::judge(std::int64_t late, Complaints& complaints) {
  constexpr std::int64_t enough = 200;
  constexpr double many = 0.05, few = 0.02;
  const std::int64_t ran = computations_ - judged_computations_;
  if (ran < enough) return;
  const double share = static_cast<double>(late - judged_late_) / static_cast<double>(ran);
  judged_computations_ = computations_;
  judged_late_ = late;
  if (share > many) {
    complaints.raise(
        Cause::late_clocks,
        fmt::format("{:.0f} % of the computations ran partly at the clock of the one before: clocks come too "
                    "late, so the plan saves less or slows training",
                    100 * share));
  } else if (share < few) {
    complaints.clear(Cause::late_clocks, "clocks come in time again");
  }
}

}  // namespace perseus::client
