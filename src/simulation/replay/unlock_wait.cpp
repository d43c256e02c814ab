#include "simulation/replay/unlock_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace perseus::replay {

UnlockWait::Advice UnlockWait::look(double now_s, Seen seen) {
  if (seen.locked.empty()) return Advice::done;
  const bool starved = std::ranges::any_of(seen.helpers, [](const Helper& helper) { return helper.state == 'R'; });
  const bool left_behind = seen.helpers.empty();
  if (!std::exchange(looked_, true) || starved || seen != before_) changed_s_ = now_s;
  before_ = std::move(seen);
  if (now_s - changed_s_ > kSilence_s) return Advice::stuck;
  return left_behind ? Advice::give_back : Advice::wait;
}

std::string text_of(const std::vector<UnlockWait::Helper>& helpers) {
  std::string text;
  for (const UnlockWait::Helper& helper : helpers) {
    text += fmt::format("{}process {} (state {})", text.empty() ? "" : ", ", helper.pid, helper.state);
  }
  return text.empty() ? "no process" : text;
}

}  // namespace perseus::replay
