#include "server/savings/job_progress.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace perseus::savings {
namespace {

constexpr std::int64_t kTogether = 64;  // iterations that ranks may be apart: reports wait, and arrive in
                                        // batches
constexpr double kLeastTime_s = 1e-3;

}  // namespace

std::int64_t iterations_in(double seconds, double fastest_s) {
  return static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e9) / std::max(fastest_s, kLeastTime_s));
}

bool JobProgress::agrees(const Said& now, double fastest_s) const {
  if (!doubted_) return false;
  const std::int64_t meanwhile = kTogether + iterations_in(now.at_s - doubted_->at_s, fastest_s);
  return std::abs(doubted_->iteration - now.iteration) <= meanwhile;
}

void JobProgress::vote(int rank, Vote vote) {
  if (votes_.size() <= static_cast<std::size_t>(rank)) votes_.resize(static_cast<std::size_t>(rank) + 1);
  const auto count = [&](Vote one, int change) {
    if (one == Vote::here) here_ += change;
    if (one == Vote::elsewhere) elsewhere_ += change;
  };
  count(votes_[rank], -1);
  votes_[rank] = vote;
  count(vote, 1);
}

bool JobProgress::moves_to(const Said& now, bool behind, double fastest_s) {
  const bool agreed = agrees(now, fastest_s);
  const bool continues = agreed && only_rank_ && now.iteration > doubted_->iteration;
  if (!agreed) {
    std::ranges::replace(votes_, Vote::elsewhere, Vote::none);
    elsewhere_ = 0;
  }
  vote(now.rank, Vote::elsewhere);
  doubted_ = now;
  const bool wins = elsewhere_ > 1 && (behind ? elsewhere_ >= here_ : elsewhere_ > here_);
  if (!continues && !wins) return false;
  for (Vote& one : votes_) one = one == Vote::elsewhere ? Vote::here : Vote::none;
  here_ = std::exchange(elsewhere_, 0);
  doubted_.reset();
  said_.reset();
  agreed_ = now;
  iteration_ = finished_ = 0;
  at_s_ = 0;
  return true;
}

bool JobProgress::report(int rank, std::int64_t iteration, std::int64_t finished, double now_s, double fastest_s) {
  const Said now{rank, iteration, now_s};
  const Said start = agreed_.value_or(Said{0, 0, began_s_});
  const bool ahead = iteration > start.iteration + kBelieved + iterations_in(now_s - start.at_s, fastest_s);
  const bool behind = said_ && iteration < iteration_ - kBelieved;
  if (ahead || behind) {
    if (!moves_to(now, behind, fastest_s)) return false;
  } else {
    vote(rank, Vote::here);
    if (said_ && said_->rank != rank && (!agreed_ || std::min(said_->iteration, iteration) > agreed_->iteration)) {
      agreed_ = {rank, std::min(said_->iteration, iteration), now_s};
    }
  }
  said_ = now;
  std::int64_t most = std::max(iteration, iteration_);
  if (agreed_) most = std::min(most, agreed_->iteration + kTogether + iterations_in(now_s - agreed_->at_s, fastest_s));
  finished_ = std::min(std::max(finished, finished_), most);
  if (most != iteration_ || at_s_ == 0) at_s_ = now_s;
  iteration_ = most;
  return true;
}

}  // namespace perseus::savings
