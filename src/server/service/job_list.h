// The list of jobs, newest first, in pages; each row is kept as text.
//
// Problem: a list of thousands of jobs is asked for again and again, and most rows have not changed since.
// Input:   rows that changed or went.
// Output:  pages. A cursor names the last row of a page by its place in the order, so a page stays right while jobs
//          come and go, and if that job itself goes. revision() changes with every row; take_changes() tells the rows
//          that changed since the last call.
// Errors:  none; a cursor that is not one of parse_cursor() has no page.
// Cost:    O(log n) a change. A page: its rows, or with a filter all rows that it looks at.
// Threads: io thread.
// Source:  docs/decisions/0034.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/jobs/requests.h"

namespace perseus::service {

/// What lists say of a job whose row in the index is damaged.
inline constexpr std::string_view kDamagedState = "damaged";
/// All that a row's state may be: those of jobs, and kDamagedState.
std::vector<std::string_view> listed_states();

class JobList {
 public:
  struct Row {
    std::string state, name;
    std::optional<std::string> owner;  ///< the token that registered it; empty: none; nothing: not known
    std::string text;                  ///< a JSON object
    double made_s = 0;                 ///< when
    bool is_live = false;
    int ranks = 0;  ///< expected
  };
  /// Live jobs that one token has registered.
  struct Owned {
    std::int64_t jobs = 0, ranks = 0;
  };
  /// The place in the order.
  struct Place {
    double created_s = 0;
    std::string job;
    bool operator<(const Place& other) const {
      return created_s != other.created_s ? created_s > other.created_s : job < other.job;
    }
  };
  struct Query {
    std::size_t limit = 0;
    std::optional<Place> after;
    std::function<bool(const Place&, const Row&)> wanted;  ///< none: every row
  };
  struct Page {
    std::vector<std::pair<const Place*, const Row*>> rows;  ///< valid until the list changes
    std::optional<Place> next;                              ///< there are more, after this
  };
  struct Change {
    std::string job;
    std::optional<std::string> owner;
    std::optional<std::string> text;  ///< nothing: it is gone
  };

  /// True if the row is another one now.
  bool put(const jobs::JobRow& row, const jobs::JobSummary& summary, double now_s);
  void remove(const std::string& job);
  [[nodiscard]] Page page(const Query& query) const;
  [[nodiscard]] const Row* find(const std::string& job) const;
  [[nodiscard]] Owned owned_by(const std::string& token) const;
  /// By state; states without jobs may be missing.
  [[nodiscard]] const std::map<std::string, std::int64_t, std::less<>>& states() const { return states_; }
  /// Expected ranks of all live jobs.
  [[nodiscard]] std::int64_t live_ranks() const { return live_ranks_; }
  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

  /// While something asks for changes, they are kept.
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

}  // namespace perseus::service
