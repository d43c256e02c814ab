// Waits for a condition that will become true, as long as a slow machine under a sanitizer may take.
#pragma once

#include <chrono>
#include <thread>

namespace perseus::clock_control {

template <class Condition>
bool eventually(Condition condition, std::chrono::seconds limit = std::chrono::seconds(60)) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

}  // namespace perseus::clock_control
