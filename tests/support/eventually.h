// Waits for a condition that will become true, as long as a slow machine under a sanitizer may take.
//
// Output:  whether it became true; a test that asserts this fails instead of hanging.
#pragma once

#include <chrono>
#include <thread>

namespace perseus::testing {

template <class Condition>
bool eventually(Condition condition, std::chrono::seconds limit = std::chrono::seconds(60)) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

/// The same on the thread that runs the io_context: runs its work until the condition is true.
template <class IoContext, class Condition>
bool run_until(IoContext& io, Condition condition, std::chrono::seconds limit = std::chrono::seconds(60)) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (io.stopped()) io.restart();
    if (io.run_one_until(until) == 0 && std::chrono::steady_clock::now() >= until) return false;
  }
  return true;
}

}  // namespace perseus::testing
