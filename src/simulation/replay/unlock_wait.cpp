#include "simulation/replay/unlock_wait.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  std::vector<std::string> texts;
  for (const UnlockWait::Helper& helper : helpers) {
    texts.push_back(fmt::format("process {} (state {})", helper.pid, helper.state));
  }
  return texts.empty() ? "no process" : fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace perseus::replay
