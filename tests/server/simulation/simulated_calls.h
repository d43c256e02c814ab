// The answer to a call of the simulation: noted, and once only; what was acknowledged is in the database already.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "base/error_table.h"
#include "tests/server/simulation/simulated_cluster.h"

namespace perseus::testing {

template <class T>
work::Done<T> SimulatedCluster::expect(std::string what, double limit_s, std::function<void(const T&)> acknowledged,
                                       const SimulatedJob* of_rank) {
  auto call = std::make_shared<Call>(Call{std::move(what), now_s(), limit_s, of_rank});
  calls_.push_back(call);
  return [this, call, run = run_, number = *run_, acknowledged = std::move(acknowledged)](const Result<T>& answer) {
    if (*run != number || run != run_) return;  // an earlier server
    if (std::exchange(call->answered, true)) return broken(call->what + ": a second answer");
    note(fmt::format("  {}: {}", call->what, answer ? "done" : entry_of(answer.error().code).name));
    if (!answer) return check_error(*call, answer.error());
    if (acknowledged) acknowledged(*answer);
  };
}

}  // namespace perseus::testing
