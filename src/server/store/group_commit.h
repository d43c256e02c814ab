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
  class Write {
   public:
    virtual ~Write() = default;
    /// Runs again if its transaction was rolled back.
    virtual void run() = 0;
    /// Gets the error that prevented durability, or nothing.
    virtual void done(const std::optional<Error>& error) = 0;
  };
  using Writes = std::span<const std::unique_ptr<Write>>;
  /// Runs the writes in order in one transaction; returns the error if it was rolled back, or nothing if it is
  /// durable.
  using Commit = std::function<std::optional<Error>(Writes)>;

  GroupCommit(Post post, Commit commit);
  ~GroupCommit();
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;

  [[nodiscard]] CommitCounts counts() const;

  /// `run` returns a T, which `done` receives once it is durable.
  template <class T, class Run>
  void add(Run run, Store::Done<T> done) {
    add(std::make_unique<WriteOf<T, Run>>(std::move(run), std::move(done)));
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
  template <class T, class Run>
  class WriteOf final : public Write {
   public:
    WriteOf(Run run, Store::Done<T> done) : run_(std::move(run)), done_(std::move(done)) {}
    void run() override { made_ = run_(); }
    void done(const std::optional<Error>& error) override {
      done_(error ? Result<T>(*error) : Result<T>(*std::move(made_)));
    }

   private:
    Run run_;
    Store::Done<T> done_;
    std::optional<T> made_;
  };

  void add(std::unique_ptr<Write> write);
  void work();
  void commit(std::vector<std::unique_ptr<Write>> writes);
  std::optional<Error> timed_commit(Writes writes);
  struct Committed {
    std::vector<std::unique_ptr<Write>> writes;
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
  std::vector<std::unique_ptr<Write>> waiting_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all other members
};

}  // namespace perseus::store
