// A word in shared memory that the device writes, and a process that watches it without CUDA.
//
// Input:   positions 1, 2, 3, ... written by the device or a CPU.
// Output:  per watcher: when each position was first seen (CLOCK_MONOTONIC), and how often the word went back.
// Errors:  std::runtime_error if there is no shared memory or the process cannot be started.
// Cost:    a watcher keeps a core busy.
// Threads: one writer, one thread per Watch.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace perseus::measure {

constexpr std::size_t kPositions = 16384;

/// What a watcher saw. In shared memory.
struct Watch {
  std::array<std::atomic<std::int64_t>, kPositions> seen_ns{};  ///< 0: not seen
  std::atomic<std::int64_t> backward{0};
  std::atomic<std::uint32_t> last{0};
  /// Looks once; true if the word has moved.
  bool look(const std::atomic<std::uint32_t>& word) noexcept;
};

struct SharedBlock {
  alignas(4096) std::atomic<std::uint32_t> position{0};  ///< the device's, on a page of its own
  alignas(4096) std::atomic<bool> stop{false};
  std::atomic<bool> watching{false};
  Watch here, there;  ///< of this process, of the other one
};

class SharedWord {
 public:
  SharedWord();
  SharedWord(const SharedWord&) = delete;
  SharedWord& operator=(const SharedWord&) = delete;
  ~SharedWord();  ///< the memory stays mapped: the device may still write
  /// Starts `program watch-word` with the memory as file 3, and waits until it watches.
  void watch_in_process(const std::string& program);
  /// Ends that process.
  void end_process();
  SharedBlock* operator->() { return block_; }
  SharedBlock& operator*() { return *block_; }
  [[nodiscard]] static std::size_t bytes();

 private:
  int fd_ = -1;
  SharedBlock* block_ = nullptr;
  pid_t process_ = 0;
};

/// The process that watches.
int watch_word_main();

}  // namespace perseus::measure
