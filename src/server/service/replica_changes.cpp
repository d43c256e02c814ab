#include "server/service/replica_changes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/service/job_cache.h"

namespace perseus::service {

void ReplicaChanges::with_changes(const std::string& id, FoundJob then) {
  const LiveJob* const live = jobs_.in_memory(id);
  if (live != nullptr && live->outbox_.is_appending() && store_.writes_late()) return then(StoreAccess::not_answered());
  queries_[id].next.push_back(std::move(then));
  query(id);
}

void ReplicaChanges::query(const std::string& id) {
  const auto found = queries_.find(id);
  if (found == queries_.end() || found->second.reading) return;
  const LiveJob* const live = jobs_.in_memory(id);
  // An operation in progress finishes first: JobCache then calls this again.
  if ((live != nullptr && live->outbox_.is_appending()) || jobs_.is_loading(id)) return;
  Query& queried = found->second;
  if (live == nullptr || live->stale_) {
    const std::vector<FoundJob> all = std::move(queried.next);
    queries_.erase(found);
    for (const FoundJob& then : all) jobs_.load(id, then);
    return;
  }
  if (queried.next.empty()) return void(queries_.erase(found));
  queried.asking = std::move(queried.next);
  queried.next.clear();
  queried.reading = true;
  store_.read<std::int64_t>(
      [id, after = live->committed](store::Store& store) -> Result<std::int64_t> {
        const auto tail = store.read(id, after);
        if (!tail) return tail.error();
        return tail->empty() ? after : tail->back().sequence;
      },
      [weak = weak_from_this(), id](const Result<std::int64_t>& last) {
        if (const auto self = weak.lock()) self->answered(id, last);
      });
}

void ReplicaChanges::answered(const std::string& id, const Result<std::int64_t>& last) {
  Query& queried = queries_[id];
  std::vector<FoundJob> asking = std::move(queried.asking);
  queried.asking.clear();
  queried.reading = false;
  LiveJob* const live = jobs_.in_memory(id);
  if (last && live != nullptr && *last > live->committed) {
    live->stale_ = true;
    // Asked again after the append, or answered when the job has been read.
    std::ranges::move(queried.next, std::back_inserter(asking));
    queried.next = std::move(asking);
    return query(id);
  }
  for (const FoundJob& then : asking) {
    if (last) {
      jobs_.with(id, then);
    } else {
      then(last.error());
    }
  }
  query(id);
}

std::vector<FoundJob> ReplicaChanges::take_waiting(const std::string& id) {
  const auto found = queries_.find(id);
  return found == queries_.end() ? std::vector<FoundJob>{} : std::exchange(found->second.next, {});
}

}  // namespace perseus::service
