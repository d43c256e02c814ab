// The parts of the service over jobs in memory, in the order of their dependencies, for tests of one of them.
//
// No part reacts to events: a test connects those it needs. The job "job" has two stages, each with one rank.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/plans/job_frontiers.h"
#include "server/plans/profiling_windows.h"
#include "server/plans/rank_plans.h"
#include "server/plans/shape_inputs.h"
#include "server/plans/waiting_ranks.h"
#include "server/profiles/known_profile.h"
#include "server/service/service_options.h"
#include "tests/server/scenario/two_stages.h"
#include "tests/server/service/jobs_in_memory.h"

namespace perseus::testing {

/// The profile of two_stages.h for two microbatches.
inline profiles::KnownInput two_stages_input(std::optional<Seconds> switch_latency = std::nullopt, bool fixed = false) {
  jobs::PipelineShape shape;
  shape.microbatches = 2;
  shape.switch_latency = switch_latency;
  return profiles::known_input(kTwoStages, shape, {2}, "two stages", {}, fixed).value();
}

struct ServiceParts : plans::ServerHost {
  /// Parts on one database are servers that follow each other, or replicas.
  explicit ServiceParts(std::shared_ptr<TestDatabase> the_database = std::make_shared<TestDatabase>())
      : database(std::move(the_database)) {}

  live::LiveJob& live() { return base.live("job"); }
  const jobs::Job& job() { return live().job; }
  double now_s() { return base.clock().now_s(); }
  /// The answer to a call once the store and the executor have nothing left to do.
  template <class T, class Call>
  Result<T> answer_of(Call call) {
    Answer<T> answer;
    call(answer.take());
    base.settle();
    PERSEUS_CHECK(answer.given(), "no answer");
    return *answer;
  }

  /// The job's profile becomes known, and its frontier is planned.
  void plan(const profiles::KnownInput& known = two_stages_input()) {
    base.append("job", {known.event, jobs::CharacterizationStarted{{known.event.input}}}, {known.blob});
    frontiers->want(live());
    base.settle();
    PERSEUS_CHECK(job().characterized.contains(known.event.input), "no frontier");
  }
  /// Its pipeline runs that point of the frontier from now on; -1: the highest clocks.
  void deploy(int point) { base.append("job", {deployed(point)}); }
  jobs::PlanDeployed deployed(int point) {
    return {job().version + 1, 0, {{point < 0 ? "" : job().input_of[0], point}}, {0}, {}, {}, "a test"};
  }

  void log(const std::string& line) override { lines.push_back(line); }
  bool may_renew() override { return sure; }

  std::vector<std::string> lines;  ///< of the server's log
  bool sure = true;                ///< of the right to write
  service::ServiceOptions options = [this] {
    service::ServiceOptions made;
    made.host = this;
    return made;
  }();
  std::shared_ptr<TestDatabase> database;
  JobsInMemory base{database};
  live::JobAccess access{base.jobs(), base.clock()};
  work::Due due;  ///< of these parts
  std::shared_ptr<plans::Characterizations> characterizations = std::make_shared<plans::Characterizations>(
      options, base.access_to_store(), base.clock(), due, static_cast<work::Executor&>(base));
  std::shared_ptr<plans::StoredProfiles> profiles = std::make_shared<plans::StoredProfiles>(
      options, base.access_to_store(), static_cast<work::Executor&>(base), *characterizations);
  std::shared_ptr<plans::LatencyReplans> latencies = std::make_shared<plans::LatencyReplans>(
      options, base.jobs(), base.access_to_store(), base.clock(), static_cast<work::Executor&>(base));
  std::shared_ptr<plans::ShapeInputs> shapes = std::make_shared<plans::ShapeInputs>(
      options, base.jobs(), base.access_to_store(), base.clock(), static_cast<work::Executor&>(base));
  std::shared_ptr<plans::RankPlans> plans =
      std::make_shared<plans::RankPlans>(base.jobs(), base.access_to_store(), base.clock(), *latencies);
  plans::HeldPlans held{base.jobs(), base.clock(), due};
  plans::WaitingRanks waiting{options, base.jobs(), base.clock(), due, access, *plans, held};
  std::shared_ptr<plans::JobFrontiers> frontiers =
      std::make_shared<plans::JobFrontiers>(base.jobs(), base.clock(), *characterizations);
  std::shared_ptr<plans::ProfilingWindows> windows =
      std::make_shared<plans::ProfilingWindows>(options, base.jobs(), base.access_to_store(), base.clock(),
                                                static_cast<work::Executor&>(base), *characterizations, *profiles);
};

}  // namespace perseus::testing
