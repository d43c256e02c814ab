// The minutes of a history that are not in the store yet: collects them, writes them once they are over.
//
// Input:   figures, which count for the minute in which they are added, under a name (a job, a domain).
// Output:  a minute is written once it is over, and in an orderly stop; each server writes rows of its own `source`, so
//          that a write whose outcome is unknown is repeated without counting twice. with_own(): the store's rows, with
//          the minutes that are not written yet.
// Errors:  while the store does not accept minutes they stay in memory, at most `most` (the oldest are dropped).
// Cost:    two lookups per call of add(); a write of up to 500 rows at a time, the next one after its answer.
// Threads: io thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/work/store_access.h"

namespace perseus::work {

/// `kName`: the member of a row with its name. `kWrite`: the store's method that writes rows.
template <class Row, std::string Row::*kName, void (store::Store::*kWrite)(std::vector<Row>, store::Store::Done<Ok>)>
class UnwrittenMinutes {
 public:
  using Figures = decltype(Row::figures);

  UnwrittenMinutes(StoreAccess& store, const Clock& clock, Due& due, std::string source, std::size_t most)
      : store_(store), clock_(clock), alarm_(due, Due::Turn::history, *this), source_(std::move(source)), most_(most) {}

  void add(const std::string& name, const Figures& figures) {
    const std::int64_t minute_s = minute_now();
    const auto [at, is_new] = minutes_[minute_s].try_emplace(name);
    at->second.add(figures);
    if (!is_new) return;
    ++size_;
    while (size_ > most_ && minutes_.size() > 1) {
      size_ -= minutes_.begin()->second.size();
      minutes_.erase(minutes_.begin());
    }
    if (!writing_ && !alarm_.at()) alarm_.set(static_cast<double>(minute_s + store::kMinute_s));
  }
  /// `name`: of the rows; nothing: of all names.
  [[nodiscard]] std::vector<Row> with_own(std::vector<Row> rows, std::optional<std::string_view> name = {}) const {
    std::erase_if(rows, [&](const Row& row) {
      const auto minute = minutes_.find(row.start_s);
      return row.source == source_ && row.step_s == store::kMinute_s && minute != minutes_.end() &&
             minute->second.contains(row.*kName);
    });
    for (const auto& [start_s, minute] : minutes_) {
      const auto first = name ? minute.lower_bound(*name) : minute.begin();
      for (auto own = first; own != minute.end() && (!name || own->first == *name); ++own) {
        rows.push_back({own->first, store::kMinute_s, start_s, source_, own->second});
      }
    }
    return rows;
  }
  /// Writes everything, before the server stops.
  void keep(Done<Ok> done) {
    keepers_.push_back(std::move(done));
    if (!writing_) write();
  }

 private:
  static constexpr std::size_t kRowsAtOnce = 500;
  static constexpr double kRetry_s = 10;

  [[nodiscard]] std::int64_t minute_now() const {
    return static_cast<std::int64_t>(std::floor(clock_.now_s() / store::kMinute_s)) * store::kMinute_s;
  }
  [[nodiscard]] std::vector<Row> rows_before(std::int64_t before_s) const {
    std::vector<Row> rows;
    for (auto minute = minutes_.begin(); minute != minutes_.end() && minute->first < before_s; ++minute) {
      for (const auto& [name, figures] : minute->second) {
        if (rows.size() == kRowsAtOnce) return rows;
        rows.push_back({name, store::kMinute_s, minute->first, source_, figures});
      }
    }
    return rows;
  }
  void answer_keepers(const Result<Ok>& result) {
    for (Done<Ok>& keeper : std::exchange(keepers_, {})) keeper(result);
  }
  void write() {
    const std::vector<Row> rows =
        rows_before(keepers_.empty() ? minute_now() : std::numeric_limits<std::int64_t>::max());
    if (rows.empty()) {
      answer_keepers(Ok{});
      alarm_.set(minutes_.empty() ? std::nullopt : std::optional<double>(minutes_.begin()->first + store::kMinute_s));
      return;
    }
    writing_ = true;
    alarm_.set(std::nullopt);
    store_.write(kWrite, rows, [this, rows](const Result<Ok>& done) { written(rows, done); });
  }
  void written(const std::vector<Row>& rows, const Result<Ok>& done) {
    writing_ = false;
    if (!done && done.error().code == ErrorCode::unavailable) {
      answer_keepers(done);
      return alarm_.set(clock_.now_s() + kRetry_s);
    }
    // A row that the database rejects would be rejected again.
    for (const Row& row : rows) forget(row);
    write();
  }
  void forget(const Row& row) {
    const auto minute = minutes_.find(row.start_s);
    if (minute == minutes_.end()) return;
    // A minute that an orderly stop writes may still get figures.
    const auto at = minute->second.find(row.*kName);
    if (at == minute->second.end() || !(at->second == row.figures)) return;
    minute->second.erase(at);
    --size_;
    if (minute->second.empty()) minutes_.erase(minute);
  }

  StoreAccess& store_;
  const Clock& clock_;
  AlarmOf<&UnwrittenMinutes::write> alarm_;  ///< at the time of the next write
  std::string source_;
  std::size_t most_;
  std::map<std::int64_t, std::map<std::string, Figures, std::less<>>> minutes_;  ///< by start
  std::size_t size_ = 0;                                                         ///< rows
  bool writing_ = false;
  std::vector<Done<Ok>> keepers_;  ///< wait until everything is written
};

}  // namespace perseus::work
