#include "server/power/job_swing.h"

#include <algorithm>
#include <cmath>

#include "planning/model/default_plan.h"
#include "planning/model/reference_plans.h"

namespace perseus::power {
namespace {

/// Of powers that may swing together.
class SwingsTogether {
 public:
  void add(double copies, const site::WindowSwing& swing) {
    above_ += copies * swing.above;
    deviation_w_ += copies * std::sqrt(swing.variance_w2);
  }
  [[nodiscard]] site::WindowSwing sum() const { return {above_, deviation_w_ * deviation_w_}; }

 private:
  Watts above_;
  double deviation_w_ = 0;
};

}  // namespace

PipelineSwings::PipelineSwings(std::shared_ptr<const jobs::CharacterizedPipeline> pipeline)
    : pipeline_(std::move(pipeline)) {}

site::WindowSwing PipelineSwings::at(int point, Seconds time, Seconds window) {
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = known_.try_emplace({point, time.value(), window.value()});
  if (!is_new) return known->second;
  if (!power_) power_.emplace(pipeline_->dag);
  const site::PowerOverIteration::Run run = power_->of(point == kMaximumClock ? model::all_maximum_clock(pipeline_->dag)
                                                                              : pipeline_->frontier.points[point].plan);
  known->second = site::window_swing(run.steps, std::max(time, run.makespan), window);
  return known->second;
}

site::WindowSwing JobSwing::of_plan(const policies::PowerAtTime& plan, Seconds window) const {
  SwingsTogether sum;
  for (const Part& part : parts_) {
    const jobs::CharacterizedPipeline& pipeline = part.swings->pipeline();
    const auto add = [&](double copies, int point) {
      if (copies > 0) sum.add(copies, part.swings->at(point, plan.time, window));
    };
    add(part.following, model::slowest_within(pipeline.frontier, plan.time));
    add(part.straggling, policies::straggling_point(pipeline, plan.straggler_stretch));
  }
  return sum.sum();
}

site::WindowSwing JobSwing::of_maximum_clock(Seconds window) const {
  Seconds time;
  for (const Part& part : parts_) time = std::max(time, part.swings->pipeline().all_max_time);
  SwingsTogether sum;
  for (const Part& part : parts_) {
    sum.add(part.following + part.straggling, part.swings->at(PipelineSwings::kMaximumClock, time, window));
  }
  return sum.sum();
}

std::shared_ptr<const JobSwing> SwingLibrary::of(const std::shared_ptr<const policies::PowerChoices>& choices) {
  if (by_frontier_.size() >= clean_from_) {
    std::erase_if(by_frontier_, [](const auto& known) { return known.second.expired(); });
    clean_from_ = 2 * by_frontier_.size() + 16;
  }
  std::vector<JobSwing::Part> parts;
  for (const policies::PowerChoices::Pipelines& group : choices->pipelines) {
    auto& known = by_frontier_[group.pipeline->key];
    std::shared_ptr<PipelineSwings> swings = known.lock();
    if (!swings) known = swings = std::make_shared<PipelineSwings>(group.pipeline);
    parts.push_back({std::move(swings), group.following, group.straggling});
  }
  return std::make_shared<const JobSwing>(choices, std::move(parts));
}

}  // namespace perseus::power
