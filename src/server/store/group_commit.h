// The writer thread of a store: writes that wait during a commit go to disk together.
//
// Problem: a durable commit costs a disk flush or a network round trip, whatever its size; 8,192 ranks that register
//          at once must not pay for one each.
// Input:   writes, each a piece of work inside a transaction; a Commit that runs some of them in one transaction.
// Output:  `done` of every write, posted in the order of add(), after its commit.
// Errors:  a failed commit changes nothing and fails all its writes. If the database rejects a single write
//          (invalid_input), each write is tried again alone, so that the others succeed.
// Cost:    a lock and a wake-up per write.
// Threads: add() from any; `run` and Commit on the writer's own. The destructor commits the waiting writes. Without
//          Post there is no thread: add() commits its write and answers it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/result.h"
#include "server/store/store.h"

namespace perseus::store {

class GroupCommit {
 public:
  struct Write {
    std::function<void()> run;                              ///< runs again if its transaction was rolled back
    std::function<void(const std::optional<Error>&)> done;  ///< gets the error that prevented durability, or nothing
  };
  /// Runs the writes in order in one transaction; returns the error if it was rolled back, or nothing if it is
  /// durable.
  using Commit = std::function<std::optional<Error>(std::span<const Write>)>;

  GroupCommit(Post post, Commit commit);
  ~GroupCommit();
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;

  void add(Write write);
  [[nodiscard]] CommitCounts counts() const;

  /// The usual write: `run` returns a T, which `done` receives once it is durable.
  template <class T, class Run>
  void add(Run run, Store::Done<T> done) {
    auto made = std::make_shared<std::optional<T>>();
    add({[run = std::move(run), made]() mutable { *made = run(); },
         [done = std::move(done), made](const std::optional<Error>& error) {
           done(error ? Result<T>(*error) : Result<T>(std::move(**made)));
         }});
  }
  /// The same for work without a result.
  template <class Work>
  void add_work(Store::Done<Ok> done, Work work) {
    add<Ok>(
        [work = std::move(work)] {
          work();
          return Ok{};
        },
        std::move(done));
  }

 private:
  void work();
  void commit(std::vector<Write> writes);
  std::optional<Error> timed_commit(std::span<const Write> writes);
  struct Committed {
    std::vector<Write> writes;
    std::vector<std::optional<Error>> outcomes;
    std::size_t next = 0;  ///< index of the next answer
  };
  /// Pending answers, oldest first. At most one turn is posted: two would interleave their answers.
  struct Answers {
    std::mutex mutex;
    std::deque<Committed> groups;
  };
  /// A group may have thousands of writes: other work gets its turn after this many answers.
  static constexpr std::size_t kAnswersInTurn = 32;
  static void answer_some(const Post& post, const std::shared_ptr<Answers>& answers);

  Post post_;
  std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();  ///< outlives this object: committed writes are
                                                                    ///< answered
  Commit commit_;
  mutable std::mutex mutex_;
  CommitCounts counts_;
  std::condition_variable wake_;
  std::vector<Write> waiting_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all other members
};

}  // namespace perseus::store
