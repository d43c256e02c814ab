#include "server/plans/held_plans.h"

#include <map>
#include <utility>
#include <vector>

namespace perseus::plans {
namespace {

/// The events that the notes make of a job now. A rank whose process has changed since has nothing.
std::vector<jobs::EventBody> events_of(const jobs::Job& job, const live::NotedVersions& notes) {
  std::map<std::int64_t, std::vector<int>> ranks_of;
  for (const auto& [rank, note] : notes.of_rank) {
    const jobs::RankSlot& slot = job.ranks[rank];
    if (slot && slot->epoch == note.epoch && slot->held < note.version && note.version <= job.version) {
      ranks_of[note.version].push_back(rank);
    }
  }
  std::vector<jobs::EventBody> events;
  for (auto& [version, ranks] : ranks_of) {
    if (ranks.size() == job.ranks.size()) ranks.clear();
    events.emplace_back(jobs::VersionHeld{version, std::move(ranks)});
  }
  return events;
}

}  // namespace

void HeldPlans::note(live::LiveJob& live, int rank, std::int64_t version) {
  const jobs::Job& job = live.job;
  if (version <= 0 || version > live.shown.committed_plan || !job.plan || !job.plan->budget) return;
  const jobs::Rank& of = *job.ranks[rank];
  if (of.held >= version) return;
  live::NotedVersions& notes = live.noted;
  live::NotedVersions::Note& note = notes.of_rank[rank];
  if (note.version == version && note.epoch == of.epoch) return;
  note = {version, of.epoch};
  if (notes.newest != version) notes.newest = version, notes.of_newest = 0;
  ++notes.of_newest;
  noted_.insert(job.id);
  if (version == job.version && notes.of_newest >= static_cast<int>(job.ranks.size())) return write(job.id);
  if (!alarm_.at()) alarm_.set(clock_.now_s() + kGather_s);
}

void HeldPlans::write_all() {
  for (const std::string& id : std::exchange(noted_, {})) write(id);
}

void HeldPlans::write(const std::string& id) {
  noted_.erase(id);
  live::LiveJob* const live = jobs_.in_memory(id);
  if (live == nullptr || live->noted.of_rank.empty()) return;
  jobs_.execute(id, {[notes = std::exchange(live->noted, {})](const jobs::Job& job, double) -> Result<live::Decision> {
                       live::Decision decision;
                       if (job.live()) decision.events = events_of(job, notes);
                       return decision;
                     },
                     {}});
}

}  // namespace perseus::plans
