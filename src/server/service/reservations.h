// The reservations of a site in the store: watts kept for jobs that have not started yet.
//
// Problem: two schedulers must not get the same watts, from whichever server; a server that is killed must still keep
//          them; and the server that divides the watts must know them before it gives the same watts to running jobs.
// Input:   changes of all reservations.
// Output:  at(): those that have not expired. A change applies once it is stored. is_known_to_all(): the server that
//          divides the watts grants none of them any more. is_fresh(): what this server has read is recent enough that
//          others may rely on that.
// Errors:  those of the store; unavailable: another server is changing them.
// Cost:    a claim, a read and a write per change; a read every `site_poll_s`.
// Threads: io thread.
// Source:  docs/decisions/0056.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/jobs/site_admission.h"
#include "server/service/service_options.h"
#include "server/service/store_access.h"
#include "server/service/store_turns.h"

namespace perseus::service {

class Reservations : public std::enable_shared_from_this<Reservations> {
 public:
  using List = std::vector<jobs::Reservation>;
  /// From the stored ones to the next ones; nothing: they stay.
  using Change = std::function<void(List, Done<std::optional<List>>)>;
  static constexpr double kLate_s = 2;

  Reservations(const ServiceOptions& options, StoreAccess& store, const Clock& clock);

  /// Reads what is stored, on this thread: for the start.
  Status open(store::Store& from);
  [[nodiscard]] List at(double now_s) const;
  void read(Done<Ok> done);
  void change(Change change, Done<Ok> done);
  /// Removes the expired ones and those that jobs have used. `moved`: of these, those whose jobs have started in
  /// another domain, with its name.
  void end_over(const std::vector<std::string>& used, const std::map<std::string, std::string>& moved, double now_s);
  void tick(double now_s);

  [[nodiscard]] bool is_fresh(double now_s) const;
  [[nodiscard]] bool is_known_to_all(const jobs::Reservation& reservation, double now_s) const;

 private:
  void apply(List list, double now_s);

  const ServiceOptions& options_;
  StoreAccess& store_;
  const Clock& clock_;
  std::shared_ptr<StoreTurns> turns_;
  List list_;
  std::map<std::pair<std::string, double>, double> known_s_;  ///< by job and time of the reservation: since when
  double next_read_s_ = 0, read_s_ = 0;
  std::uint64_t changes_ = 0;  ///< by this server
  bool ending_ = false;
};

}  // namespace perseus::service
