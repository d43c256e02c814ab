#include "store/group_commit.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace perseus {

GroupCommit::GroupCommit(Post post, Commit commit)
    : post_(std::move(post)), commit_(std::move(commit)), thread_([this] { work(); }) {}

GroupCommit::~GroupCommit() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void GroupCommit::add(Write write) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(write));
  }
  wake_.notify_one();
}

void GroupCommit::work() {
  while (true) {
    std::vector<Write> writes;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      writes.swap(waiting_);
    }
    commit(std::move(writes));
  }
}

void GroupCommit::commit(std::vector<Write> writes) {
  const std::optional<Error> error = commit_(writes);
  std::vector<std::optional<Error>> outcomes(writes.size(), error);
  if (error && error->code == ErrorCode::invalid_input && writes.size() > 1) {
    for (std::size_t i = 0; i < writes.size(); ++i) outcomes[i] = commit_(std::span(writes).subspan(i, 1));
  }
  auto committed = std::make_shared<Committed>();
  committed->writes = std::move(writes);
  committed->outcomes = std::move(outcomes);
  answer_some(post_, std::move(committed));
}

void GroupCommit::answer_some(const Post& post, std::shared_ptr<Committed> committed) {
  post([post, committed = std::move(committed)] {
    const std::size_t end = std::min(committed->next + kAnswersInTurn, committed->writes.size());
    for (; committed->next < end; ++committed->next) {
      committed->writes[committed->next].done(committed->outcomes[committed->next]);
    }
    if (end < committed->writes.size()) answer_some(post, committed);
  });
}

}  // namespace perseus
