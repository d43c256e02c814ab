// Large request bodies and the thread that reads them: fair between tokens.
//
// Problem: reading a body of megabytes takes up to seconds, and all of them are read on one thread; several of one
//          token must not hold up those of others.
// Input:   the work that reads a body, its token and its size.
// Output:  each token has at most one body in work; its next one goes behind those of others that wait.
// Errors:  false: too many bytes wait, of all tokens or, at half as many, of this one.
// Cost:    an entry of a map per body.
// Threads: io thread; the work runs on another one.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>

#include "server/work/executor.h"

namespace perseus::routes {

class BodyReader {
 public:
  /// Runs the work on another thread, and the function that it returns on the io thread.
  virtual void read_large(work::Executor::Work work) = 0;

 protected:
  ~BodyReader() = default;
};

class LargeBodies {
 public:
  using Work = work::Executor::Work;
  /// `reader`: null if add() is never called. What it returns runs while this object exists.
  explicit LargeBodies(BodyReader* reader) : reader_(reader) {}

  bool add(const std::string& token, std::size_t bytes, Work work);

 private:
  struct Waiting {
    std::size_t bytes = 0;
    Work work;
  };
  struct OfToken {
    std::size_t bytes = 0;
    std::deque<Waiting> waiting;  ///< the first one is in work
  };
  void start(const std::string& token, Work work);
  void ended(const std::string& token);

  BodyReader* reader_;
  std::map<std::string, OfToken> of_token_;
  std::size_t bytes_ = 0;
};

}  // namespace perseus::routes
