#include "server/service/job_news.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/service/live_jobs.h"

namespace perseus::service {

void JobNews::with_news(const std::string& id, FoundJob then) {
  const LiveJob* const live = jobs_.in_memory(id);
  if (live != nullptr && live->appending_ && store_.writes_late()) return then(StoreAccess::not_answered());
  news_[id].next.push_back(std::move(then));
  ask(id);
}

void JobNews::ask(const std::string& id) {
  const auto found = news_.find(id);
  if (found == news_.end() || found->second.reading) return;
  const LiveJob* const live = jobs_.in_memory(id);
  // An operation in progress finishes first: LiveJobs then calls this again.
  if ((live != nullptr && live->appending_) || jobs_.is_loading(id)) return;
  News& news = found->second;
  if (live == nullptr || live->stale_) {
    const std::vector<FoundJob> all = std::move(news.next);
    news_.erase(found);
    for (const FoundJob& then : all) jobs_.load(id, then);
    return;
  }
  if (news.next.empty()) return void(news_.erase(found));
  news.asking = std::move(news.next);
  news.next.clear();
  news.reading = true;
  store_.read<std::int64_t>(
      [id, after = live->committed](store::Store& store) -> Result<std::int64_t> {
        const auto tail = store.read(id, after);
        if (!tail) return tail.error();
        return tail->empty() ? after : tail->back().sequence;
      },
      [weak = weak_from_this(), id](const Result<std::int64_t>& last) {
        if (const auto self = weak.lock()) self->heard(id, last);
      });
}

void JobNews::heard(const std::string& id, const Result<std::int64_t>& last) {
  News& news = news_[id];
  std::vector<FoundJob> asking = std::move(news.asking);
  news.asking.clear();
  news.reading = false;
  LiveJob* const live = jobs_.in_memory(id);
  if (last && live != nullptr && *last > live->committed) {
    live->stale_ = true;
    // Asked again after the append, or answered when the job has been read.
    std::ranges::move(news.next, std::back_inserter(asking));
    news.next = std::move(asking);
    return ask(id);
  }
  for (const FoundJob& then : asking) {
    if (last) {
      jobs_.with(id, then);
    } else {
      then(last.error());
    }
  }
  ask(id);
}

std::vector<FoundJob> JobNews::take_waiting(const std::string& id) {
  const auto found = news_.find(id);
  return found == news_.end() ? std::vector<FoundJob>{} : std::exchange(found->second.next, {});
}

}  // namespace perseus::service
