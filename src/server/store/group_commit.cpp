#include "server/store/group_commit.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace perseus::store {

GroupCommit::GroupCommit(Post post, Commit commit)
    : post_(std::move(post)),
      commit_(std::move(commit)),
      thread_(post_ ? std::thread([this] { work(); }) : std::thread()) {}

GroupCommit::~GroupCommit() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void GroupCommit::add(std::unique_ptr<Write> write) {
  if (!post_) return write->done(timed_commit(std::span(&write, 1)));
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(write));
  }
  wake_.notify_one();
}

void GroupCommit::work() {
  while (true) {
    std::vector<std::unique_ptr<Write>> writes;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      writes.swap(waiting_);
    }
    commit(std::move(writes));
  }
}

CommitCounts GroupCommit::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::optional<Error> GroupCommit::timed_commit(Writes writes) {
  const auto began = std::chrono::steady_clock::now();
  std::optional<Error> error = commit_(writes);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const std::lock_guard lock(mutex_);
  error ? void(++counts_.failed) : counts_.succeeded_in(took.count());
  return error;
}

void GroupCommit::commit(std::vector<std::unique_ptr<Write>> writes) {
  const std::optional<Error> error = timed_commit(writes);
  std::vector<std::optional<Error>> outcomes(writes.size(), error);
  if (error && error->code == ErrorCode::invalid_input && writes.size() > 1) {
    for (std::size_t i = 0; i < writes.size(); ++i) outcomes[i] = timed_commit(std::span(writes).subspan(i, 1));
  }
  bool first = false;
  {
    const std::lock_guard lock(answers_->mutex);
    first = answers_->groups.empty();
    answers_->groups.push_back({.writes = std::move(writes), .outcomes = std::move(outcomes)});
  }
  if (first) post_([post = post_, answers = answers_] { answer_some(post, answers); });
}

void GroupCommit::answer_some(const Post& post, const std::shared_ptr<Answers>& answers) {
  Committed* group = nullptr;
  {
    const std::lock_guard lock(answers->mutex);
    group = &answers->groups.front();  // stays valid: additions go to the end, and only this function removes
  }
  const std::size_t end = std::min(group->next + kAnswersInTurn, group->writes.size());
  for (; group->next < end; ++group->next) group->writes[group->next]->done(group->outcomes[group->next]);
  if (end == group->writes.size()) {
    Committed answered;  // freed after the lock
    const std::lock_guard lock(answers->mutex);
    answered = std::move(answers->groups.front());
    answers->groups.pop_front();
    if (answers->groups.empty()) return;
  }
  post([post, answers] { answer_some(post, answers); });
}

}  // namespace perseus::store
