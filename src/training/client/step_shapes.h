// The shapes of a rank's steps, which are their numbers of microbatches: which ones the server must plan, which one
// prevails, and whether so many alternate that no plan can fit.
//
// Problem: a batch ramps up, a last batch is short, batches are filled with tokens. Each shape that comes back deserves
//          a plan; where every step differs, plans would only cost planning.
// Input:   recorded steps in order; the plans as they arrive.
// Output:  news(): what the server does not know yet. A shape is new to it from its second step among the last 64 on. A
//          shape prevails if it has three quarters of the last 32 steps, or the last two while a window of another
//          shape is to be profiled. Shapes vary if the last 64 steps have more than 8 of them and change at least every
//          fourth step; as many steps later without that, they do not any more. Every rank of a pipeline sees the same
//          steps, so all come to the same end.
// Errors:  none; the same news come again after half a minute while the server's plans lack them.
// Cost:    O(64) a step, no allocation but for news.
// Threads: planned() and vary() any, the rest one.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "training/client/plan_follower.h"
#include "training/client/step_recorder.h"

namespace perseus::client {

struct ShapeNews {
  int microbatches = 0;
  bool prevails = false;
  std::string varies;  ///< what was seen, as a clause; empty: plans can fit
  bool operator==(const ShapeNews&) const = default;
};

class StepShapes {
 public:
  static constexpr std::size_t kKept = 64, kRecent = 32, kMost = 8;

  /// `registered`: microbatches that the job registered with; 0: not known.
  explicit StepShapes(int registered) : registered_(registered), prevailing_(registered) {}

  void planned(const ClockPlan& plan);
  void ran(const Step& step, double now_s);
  /// What the server must know and has not been told.
  std::optional<ShapeNews> news();
  /// No plan can fit.
  [[nodiscard]] bool vary() const { return vary_.load(std::memory_order_relaxed); }
  /// The profiling window that this rank cannot run, once: two steps in a row had another shape.
  std::optional<int> window_missed();

 private:
  struct Seen {
    int distinct = 0, changes = 0, least = 0, most = 0;
    [[nodiscard]] bool varies(std::size_t steps) const {
      return distinct > static_cast<int>(kMost) && 4 * static_cast<std::size_t>(changes) >= steps;
    }
  };
  [[nodiscard]] Seen seen() const;
  [[nodiscard]] int latest(std::size_t ago) const { return last_[(steps_ - 1 - ago) % kKept]; }
  [[nodiscard]] std::size_t kept() const { return std::min(steps_, kKept); }
  /// Of the last steps.
  [[nodiscard]] std::size_t count(int microbatches, std::size_t of) const;
  [[nodiscard]] bool is_known(int microbatches) const;
  [[nodiscard]] bool prevails(int microbatches) const;
  void note(ShapeNews news, double now_s);

  const int registered_;
  std::array<int, kKept> last_{};  ///< microbatches of the last steps, a ring
  std::size_t steps_ = 0;
  std::optional<ShapeNews> news_;
  std::map<std::pair<int, bool>, double> told_s_;  ///< by microbatches, and whether they prevail
  std::atomic<bool> vary_{false};
  int other_window_ = -1, other_steps_ = 0, missed_ = -1;
  bool is_missed_ = false;
  mutable std::mutex mutex_;  ///< guards the next members
  std::vector<int> planned_;
  bool any_plan_ = false;
  int prevailing_;
};

}  // namespace perseus::client
