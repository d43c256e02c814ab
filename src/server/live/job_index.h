// The rows of the store's index in memory, with a record of changed rows.
//
// Problem: lists cache each job's row as text and must rebuild only changed rows.
// Input:   changes, by the methods of a map.
// Output:  the rows by id; take_changed(): the ids of rows changed or removed since the last call.
// Errors:  none.
// Cost:    a lookup.
// Threads: io thread.
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "server/live/job_hooks.h"

namespace perseus::live {

class JobIndex {
 public:
  explicit JobIndex(JobHooks& hooks) : hooks_(hooks) {}
  using Rows = std::map<std::string, store::JobIndexRow>;

  [[nodiscard]] Rows::const_iterator begin() const { return rows_.begin(); }
  [[nodiscard]] Rows::const_iterator end() const { return rows_.end(); }
  [[nodiscard]] Rows::const_iterator find(const std::string& id) const { return rows_.find(id); }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

  store::JobIndexRow& operator[](const std::string& id) {
    note(id);
    return rows_[id];
  }
  void emplace(const std::string& /*id*/, store::JobIndexRow row) {
    const std::string id = row.job;  // copied: the caller's id may be in the row that is moved here
    if (rows_.emplace(id, std::move(row)).second) note(id);
  }
  void try_emplace(const std::string& id, store::JobIndexRow row) { emplace(id, std::move(row)); }
  void erase(const std::string& id) {
    const auto found = rows_.find(id);
    if (found == rows_.end()) return;
    const store::JobIndexRow gone = std::move(found->second);
    rows_.erase(found);
    note(gone.job);
    hooks_.row_erased(gone);
  }
  /// Marks the row as changed: data shown beside it have changed.
  void note(const std::string& id) {
    changed_.insert(id);
    hooks_.row_changed();
  }
  std::unordered_set<std::string> take_changed() { return std::exchange(changed_, {}); }
  [[nodiscard]] bool has_changed(const std::string& id) const { return changed_.contains(id); }
  [[nodiscard]] std::size_t changed() const { return changed_.size(); }

 private:
  JobHooks& hooks_;
  Rows rows_;
  std::unordered_set<std::string> changed_;
};

}  // namespace perseus::live
