// Frontiers by the key of their input: from memory, from the store, or computed, once for everybody who asks.
//
// Problem: planning takes up to minutes and must not be done twice: not for two jobs with the same pipeline, not by two
// servers on one database, not again after a restart. Input: a key whose input is in the store ("input/KEY"). Output:
// the frontier, which is then also in the store ("frontier/KEY"), to all who asked, on the io thread, inside want()
// only while the store does not answer. Errors: `unavailable`: the store is away, ask again; others: this input has no
// frontier, and why. Work that another server has claimed is waited for: its result is looked for again every quarter
// of a lease, and its lease ends if it dies. Cost: a look-up; planning and reading run on the executor. Threads: io
// thread only.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/pipeline_input.h"
#include "server/service.h"
#include "server/store_access.h"

namespace perseus::server {

class Characterisations : public std::enable_shared_from_this<Characterisations> {
 public:
  using Frontier = std::shared_ptr<const CharacterisedPipeline>;
  using Answer = std::function<void(const Result<Frontier>&)>;

  Characterisations(std::string owner, double lease_s, StoreAccess& store, const Clock& clock, Executor& executor);

  /// In memory, or null.
  [[nodiscard]] Frontier known(const std::string& key) const;
  void want(const std::string& key, Answer answer);

  void tick(double now_s);
  [[nodiscard]] std::optional<double> next_wake() const;

  [[nodiscard]] std::int64_t computed() const { return computed_; }
  [[nodiscard]] std::int64_t failed() const { return failed_; }
  [[nodiscard]] std::int64_t running() const { return static_cast<std::int64_t>(work_.size()); }

 private:
  using Bytes = std::optional<std::string>;
  struct Work {
    std::vector<Answer> answers;
    bool claimed = false;
    std::optional<double> look_again_s;  ///< another server is at it
    double renew_s = 0;
  };
  void start(const std::string& key);
  void read_frontier(const std::string& key, std::string bytes);
  void claim_and_compute(const std::string& key);
  void compute(const std::string& key);
  void compute(const std::string& key, std::string text);
  void save(const std::string& key, Frontier frontier, std::string bytes);
  void finish(const std::string& key, Result<Frontier> result);

  std::string owner_;
  double lease_s_;
  StoreAccess& store_;
  const Clock& clock_;
  Executor& executor_;
  std::map<std::string, std::weak_ptr<const CharacterisedPipeline>> known_;
  std::deque<Frontier> recent_;  ///< kept though no job holds them
  std::map<std::string, Work> work_;
  std::int64_t computed_ = 0;
  std::int64_t failed_ = 0;
};

}  // namespace perseus::server
