#include "server/work/upkeep.h"

#include <algorithm>
#include <utility>

#include "server/jobs/job.h"

namespace perseus::work {
namespace {

constexpr double kSoon_s = 1;
constexpr double kRest_s = 600;
constexpr std::size_t kAtOnce = 200;     // then other work has its turn
constexpr std::int64_t kLongLog = 1000;  // unpacked events of a live job

bool has_ended(const store::JobIndexRow& row) {
  return row.state == jobs::name_of(jobs::JobState::finished) || row.state == jobs::name_of(jobs::JobState::expired);
}

}  // namespace

UpkeepWork upkeep_of(std::vector<store::JobIndexRow> jobs, const Keep& keep, double now_s) {
  std::erase_if(jobs, &store::JobIndexRow::damaged);
  std::ranges::sort(jobs, {}, &store::JobIndexRow::updated_s);
  std::int64_t bytes = 0;
  for (const store::JobIndexRow& row : jobs) bytes += row.bytes;
  UpkeepWork work;
  for (const store::JobIndexRow& row : jobs) {
    const bool old = keep.finished_s > 0 && row.updated_s + keep.finished_s <= now_s;
    const bool too_much = keep.finished_bytes > 0 && bytes > keep.finished_bytes;
    if (has_ended(row) && (old || too_much)) {
      work.remove.push_back(row.job);
      bytes -= row.bytes;
    } else if (row.last_sequence - row.packed >= (has_ended(row) ? 1 : kLongLog)) {
      work.pack.push_back(row.job);
    }
  }
  return work;
}

Upkeep::Upkeep(Keep keep, StoreAccess& store, const Clock& clock, Due& due, RemoveJob remove)
    : keep_(keep), store_(store), clock_(clock), alarm_(due, Due::Turn::retention, *this), remove_(std::move(remove)) {
  rest(0);
}

void Upkeep::go_on() {
  if (tasks_.empty()) return look();
  std::vector<Task> now;
  // The sweep comes last, since it returns the space that the other tasks free.
  const auto may_begin = [&] { return now.empty() || tasks_.front().kind != Task::Kind::sweep; };
  while (!tasks_.empty() && now.size() < kAtOnce && may_begin()) {
    now.push_back(std::move(tasks_.front()));
    tasks_.pop_front();
  }
  under_way_ = now.size();
  for (Task& task : now) begin(std::move(task));
}

void Upkeep::set_keep(Keep keep) {
  keep_ = keep;
  if (!looking_ && under_way_ == 0) rest(0);
}

void Upkeep::look() {
  looking_ = true;
  store_.read<std::vector<store::JobIndexRow>>(
      [](store::Store& store) { return store.jobs(); },
      [this](const Result<std::vector<store::JobIndexRow>>& jobs) { found(jobs); });
}

void Upkeep::found(const Result<std::vector<store::JobIndexRow>>& jobs) {
  looking_ = false;
  if (jobs) {
    UpkeepWork work = upkeep_of(*jobs, keep_, clock_.now_s());
    for (std::string& job : work.remove) tasks_.push_back({Task::Kind::remove, std::move(job)});
    for (std::string& job : work.pack) tasks_.push_back({Task::Kind::pack, std::move(job)});
    if (keep_.ages()) tasks_.push_back({Task::Kind::age, ""});
    if (keep_.unused_s > 0) tasks_.push_back({Task::Kind::sweep, ""});
  }
  rest(tasks_.empty() ? kRest_s : 0);
}

void Upkeep::begin(Task task) {
  const auto end = [this, task](const Result<bool>& more) { ended(task, more); };
  switch (task.kind) {
    case Task::Kind::remove:
      return remove_(task.job, [end](const Status& removed) {
        removed ? end(Result<bool>(false)) : end(Result<bool>(removed.error()));
      });
    case Task::Kind::pack:
      return store_.write(&store::Store::pack_job, task.job, end);
    case Task::Kind::age:
      return store_.write(&store::Store::age_history, age(), end);
    case Task::Kind::sweep:
      return store_.write(&store::Store::sweep, {{"frontier/", "input/", "known/"}, clock_.now_s(), keep_.unused_s},
                          end);
  }
}

store::AgeHistory Upkeep::age() const {
  const auto before = [&](double kept_s, std::int64_t step_s) -> std::int64_t {
    if (kept_s <= 0) return 0;
    const auto limit_s = static_cast<std::int64_t>(clock_.now_s() - kept_s);
    return std::max<std::int64_t>(0, limit_s - limit_s % step_s);
  };
  return {before(keep_.minutes_s, store::kHour_s), before(keep_.hours_s, store::kHour_s)};
}

void Upkeep::ended(Task task, const Result<bool>& more) {
  if (more && *more) tasks_.push_front(std::move(task));
  if (--under_way_ > 0) return;
  rest(tasks_.empty() ? kRest_s : kSoon_s);
}

void Upkeep::rest(double seconds) { alarm_.set(keep_.any() ? std::optional(clock_.now_s() + seconds) : std::nullopt); }

}  // namespace perseus::work
