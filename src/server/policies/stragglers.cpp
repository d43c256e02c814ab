#include "server/policies/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "server/jobs/event_text.h"

namespace perseus::policies {
namespace {

constexpr double kRetryWindow_s = 1;  // a repeated notice within this time is a retry

/// The pipelines that a target belongs to.
Result<std::set<int>> pipelines_of(const jobs::Job& job, const jobs::StragglerTarget& target) {
  const int named = int{!target.accelerator.empty()} + int{target.rank.has_value()} + int{target.pipeline.has_value()};
  if (named != 1) {
    return Error{ErrorCode::usage,
                 fmt::format("a straggler is exactly one of accelerator, rank and pipeline; {} are named", named)};
  }
  if (target.pipeline) {
    if (*target.pipeline >= 0 && *target.pipeline < job.num_pipelines()) return std::set{*target.pipeline};
    return Error{ErrorCode::not_found, fmt::format("job {}: no pipeline {}; it has 0 to {}", job.id, *target.pipeline,
                                                   job.num_pipelines() - 1)};
  }
  std::set<int> pipelines;
  if (target.rank) {
    const bool exists = *target.rank >= 0 && *target.rank < static_cast<int>(job.ranks.size());
    if (exists && job.ranks[*target.rank]) pipelines.insert(job.ranks[*target.rank]->dp_rank);
  } else if (const auto found = job.ranks_of_accelerator.find(target.accelerator);
             found != job.ranks_of_accelerator.end()) {
    for (const int rank : found->second) pipelines.insert(job.ranks[rank]->dp_rank);
  }
  if (!pipelines.empty()) return pipelines;
  return Error{ErrorCode::not_found, fmt::format("job {}: {} is not registered", job.id, jobs::text_of(target))};
}

/// Message for a target without a notice; it names other known causes of a slow pipeline, which the caller may have
/// meant.
std::string nothing_to_end(const jobs::Job& job, const jobs::StragglerTarget& target, int pipeline) {
  std::string text = fmt::format("no notice of {} exists, so nothing ended", jobs::text_of(target));
  for (const jobs::Notice& notice : job.notices) {
    if (notice.pipeline != pipeline || notice.degree == 1) continue;
    text += fmt::format("; {} of {} slows pipeline {}", notice.id, jobs::text_of(notice.target), pipeline);
    if (notice.detected) text += " (seen in iteration times)";
  }
  return text;
}

NoticeDecision decide_one(const jobs::Job& job, const jobs::SetStraggler& request, int pipeline, double effective_s,
                          bool detected, std::size_t number) {
  const auto same_target = [&](const jobs::Notice& notice) {
    return notice.target == request.target && notice.pipeline == pipeline && notice.detected == detected;
  };
  // The predecessor of this notice: the target's last one that takes effect no later.
  const jobs::Notice* before = nullptr;
  bool anything_later = false;
  for (const jobs::Notice& notice : job.notices) {
    if (!same_target(notice)) continue;
    const bool earlier = notice.in_force || notice.effective_s <= effective_s + kRetryWindow_s;
    if (!earlier) anything_later = true;
    if (earlier && (before == nullptr || before->in_force || notice.effective_s >= before->effective_s))
      before = &notice;
  }
  const bool retried = before != nullptr && before->degree == request.degree && !anything_later &&
                       (before->in_force || std::abs(before->effective_s - effective_s) <= kRetryWindow_s);
  if (retried) return {{}, {job.id, before->id, pipeline, before->effective_s}};
  if (request.degree == 1 && before == nullptr) {
    return {{}, {job.id, "", pipeline, effective_s, nothing_to_end(job, request.target, pipeline)}};
  }
  const std::string id = fmt::format("s{}", job.notices_ever + 1 + static_cast<int>(number));
  return {{jobs::StragglerNoticed{id, request.target, pipeline, request.degree, effective_s, detected, request.by}},
          {job.id, id, pipeline, effective_s}};
}

}  // namespace

Result<std::vector<NoticeDecision>> decide_straggler(const jobs::Job& job, const jobs::SetStraggler& request,
                                                     double now_s, bool detected) {
  if (!(request.degree >= 1 && request.degree <= kMaxDegree)) {
    return Error{ErrorCode::usage,
                 fmt::format("degree: {}; allowed: 1 (back to normal) to {}", request.degree, kMaxDegree)};
  }
  const double delay_s = request.delay.value();
  if (!(delay_s >= 0 && delay_s <= kMaxDelay_s)) {
    return Error{ErrorCode::usage, fmt::format("delay_s: {} s; allowed: 0 to {}", delay_s, kMaxDelay_s)};
  }
  if (!job.live()) { return Error{ErrorCode::conflict, fmt::format("job {} is {}", job.id, jobs::name_of(job.state))}; }
  const auto pipelines = pipelines_of(job, request.target);
  if (!pipelines) return pipelines.error();
  std::vector<NoticeDecision> decisions;
  std::size_t made = 0;
  for (const int pipeline : *pipelines) {
    decisions.push_back(decide_one(job, request, pipeline, now_s + delay_s, detected, made));
    made += decisions.back().events.size();
  }
  return decisions;
}

Result<std::vector<jobs::EventBody>> decide_withdrawal(const jobs::Job& job, const jobs::WithdrawStraggler& request) {
  if (!job.live()) return Error{ErrorCode::conflict, fmt::format("job {} is {}", job.id, jobs::name_of(job.state))};
  if (job.notice(request.id) == nullptr) {
    return Error{ErrorCode::not_found,
                 fmt::format("job {}: no straggler notice {} is pending or in force", job.id, request.id)};
  }
  return std::vector<jobs::EventBody>{jobs::StragglerWithdrawn{request.id, request.by}};
}

const jobs::Notice* next_pending(const jobs::Job& job) {
  const jobs::Notice* next = nullptr;
  for (const jobs::Notice& notice : job.notices) {
    if (!notice.in_force && (next == nullptr || notice.effective_s < next->effective_s)) next = &notice;
  }
  return next;
}

std::vector<double> degrees_in_force(const jobs::Job& job) {
  std::vector<double> degrees(job.num_pipelines(), 1.0);
  for (const jobs::Notice& notice : job.notices) {
    if (notice.in_force) degrees[notice.pipeline] = std::max(degrees[notice.pipeline], notice.degree);
  }
  return degrees;
}

}  // namespace perseus::policies
