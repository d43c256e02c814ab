// The reservations of a site in the store: watts kept for jobs that have not started yet.
//
// Problem: two schedulers must not get the same watts; a server that is killed must still keep them.
// Input:   changes of all reservations.
// Output:  at(): those that have not expired. A change applies once it is stored.
// Errors:  those of the store.
// Cost:    a write per change.
// Threads: io thread.
// Source:  docs/decisions/0056.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/jobs/site_admission.h"
#include "server/plans/planning_options.h"
#include "server/work/store_access.h"
#include "server/work/store_turns.h"

namespace perseus::power {

class Reservations {
 public:
  using List = std::vector<jobs::Reservation>;
  /// From the stored ones to the next ones; nothing: they stay.
  using Change = std::function<void(List, work::Done<std::optional<List>>)>;

  Reservations(const plans::PlanningOptions& options, work::StoreAccess& store) : options_(options), store_(store) {}

  /// Reads what is stored, on this thread: for the start.
  Status open(store::Store& from);
  [[nodiscard]] List at(double now_s) const;
  void change(Change change, work::Done<Ok> done);
  /// Removes the expired ones and those that jobs have used. `moved`: of these, those whose jobs have started in
  /// another domain, with its name.
  void end_over(const std::vector<std::string>& used, const std::map<std::string, std::string>& moved, double now_s);

 private:
  const plans::PlanningOptions& options_;
  work::StoreAccess& store_;
  work::StoreTurns turns_;
  List list_;  ///< as stored
  bool ending_ = false;
};

}  // namespace perseus::power
