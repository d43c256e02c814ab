#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/json_writer.h"
#include "bench/load_connections.h"
#include "bench/load_parts.h"
#include "bench/load_requests.h"

namespace perseus::bench {
namespace {

/// Jobs of two ranks of one stage each, whose ranks wait for plans; the second rank of the first `kFew` jobs has the
/// accelerator "few", of the others "many".
class ReadersLoad {
 public:
  ReadersLoad(const Load& load, std::vector<Row>& rows)
      : rows_(rows), server_(load.program, load.data + "/readers", {"--plan-deadlines", "20"}) {
    one_.once("PUT", "/v1/profiles/load", pipeline_json(load.csv, 8));
    register_jobs(load.stages);
    wait_anew([](int) {});
    waiting_.run();
  }

  void pipelined_lists() {
    const std::string head = "HEAD /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const std::size_t count = (std::size_t{61} << 10U) / head.size();
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += head;
    const auto begin = Clock::now();
    const Readers pipelining(server_.port, 1, all);
    ask_plans_while([&] { return pipelining.answers() < count; });
    add_plan_requests("61 KB of pipelined HEAD /v1/jobs", 50, 10);
    rows_.push_back(
        {fmt::format("5,000 jobs, {} pipelined HEAD /v1/jobs: all answered", count), "s", since(begin), 0, 0});
  }

  void dashboards() {
    const double cpu = server_.cpu_s();
    const Readers dashboards(server_.port, 200, "GET /v1/job_changes HTTP/1.1\r\nHost: localhost\r\n\r\n");
    Clients notices(server_.port, 1);
    int noticed = 0;
    const std::function<void()> notify = [&] {
      notices.ask(0, "POST", "/v1/jobs/" + ids_[noticed % kJobs] + "/stragglers",
                  straggler_json(1, 1.01 + 0.001 * (noticed % 97)), [&](const std::string&) { ++noticed, notify(); });
    };
    notify();
    const auto begin = Clock::now();
    ask_plans_while([&] { return notices.take(), since(begin) < 5; });
    add_plan_requests("200 dashboards, a notice after the other", 50, 10);
    rows_.push_back({fmt::format("5,000 jobs, 200 dashboards, {} notices in 5 s: server CPU", noticed), "s",
                     server_.cpu_s() - cpu, 0, 0});
    notices.run_out();
  }

  void event_streams() {
    const Readers streams(server_.port, 200, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    while (streams.answers() < 200) std::this_thread::yield();
    Clients notices(server_.port, 2);
    Clock::time_point begin = Clock::now();
    const auto notice = [&](int client, const std::string& accelerator, double degree, double& took) {
      const std::string body = json_object([&](JsonWriter& f) {
        f.always("accelerator", accelerator);
        f.always("degree", degree);
      });
      notices.ask(client, "POST", "/v1/stragglers", body, [&](const std::string&) { took = since(begin); });
    };
    double few_took = 0, many_took = 0, last = 0;
    notice(0, "few", 1.3, few_took);
    ask_plans_while([&] { return notices.take(), few_took == 0; });
    rows_.push_back({"500 jobs, a notice in all of them, 200 event streams: acknowledged", "s", few_took, 1, 0.3});
    notices.run();
    std::fill(versions_.begin(), versions_.end(), "0");
    wait_anew([](int) {});
    waiting_.run();
    int answered = 0;
    wait_anew([&](int) { ++answered, last = since(begin); });
    while (metrics().find("perseus_waiting_ranks 5000\n") == std::string::npos) waiting_.take(1);
    begin = Clock::now();
    notice(0, "few", 1.2, few_took);
    notice(1, "many", 1.2, many_took);
    ask_plans_while([&] { return notices.take(), answered < kJobs; });
    rows_.push_back({"5,000 jobs, a notice in all of them, 200 event streams: last rank", "s", last, 1, 0.3});
    add_plan_requests("a notice in all of them, 200 event streams", 50, 20);
    notices.run();
  }

  std::string metrics() { return one_.once("GET", "/metrics", ""); }

 private:
  static constexpr int kJobs = 5000, kFew = 500;

  void register_jobs(int stages) {
    for (int j = 0; j < kJobs; ++j) {
      waiting_.ask(j, "POST", "/v1/jobs", job_json(2, stages, kProfile), [this, j, stages](const std::string& made) {
        ids_[j] = member(made, "job");
        const std::string path = "/v1/jobs/" + ids_[j] + "/ranks";
        const std::string fast = rank_json(0, stages, fmt::format("own{}", j), j);
        waiting_.ask(j, "POST", path, fast, [this, j, stages, path](const std::string&) {
          const std::string slow = rank_json(stages, stages, j < kFew ? "few" : "many", j);
          waiting_.ask(j, "POST", path, slow, [](const std::string&) {});
        });
      });
    }
    waiting_.run();
  }

  [[nodiscard]] std::string plan_path(int job) const {
    return fmt::format("/v1/jobs/{}/ranks/0/plan?have=", ids_[job]);
  }

  /// Rank 0 of each job waits for a plan after the one it has.
  void wait_anew(const std::function<void(int)>& answered) {
    for (int j = 0; j < kJobs; ++j) {
      waiting_.ask(j, "GET", plan_path(j) + versions_[j], "", [this, j, answered](const std::string& plan) {
        versions_[j] = member(plan, "version");
        answered(j);
      });
    }
  }

  void ask_plans_while(const std::function<bool()>& going_on) {
    took_s_.clear();
    for (int turn = 0; going_on(); ++turn) {
      const auto begin = Clock::now();
      one_.once("GET", plan_path(turn % kJobs) + "0&wait_s=0", "");
      took_s_.push_back(since(begin));
      waiting_.take(1);
    }
    std::sort(took_s_.begin(), took_s_.end());
  }

  /// A row of the last ask_plans_while().
  void add_plan_requests(const std::string& what, double must, double aim) {
    rows_.push_back({fmt::format("5,000 jobs, {}: worst of {} plan requests (median {:.2g} ms)", what, took_s_.size(),
                                 1e3 * took_s_[took_s_.size() / 2]),
                     "ms", 1e3 * took_s_.back(), must, aim});
  }

  std::vector<Row>& rows_;
  Server server_;
  Clients one_{server_.port, 1};
  Clients waiting_{server_.port, kJobs};
  std::vector<std::string> ids_ = std::vector<std::string>(kJobs);
  std::vector<std::string> versions_ = std::vector<std::string>(kJobs, "0");
  std::vector<double> took_s_;
};

}  // namespace

void measure_readers(const Load& load, std::vector<Row>& rows) {
  ReadersLoad readers(load, rows);
  readers.pipelined_lists();
  readers.dashboards();
  readers.event_streams();
  if (std::getenv("PERSEUS_LOAD_METRICS") != nullptr) fmt::print(stderr, "{}", readers.metrics());
}

}  // namespace perseus::bench
