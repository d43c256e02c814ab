// The list of jobs, newest first, in pages; each row is cached as text.
//
// Problem: a list of thousands of jobs is requested repeatedly, while most rows are unchanged.
// Input:   changed and removed rows.
// Output:  pages. A cursor names the last row of a page by its place in the order, so a page stays right while jobs
//          are added and removed, even that job itself. revision() changes with every row; take_changes() returns the
//          rows changed since the last call.
// Errors:  none; a cursor must come from parse_cursor().
// Cost:    O(log n) per change. A page: its rows, or with a filter all rows examined.
// Threads: io thread.
// Source:  docs/decisions/0034.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/jobs/requests.h"
#include "server/views/list_cursor.h"

namespace perseus::views {

/// State in lists of a job whose row in the index is damaged.
inline constexpr std::string_view kDamagedState = "damaged";
/// All states that a row can have: those of jobs, and kDamagedState.
std::vector<std::string_view> listed_states();

class JobList {
 public:
  struct Row {
    std::string state, name;
    std::optional<std::string> owner;  ///< the token that registered it; empty: none; nothing: not known
    std::string text;                  ///< a JSON object
    double made_s = 0;                 ///< time at which the text was made
    bool is_live = false;
    int ranks = 0;  ///< expected
    jobs::Labels labels = {};
  };
  /// Live jobs registered by one token.
  struct Owned {
    std::int64_t jobs = 0, ranks = 0;
  };
  /// A position in the order.
  struct Place {
    double created_s = 0;
    std::string job;
    bool operator<(const Place& other) const {
      return created_s != other.created_s ? created_s > other.created_s : job < other.job;
    }
  };
  using Query = ListQuery<Place, Place, Row>;
  struct Page {
    std::vector<std::pair<const Place*, const Row*>> rows;  ///< valid until the list changes
    std::optional<Place> next;                              ///< the next page starts after this place; nothing: no more
                                                            ///< rows
  };
  struct Change {
    std::string job;
    std::optional<std::string> owner;
    std::optional<std::string> text;  ///< nothing: the row was removed
  };

  /// True if the row changed.
  bool put(const jobs::JobListEntry& entry, double now_s);
  void remove(const std::string& job);
  [[nodiscard]] Page page(const Query& query) const;
  [[nodiscard]] const Row* find(const std::string& job) const;
  [[nodiscard]] Owned owned_by(const std::string& token) const;
  /// Number of jobs by state; states without jobs may be missing.
  [[nodiscard]] const std::map<std::string, std::int64_t, std::less<>>& states() const { return states_; }
  /// Expected ranks of all live jobs.
  [[nodiscard]] std::int64_t live_ranks() const { return live_ranks_; }
  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

  /// Records changes for take_changes() from now on, or stops recording.
  void keep_changes(bool keep);
  std::vector<Change> take_changes();

 private:
  using Rows = std::map<Place, Row>;
  void erase(Rows::iterator row);
  void count(const Row& row, int sign);

  Rows rows_;
  std::unordered_map<std::string, Rows::iterator> by_job_;
  std::unordered_map<std::string, Owned> owned_;  ///< by token
  std::map<std::string, std::int64_t, std::less<>> states_;
  std::int64_t live_ranks_ = 0;
  std::uint64_t revision_ = 0;
  bool keeps_changes_ = false;
  std::map<std::string, std::optional<std::string>> changed_;  ///< job -> owner
};

/// "1700000000.25,j_..."
std::string format_cursor(const JobList::Place& place);
std::optional<JobList::Place> parse_cursor(std::string_view text);

}  // namespace perseus::views
