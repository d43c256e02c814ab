// A PlanGuard per shape of a rank's steps: iterations are compared with iterations of the same number of microbatches.
//
// Input:   as PlanGuard's, for steps of any shape; a plan has clocks for several.
// Output:  allowed(): the shapes whose steps may follow the plan; steps of all others run at the highest clock.
// Errors:  none. Beyond kMost shapes, the one that ran least recently is forgotten, but not what its plans cost.
// Cost:    PlanGuard's; O(shapes) a plan.
// Threads: any.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "training/client/plan_guard.h"

namespace perseus::client {

class ShapeGuards {
 public:
  static constexpr std::size_t kMost = PlanFollower::kMostShapes;

  explicit ShapeGuards(double tolerance, double most_slowdown = PlanGuard::kMostSlowdown)
      : tolerance_(tolerance), most_slowdown_(most_slowdown) {}

  void arrives(const ClockPlan& plan);
  void rest();
  void take(const GuardedIteration& iteration);
  /// Numbers of microbatches (0: not known). Nothing: all, since no plan is judged.
  [[nodiscard]] std::optional<std::vector<int>> allowed() const;
  /// No plan is tried at present for some shape, since plans were too slow.
  [[nodiscard]] bool paused() const;
  std::optional<DroppedPlan> take_dropped();
  std::optional<std::string> take_remark();

 private:
  struct OfShape {
    int microbatches = 0;
    std::unique_ptr<PlanGuard> guard;
  };
  PlanGuard& of(int microbatches);
  void tell(const OfShape& one) const;

  const double tolerance_, most_slowdown_;
  const std::shared_ptr<Losses> losses_ = std::make_shared<Losses>();
  mutable std::mutex mutex_;
  std::list<OfShape> guards_;  ///< the one that ran last first
  bool judges_ = false;
  ClockPlan plan_;  ///< the last one
};

}  // namespace perseus::client
