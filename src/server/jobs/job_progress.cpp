#include "server/jobs/job_progress.h"

#include <algorithm>
#include <cstdlib>

namespace perseus::jobs {
namespace {

constexpr std::int64_t kTogether = 64;         // iterations that ranks may be apart: reports wait, and arrive in
                                               // batches
constexpr std::int64_t kBelieved = 1'000'000;  // iterations that a rank may be ahead of what time allows before its
                                               // report is rejected
constexpr double kLeastTime_s = 1e-3;

std::int64_t iterations_in(double seconds, double fastest_s) {
  return static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e9) / std::max(fastest_s, kLeastTime_s));
}

}  // namespace

bool JobProgress::confirms(const Said& now, double fastest_s) const {
  if (!doubted_) return false;
  if (doubted_->rank != now.rank) return std::abs(doubted_->iteration - now.iteration) <= kTogether;
  const std::int64_t most = doubted_->iteration + kTogether + iterations_in(now.at_s - doubted_->at_s, fastest_s);
  return only_rank_ && now.iteration > doubted_->iteration && now.iteration <= most;
}

bool JobProgress::report(int rank, std::int64_t iteration, std::int64_t finished, double now_s, double fastest_s) {
  const Said now{rank, iteration, now_s};
  const Said start = agreed_.value_or(Said{0, 0, began_s_});
  if (iteration > start.iteration + kBelieved + iterations_in(now_s - start.at_s, fastest_s)) {
    const bool confirmed = confirms(now, fastest_s);
    doubted_ = now;
    if (!confirmed) return false;
    said_.reset();
    agreed_ = now;
  } else if (said_ && said_->rank != rank && (!agreed_ || std::min(said_->iteration, iteration) > agreed_->iteration)) {
    agreed_ = {rank, std::min(said_->iteration, iteration), now_s};
  }
  said_ = now;
  std::int64_t most = std::max(iteration, iteration_);
  if (agreed_) most = std::min(most, agreed_->iteration + kTogether + iterations_in(now_s - agreed_->at_s, fastest_s));
  finished_ = std::min(std::max(finished, finished_), most);
  if (most != iteration_ || at_s_ == 0) at_s_ = now_s;
  iteration_ = most;
  return true;
}

}  // namespace perseus::jobs
