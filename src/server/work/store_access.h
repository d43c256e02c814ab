// The io thread's access to the store: reads run on the executor, and every call is answered within a bounded time.
//
// Input:   a store whose reads block; an executor with threads for Kind::store; a clock.
// Output:  `done` of each call, once, on the io thread, inside the call or later.
// Errors:  the store's. `unavailable` after `limit_s` without an answer: a write may still complete, so its caller
//          must report the outcome as unknown. For a read the time counts from the last answer to any read: a long
//          queue that advances is not late. While a call is late, later calls fail at once, so that they do not pile
//          up.
// Cost:    one map entry per call.
// Threads: io thread. The io thread has no other access to the store, so it cannot block on a read.
// Source:  docs/decisions/0032.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "server/store/store.h"
#include "server/work/due.h"
#include "server/work/executor.h"

namespace perseus::work {

/// State of the store at the last check.
struct StoreHealth {
  bool answers = true;
  std::string problem;  ///< why it does not work; empty: it works
  double since_s = 0;   ///< since when
};

class StoreAccess {
 public:
  /// `warn` is told once that reads or writes fail, and once that they work again; if they fail by turns, once in a
  /// minute.
  StoreAccess(
      store::Store& store, const Clock& clock, Due& due, Gate& gate, double limit_s,
      std::function<void(const std::string&)> warn = [](const std::string&) {})
      : store_(store),
        warn_(std::move(warn)),
        clock_(clock),
        alarm_(due, Due::Turn::store, *this),
        gate_(gate),
        limit_s_(limit_s),
        opened_s_(clock.now_s()) {}

  /// `work` runs on the executor. It must not refer to objects of the io thread.
  template <class T, class Work>
  void read(Work work, Done<T> done) {
    if (!late_[reads].empty()) return done(not_answered());
    gate_.submit(Executor::Kind::store,
                 [&store = store_, work = std::move(work),
                  bounded = watched<T>(reads, std::move(done))]() -> std::function<void()> {
                   auto result = std::make_shared<Result<T>>(work(store));
                   return [bounded, result] { bounded(std::move(*result)); };
                 });
  }

  /// `slow` is called once if there is no answer after kSlow_s, `late` once after the limit. `done` is called with
  /// the store's answer, however late.
  void append(store::Append append, Done<store::Appended> done, std::function<void()> slow, std::function<void()> late);
  /// Calls a method of the store that writes.
  template <class Argument, class T>
  void write(void (store::Store::*method)(Argument, Done<T>), std::type_identity_t<Argument> argument,
             std::type_identity_t<Done<T>> done) {
    if (writes_late()) return done(not_answered());
    (store_.*method)(std::move(argument), gate_.pass<T>(watched<T>(writes, std::move(done))));
  }
  void put_blob(store::Blob blob, Done<Ok> done) { write(&store::Store::put_blob, std::move(blob), std::move(done)); }
  void remove_blob(std::string key, Done<Ok> done) {
    write(&store::Store::remove_blob, std::move(key), std::move(done));
  }

  /// True if a write is unanswered after the limit: new ones would only queue up behind it.
  [[nodiscard]] bool writes_late() const { return !late_[writes].empty(); }
  [[nodiscard]] static Error not_answered();

  /// For an orderly stop: applies from now on, also to calls in progress.
  void set_limit(double limit_s) {
    limit_s_ = limit_s;
    set_alarm();
  }

  [[nodiscard]] bool is_busy() const;

  /// Size of the database at the last query; starts a new query for the next call. Nothing: not known yet.
  std::optional<std::int64_t> size_bytes();
  [[nodiscard]] store::CommitCounts commits() const { return store_.commits(); }

  /// Sends a small query to the store to check its health. At most one at a time.
  void probe();
  [[nodiscard]] StoreHealth health() const;

 private:
  enum Kind : unsigned char { reads, writes };
  struct Call {
    double began_s = 0;
    std::function<void()> over;
  };
  using Calls = std::map<std::uint64_t, Call>;  ///< the oldest has the smallest number
  static constexpr double kSlow_s = 1;
  static constexpr double kQuiet_s = 60;

  /// The time from which the lateness of the oldest open call counts.
  [[nodiscard]] double waits_since(Kind kind, const Call& oldest) const {
    return kind == reads ? std::max(oldest.began_s, read_answered_s_) : oldest.began_s;
  }
  /// Answers the calls whose time is over.
  void give_up(double now_s);
  void set_alarm();
  /// Calls `late` once when the limit has passed.
  std::uint64_t begin(Kind kind, std::function<void()> late);
  /// Call when the store has answered.
  void end(Kind kind, std::uint64_t id, const std::optional<Error>& error);
  void tell(Kind kind);
  template <class T>
  Done<T> watched(Kind kind, Done<T> done) {
    const auto answer = std::make_shared<Done<T>>(std::move(done));
    const auto take = [answer] { return std::exchange(*answer, {}); };
    const std::uint64_t id = begin(kind, [take] {
      if (const auto unanswered = take()) unanswered(not_answered());
    });
    return [this, kind, id, take](Result<T> result) {
      end(kind, id, result ? std::nullopt : std::optional(result.error()));
      if (const auto done_now = take()) done_now(std::move(result));
    };
  }

  store::Store& store_;
  std::function<void(const std::string&)> warn_;
  const Clock& clock_;
  AlarmOf<&StoreAccess::give_up> alarm_;
  Gate& gate_;
  double limit_s_;
  double opened_s_;
  std::uint64_t next_ = 1;
  double read_answered_s_ = 0;
  std::array<Calls, 2> open_;  ///< by Kind, as the next two
  std::array<Calls, 2> late_;  ///< past the limit, and not yet answered by the store
  struct Failure {
    Error error;
    double since_s = 0;
  };
  std::array<std::optional<Failure>, 2> failed_;
  std::array<bool, 2> told_{};             ///< that it fails
  std::array<double, 2> quiet_until_s_{};  ///< about failures
  Calls unhurried_;                        ///< of open_: not slow yet
  bool probing_ = false;
  bool measuring_ = false;
  std::optional<std::int64_t> size_bytes_;
};

}  // namespace perseus::work
