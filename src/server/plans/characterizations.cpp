#include "server/plans/characterizations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/cpu_time.h"

namespace perseus::plans {
namespace {

constexpr std::size_t kKeptFrontiers = 8;
constexpr double kQuotaLook_s = 60;    // while plannings wait
constexpr double kWrongEstimate = 20;  // planning that takes this many times the quick limit was estimated wrongly

}  // namespace

Characterizations::Characterizations(const PlanningOptions& options, work::StoreAccess& store, const Clock& clock,
                                     work::Due& due, work::Executor& executor)
    : options_(options),
      store_(store),
      clock_(clock),
      alarm_(due, work::Due::Turn::frontiers, *this),
      executor_(executor) {
  options_changed();
}

Characterizations::~Characterizations() {
  for (auto& [key, work] : work_) {
    if (work.planning) work.planning->request_stop();
  }
}

Characterizations::Frontier Characterizations::known(const std::string& key) const {
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : found->second.lock();
}

// ---- Requests for frontiers

void Characterizations::want(const std::string& key, const Wanter& who, Answer answer) {
  const auto [found, is_new] = work_.try_emplace(key);
  Work& work = found->second;
  work.wanters[who.id] = {who.owner, std::move(answer)};
  if (stopping_) return;
  if (is_new) {
    work.late_s = clock_.now_s() + options_.maximum_clock_after_s;
    next_late_s_ = std::min(next_late_s_, *work.late_s);
    set_alarm();
    return start(key);
  }
  if (work.queued) enqueue(key);  // queued for one more owner
  if (!work.quick) return;
  executor_.submit(work::Executor::Kind::request, [this, key, id = who.id]() -> std::function<void()> {
    return [this, key, id] {
      if (!work_.contains(key)) return;
      const Work& now = work_.at(key);
      const auto wanted = now.wanters.find(id);
      if (wanted == now.wanters.end() || !now.quick) return;
      const Frontier quick = now.quick;
      const Answer tell = wanted->second.answer;
      tell(quick);
    };
  });
}

void Characterizations::when_read(const std::string& key, std::function<void()> then) {
  const auto found = work_.find(key);
  if (found == work_.end() || !found->second.reading) return then();
  found->second.readers.push_back(std::move(then));
}

void Characterizations::reading_is_over(const std::string& key) {
  const auto found = work_.find(key);
  if (found == work_.end()) return;
  found->second.reading = false;
  for (const auto& then : std::exchange(found->second.readers, {})) then();
}

void Characterizations::forget(const std::string& key, const std::string& wanter) {
  const auto found = work_.find(key);
  if (found == work_.end()) return;
  Work& work = found->second;
  work.wanters.erase(wanter);
  if (!work.wanters.empty()) {
    if (work.queued) enqueue(key);
    return;
  }
  if (work.planning) work.planning->request_stop();  // planned() ends the work
  if (!work.queued) return;                          // the pending answer will find that no job needs it
  queue_.remove(key);
  work_.erase(found);
}

void Characterizations::stop() {
  stopping_ = true;
  others_.clear();
  for (auto& [key, work] : work_) {
    if (work.planning) work.planning->request_stop();
  }
}

// ---- From the store

void Characterizations::start(const std::string& key) {
  Work& work = work_[key];
  work.reading = true;
  if (known(key)) return read_frontier(key, key, "");
  const bool quick_will_do = !work.quick && !jobs::is_quick_frontier_key(key);
  store_.read<Stored>(
      [key, quick_will_do](store::Store& store) -> Result<Stored> {
        auto full = store.blob("frontier/" + key);
        if (!full) return full.error();
        if (*full || !quick_will_do) return Stored{key, *std::move(full)};
        const std::string quick_key = jobs::quick_frontier_key(key);
        auto quick = store.blob("frontier/" + quick_key);
        if (!quick) return quick.error();
        return Stored{quick_key, *std::move(quick)};
      },
      [this, key](Result<Stored> stored) {
        if (!work_.contains(key)) return;
        const bool damaged = !stored && stored.error().code == ErrorCode::internal;
        if (!stored && !damaged) return finish(key, stored.error());
        if (damaged || !stored->bytes) return enqueue(key);
        read_frontier(key, stored->key, *std::move(stored->bytes));
      });
}

void Characterizations::read_frontier(const std::string& key, const std::string& blob_key, std::string bytes) {
  executor_.submit(
      work::Executor::Kind::reading,
      [this, key, blob_key, known = known(blob_key), bytes = std::move(bytes)]() -> std::function<void()> {
        Result<Frontier> result = known;
        if (!known) {
          auto parsed = jobs::parse_frontier(blob_key, bytes);
          result = parsed ? Result<Frontier>(std::make_shared<const jobs::CharacterizedPipeline>(*std::move(parsed)))
                          : Result<Frontier>(parsed.error());
        }
        return [this, key, blob_key, result = std::move(result)] {
          if (!work_.contains(key)) return;
          if (result && key == blob_key) return finish(key, result);
          if (result) offer_quick(key, *result);
          // An unreadable frontier, for example from a later version, is planned again.
          enqueue(key);
        };
      });
}

// ---- Planning

void Characterizations::enqueue(const std::string& key) {
  reading_is_over(key);
  const auto found = work_.find(key);
  if (found == work_.end() || stopping_) return;
  Work& work = found->second;
  if (work.wanters.empty()) {
    queue_.remove(key);
    work_.erase(found);
    return;
  }
  std::set<std::string> owners;
  for (const auto& [id, wanted] : work.wanters) owners.insert(wanted.owner);
  work.queued = true;
  queue_.put(key, work.quick ? PlanningQueue::Kind::refinement : PlanningQueue::Kind::first, std::move(owners));
  start_next();
}

void Characterizations::in_turn(const std::string& key, const std::string& owner, std::function<void(TurnOver)> begin) {
  if (stopping_) return;
  others_[key] = std::move(begin);
  queue_.put(key, PlanningQueue::Kind::first, {owner});
  start_next();
}

void Characterizations::start_next() {
  if (std::exchange(starting_, true)) return;  // a store that does not answer fails inside the call
  for (const auto kind : {PlanningQueue::Kind::first, PlanningQueue::Kind::refinement}) {
    // First frontiers start first.
    if (kind == PlanningQueue::Kind::refinement && queue_.has(PlanningQueue::Kind::first, clock_.now_s())) break;
    while (!stopping_ && under_way_[kind] < options_.planners) {
      const auto next = queue_.take(kind, clock_.now_s());
      if (!next) break;
      ++under_way_[kind];
      const Turn turn{kind, next->owner, std::make_shared<std::atomic<bool>>(false)};
      if (auto other = others_.extract(next->key)) {
        other.mapped()([this, turn](double planner_s) { turn_is_over(turn, planner_s); });
        continue;
      }
      work_[next->key].queued = false;
      if (kind == PlanningQueue::Kind::refinement) refining_.push_back(turn);
      compute(next->key, turn);
    }
  }
  for (const Turn& turn : refining_) {
    *turn.others_wait = queue_.others_wait(PlanningQueue::Kind::refinement, turn.owner, clock_.now_s());
  }
  starting_ = false;
  set_alarm();
}

void Characterizations::turn_is_over(const Turn& turn, double planner_s) {
  --under_way_[turn.kind];
  std::erase_if(refining_, [&](const Turn& one) { return one.others_wait == turn.others_wait; });
  queue_.done(turn.owner, planner_s, clock_.now_s());
  planner_s_ += planner_s;
  start_next();
}

void Characterizations::compute(const std::string& key, const Turn& turn) {
  const std::string input_key(jobs::input_of_frontier(key));
  store_.read<Bytes>(
      [input_key](store::Store& store) { return store.blob("input/" + input_key); },
      [this, key, turn, input_key](Result<Bytes> input) {
        if (input && *input) return compute(key, turn, std::move(**input));
        const Error missing{ErrorCode::not_found, fmt::format("the profile {} is not in the store", input_key)};
        finish(key, input ? missing : input.error());
        turn_is_over(turn, 0);
      });
}

void Characterizations::compute(const std::string& key, const Turn& turn, std::string text) {
  Work& work = work_[key];
  if (stopping_ || work.wanters.empty()) {
    if (work.wanters.empty()) work_.erase(key);
    return turn_is_over(turn, 0);
  }
  work.planning.emplace();
  jobs::CharacterizationEffort effort{};
  const bool refines = work.quick != nullptr;
  effort.quick_above_s = refines ? std::nullopt : std::optional(options_.quick_above_s);
  effort.quick_after_s = std::min(options_.planning_budget_s, kWrongEstimate * options_.quick_above_s);
  if (jobs::is_quick_frontier_key(key)) effort.quick_above_s = 0;
  const bool has_slice = turn.kind == PlanningQueue::Kind::refinement;
  executor_.submit(
      refines ? work::Executor::Kind::refining : work::Executor::Kind::planning,
      [this, key, turn, text = std::move(text), input_key = std::string(jobs::input_of_frontier(key)), effort, refines,
       has_slice, stop = work.planning->get_token(), budget_s = options_.planning_budget_s,
       slice_s = std::max(options_.refinement_slice_s, work.slice_s)]() -> std::function<void()> {
        Planned planned;
        const double begin_s = thread_cpu_s();
        StopCheck check([&] {
          const double spent_s = thread_cpu_s() - begin_s;
          // The budget does not apply to a quick frontier.
          planned.over_budget = refines && spent_s > budget_s;
          planned.turn_is_over = has_slice && spent_s > slice_s && *turn.others_wait;
          return planned.over_budget || planned.turn_is_over || stop.stop_requested();
        });
        if (const auto parsed = jobs::parse_input(text, "input/" + input_key); !parsed) {
          planned.error = parsed.error();
        } else if (auto made = jobs::characterize(input_key, *parsed, effort, check); !made) {
          planned.error = made.error();
        } else if (check.stop(StopCheck::kCostBetweenQuestions)) {
          planned.error = planning_stopped();
        } else if (auto bytes = jobs::format_frontier(*made); bytes.empty()) {
          planned.error = Error{ErrorCode::too_large, "the frontier is too large to be kept"};
        } else {
          planned.bytes = std::move(bytes);
          planned.frontier = std::make_shared<const jobs::CharacterizedPipeline>(*std::move(made));
        }
        planned.planner_s = thread_cpu_s() - begin_s;
        return [this, key, turn, planned = std::move(planned)]() mutable {
          const double planner_s = planned.planner_s;
          this->planned(key, std::move(planned));
          turn_is_over(turn, planner_s);
        };
      });
}

void Characterizations::planned(const std::string& key, Planned planned) {
  Work& work = work_[key];
  const bool was_stopped = work.planning->stop_requested() && planned.error;
  work.planning.reset();
  if (was_stopped) ++stopped_;
  if (stopping_) return;
  if (was_stopped) {
    // Another job may have requested it again meanwhile.
    return enqueue(key);
  }
  if (planned.error && planned.turn_is_over && !planned.over_budget) {
    // The refinement restarts with twice the time: all attempts before the last one together take less than twice its
    // time.
    work.slice_s = 2 * planned.planner_s;
    return enqueue(key);
  }
  if (planned.error && planned.over_budget) {
    return finish(key, Error{ErrorCode::too_large,
                             fmt::format("planning took longer than its budget of {:g} s (planning_budget_s)",
                                         options_.planning_budget_s)});
  }
  if (planned.error) return finish(key, *planned.error);
  save(key, std::move(planned.frontier), std::move(planned.bytes));
}

void Characterizations::save(const std::string& key, Frontier frontier, std::string bytes) {
  ++computed_;
  store_.put_blob({"frontier/" + frontier->key, std::move(bytes)}, [this, key, frontier](const Result<Ok>& saved) {
    if (!saved) return finish(key, saved.error());
    if (frontier->key == key) return finish(key, frontier);
    const auto found = work_.find(key);
    if (found == work_.end()) return;
    offer_quick(key, frontier);
    enqueue(key);
  });
}

void Characterizations::offer_quick(const std::string& key, const Frontier& quick) {
  remember(quick);
  Work& work = work_[key];
  work.quick = quick;
  work.late_s.reset();
  std::vector<Answer> answers;  // they may change the set of wanters
  for (const auto& [id, wanted] : work.wanters) answers.push_back(wanted.answer);
  for (const Answer& answer : answers) answer(quick);
  reading_is_over(key);
}

void Characterizations::remember(const Frontier& frontier) {
  known_[frontier->key] = frontier;
  std::erase(recent_, frontier);
  recent_.push_back(frontier);
  if (recent_.size() > kKeptFrontiers) recent_.pop_front();
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
}

void Characterizations::finish(const std::string& key, Result<Frontier> result) {
  const auto found = work_.find(key);
  if (found == work_.end()) return;
  const Work work = std::move(found->second);
  work_.erase(found);
  if (result) {
    remember(*result);
  } else if (result.error().code != ErrorCode::unavailable) {
    ++failed_;
  }
  for (const auto& [id, wanted] : work.wanters) wanted.answer(result);
  for (const auto& then : work.readers) then();
}

void Characterizations::log_late(const Work& work) const {
  if (work.wanters.empty()) return;
  std::string state = "it is being read";
  if (work.planning) state = "it is being planned";
  if (work.queued) state = fmt::format("{} wait for a planner", queue_.waiting(PlanningQueue::Kind::first));
  const std::size_t others = work.wanters.size() - 1;
  options_.host->log(fmt::format("job {}{}: no plan after {:g} s ({}); its ranks run at the highest clock until then",
                                 work.wanters.begin()->first, others > 0 ? fmt::format(" and {} more", others) : "",
                                 options_.maximum_clock_after_s, state));
}

void Characterizations::look_for_late(double now_s) {
  if (stopping_) return;
  if (now_s >= next_late_s_) {
    next_late_s_ = std::numeric_limits<double>::infinity();
    for (auto& [key, work] : work_) {
      if (!work.late_s) continue;
      if (*work.late_s <= now_s) {
        work.late_s.reset();
        log_late(work);
      } else {
        next_late_s_ = std::min(next_late_s_, *work.late_s);
      }
    }
  }
  start_next();
}

void Characterizations::set_alarm() {
  double next_s = next_late_s_;
  // An owner may be within its quota again.
  const bool waits = queue_.waiting(PlanningQueue::Kind::first) + queue_.waiting(PlanningQueue::Kind::refinement) > 0;
  if (waits) next_s = std::min(next_s, clock_.now_s() + kQuotaLook_s);
  alarm_.set(std::isfinite(next_s) ? std::optional(next_s) : std::nullopt);
}

}  // namespace perseus::plans
