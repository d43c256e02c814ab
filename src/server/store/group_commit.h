// The writer thread of a store: writes that wait while others are being committed go to disk together.
//
// Problem: a durable commit costs a disk flush or a network round trip, whatever is in it; 8,192 ranks that register
//          at once must not pay for one each.
// Input:   writes, each a piece of work inside a transaction; a Commit that runs some of them in one transaction.
// Output:  `done` of every write, posted in the order of add(), after its commit.
// Errors:  a failed commit changed nothing and fails all its writes, but where a single write is what the database
//          does not take (invalid_input) each is tried again alone, so that it hurts nobody else.
// Cost:    a lock and a wake-up per write.
// Threads: add() from any; `run` and Commit on the writer's own. The destructor commits what is waiting.
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
    std::function<void()> run;                              ///< may run again if its transaction was rolled back
    std::function<void(const std::optional<Error>&)> done;  ///< what kept it from being durable, or nothing
  };
  /// Runs the writes in order in one transaction; returns why it was rolled back, or nothing if it is durable.
  using Commit = std::function<std::optional<Error>(std::span<const Write>)>;

  GroupCommit(Post post, Commit commit);
  ~GroupCommit();
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;

  void add(Write write);
  [[nodiscard]] CommitCounts counts() const;

  /// The usual write: `run` makes a T, which `done` gets once it is durable.
  template <class T, class Run>
  void add(Run run, Store::Done<T> done) {
    auto made = std::make_shared<std::optional<T>>();
    add({[run = std::move(run), made]() mutable { *made = run(); },
         [done = std::move(done), made](const std::optional<Error>& error) {
           done(error ? Result<T>(*error) : Result<T>(std::move(**made)));
         }});
  }
  /// The same for work that makes nothing.
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
    std::size_t next = 0;  ///< to be answered
  };
  /// What waits for its answer, oldest first. One turn is posted while there is any: two would mix their answers.
  struct Answers {
    std::mutex mutex;
    std::deque<Committed> groups;
  };
  /// A group may have thousands of writes: other work has its turn after each few answers.
  static constexpr std::size_t kAnswersInTurn = 32;
  static void answer_some(const Post& post, const std::shared_ptr<Answers>& answers);

  Post post_;
  std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();  ///< outlives this: what was committed is answered
  Commit commit_;
  mutable std::mutex mutex_;
  CommitCounts counts_;
  std::condition_variable wake_;
  std::vector<Write> waiting_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace perseus::store
