#include "training/client/step_shapes.h"

#include <fmt/format.h>

#include <utility>

namespace perseus::client {
namespace {

constexpr double kAgain_s = 30;
constexpr int kMissing = 2;  ///< steps in a row of another shape than the window's

}  // namespace

void StepShapes::planned(const ClockPlan& plan) {
  const std::lock_guard lock(mutex_);
  planned_.clear();
  if (plan.microbatches == 0) return;
  any_plan_ = true;
  prevailing_ = plan.microbatches;
  planned_.push_back(plan.microbatches);
  for (const ShapeClocks& other : plan.others) planned_.push_back(other.microbatches);
}

std::size_t StepShapes::count(int microbatches, std::size_t of) const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(of, kept()); ++i) count += latest(i) == microbatches ? 1 : 0;
  return count;
}

StepShapes::Seen StepShapes::seen() const {
  Seen seen;
  std::array<int, kKept> shapes = last_;
  const auto end = shapes.begin() + static_cast<std::ptrdiff_t>(kept());
  std::sort(shapes.begin(), end);
  seen.least = shapes.front();
  seen.most = shapes[std::max<std::size_t>(kept(), 1) - 1];
  seen.distinct = static_cast<int>(std::unique(shapes.begin(), end) - shapes.begin());
  for (std::size_t i = 1; i < kept(); ++i) seen.changes += latest(i) != latest(i - 1) ? 1 : 0;
  return seen;
}

bool StepShapes::is_known(int microbatches) const {
  const std::lock_guard lock(mutex_);
  if (!any_plan_) return registered_ == 0 || microbatches == registered_;
  return std::ranges::find(planned_, microbatches) != planned_.end();
}

bool StepShapes::prevails(int microbatches) const {
  {
    const std::lock_guard lock(mutex_);
    if (prevailing_ == 0 || prevailing_ == microbatches) return false;
  }
  if (other_window_ >= 0 && other_steps_ >= kMissing) return true;
  return kept() >= kRecent && 4 * count(microbatches, kRecent) >= 3 * kRecent;
}

void StepShapes::note(ShapeNews news, double now_s) {
  const auto [told, is_new] = told_s_.try_emplace({news.microbatches, news.prevails}, now_s);
  if (!is_new && now_s - told->second < kAgain_s) return;
  told->second = now_s;
  news_ = std::move(news);
}

void StepShapes::ran(const Step& step, double now_s) {
  if (!step.train || step.microbatches <= 0) return;
  last_[steps_++ % kKept] = step.microbatches;
  const bool same_window = step.other_window >= 0 && step.other_window == other_window_;
  const bool same_shape = kept() > 1 && latest(1) == step.microbatches;
  other_steps_ = step.other_window < 0 ? 0 : same_window && same_shape ? other_steps_ + 1 : 1;
  other_window_ = step.other_window;
  if (other_steps_ >= kMissing && missed_ != other_window_) {
    missed_ = other_window_;
    is_missed_ = true;
  }
  const Seen now = seen();
  const bool varied = vary(), varies = now.varies(kept());
  if (!varied && varies) {
    vary_ = true;
    told_s_.clear();
    news_ = ShapeNews{step.microbatches, false,
                      fmt::format("{} numbers of microbatches, from {} to {}, in the last {} steps", now.distinct,
                                  now.least, now.most, kept())};
    return;
  }
  if (varied && (varies || kept() < kKept)) return;
  if (varied) {
    vary_ = false;
    news_ = ShapeNews{step.microbatches, false, ""};
    return;
  }
  if (prevails(step.microbatches)) return note({step.microbatches, true, ""}, now_s);
  if (!is_known(step.microbatches) && count(step.microbatches, kKept) > 1) {
    note({step.microbatches, false, ""}, now_s);
  }
}

std::optional<ShapeNews> StepShapes::news() { return std::exchange(news_, std::nullopt); }

std::optional<int> StepShapes::window_missed() {
  return std::exchange(is_missed_, false) ? std::optional(missed_) : std::nullopt;
}

}  // namespace perseus::client
