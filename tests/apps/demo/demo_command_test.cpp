// `perseus demo` on a small pipeline: its output files, and that it leaves no other file or process behind.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "simulation/replay/kernel_state.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "tests/apps/perseus/program.h"
#include "tests/support/signal_process.h"

namespace perseus::testing {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Clock = std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds(60);

/// Stages of which each has more to do than the one before, at four clocks.
std::string few_clocks(const ScratchFolder& scratch, double times = 1, int stages = 2) {
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < stages; ++stage) {
    for (const int mhz : {1400, 1200, 1000, 800}) {
      const double share = mhz / 1400.0, power_w = 100 + 200 * share * share * share;
      for (const auto& [instruction, time_s] : {std::pair("forward", 0.01), std::pair("backward", 0.02)}) {
        const double t = times * (1 + 0.5 * stage) * time_s / share;
        csv += std::to_string(stage) + ',' + instruction + ',' + std::to_string(mhz) + ',' + std::to_string(t) + ',' +
               std::to_string(t * power_w) + '\n';
      }
    }
  }
  const std::string path = scratch.path("few_clocks_of_" + std::to_string(stages) + ".csv");
  std::ofstream(path) << csv;
  return path;
}

/// A short demo of two stages.
std::vector<std::string> small_demo(const ScratchFolder& scratch, int iterations = 2) {
  return {"demo",
          "--known-profile",
          "--json",
          "--profile",
          few_clocks(scratch),
          "--iterations",
          std::to_string(iterations),
          "--time-scale",
          "0.5",
          "--dp",
          "1",
          "--out",
          scratch.path("out"),
          "--scratch",
          scratch.path("work")};
}

/// Processes of that demo: its scratch folder is in their command lines.
std::vector<pid_t> processes_of(const ScratchFolder& scratch, const std::string& program,
                                const std::string& argument = "") {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (!std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; })) continue;
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    std::string line;
    std::getline(file, line);  // does not throw where the process ends meanwhile
    if (line.find(scratch.path("work")) == std::string::npos) continue;
    const std::size_t program_end = line.find('\0');
    if (line.find(argument, program_end) == std::string::npos) continue;
    if (line.substr(0, program_end).ends_with(program)) found.push_back(std::stoi(name));
  }
  return found;
}

/// Names of small_demo()'s GPUs whose clock is locked.
std::vector<std::string> locked_gpus(const ScratchFolder& scratch, bool while_stopped = false) {
  std::vector<std::string> locked;
  std::error_code none_yet;
  for (const auto& entry : fs::directory_iterator(scratch.path("work"), none_yet)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("gpu_")) continue;
    const auto gpu = simulated_gpu::SimulatedGpu::attach(entry.path().string());
    if (gpu && (while_stopped ? (*gpu)->locked_while_stopped() : (*gpu)->locked())) locked.push_back(name);
  }
  return locked;
}

/// Disables the plan guard: iterations take a few ms, and a busy test suite disturbs their times.
[[maybe_unused]] const int without_guard = ::setenv("PERSEUS_PLAN_TOLERANCE", "-1", 1);

template <class Condition>
bool comes_true(Condition condition) {
  for (const auto until = Clock::now() + patience; Clock::now() < until;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

bool has_ended(pid_t process) {
  const auto state = replay::kernel_state_of(process);
  return !state || state->state == 'Z';
}

/// The first process with this name in the kernel's process table.
pid_t named(const std::vector<pid_t>& processes, const std::string& name) {
  for (const pid_t process : processes) {
    std::ifstream file("/proc/" + std::to_string(process) + "/comm");
    std::string found;
    if (std::getline(file, found) && found == name) return process;
  }
  return 0;
}

void signal_all(const std::vector<pid_t>& processes, int signal) {
  for (const pid_t process : processes) testing::signal_process(process, signal);
}

/// Returns once they no longer run.
void stop_all(const std::vector<pid_t>& processes) {
  signal_all(processes, SIGSTOP);
  EXPECT_TRUE(comes_true([&] {
    return std::ranges::all_of(processes, [](pid_t process) {
      const auto state = replay::kernel_state_of(process);
      return !state || state->stopped || state->state == 'Z';
    });
  })) << "a process does not stop";
}

void expect_nothing_left(const ScratchFolder& scratch) {
  EXPECT_TRUE(comes_true([&] { return locked_gpus(scratch).empty(); })) << "a clock is still locked";
  EXPECT_TRUE(comes_true([&] { return processes_of(scratch, "").empty(); })) << "a process is left";
}

/// Both ranks of small_demo(). A client registers once it has measured the switch latency, for which it locks clocks
/// too.
bool ranks_are_registered(const ScratchFolder& scratch) {
  std::ostringstream stored;
  for (const char* file : {"work/server/perseus.db", "work/server/perseus.db-wal"}) {
    if (const std::ifstream content(scratch.path(file), std::ios::binary); content) stored << content.rdbuf();
  }
  const std::string events = std::move(stored).str();
  std::set<std::string> ranks;
  const std::string event = "\"rank_registered\"";
  for (std::size_t at = events.find(event); at != std::string::npos; at = events.find(event, at + 1)) {
    const std::size_t rank = events.find("\"rank\":", at), end = events.find(',', rank);
    if (end != std::string::npos) ranks.insert(events.substr(rank, end - rank));
  }
  return ranks.size() >= 2;
}

/// Does `what` as soon as a clock is locked. Clients also give clocks back between plans: it may no longer be when
/// `what` happens.
RunOptions once_clocks_are_locked(const ScratchFolder& scratch, std::function<void(pid_t)> what) {
  RunOptions options;
  options.meanwhile = [&scratch, what = std::move(what)](pid_t program) {
    EXPECT_TRUE(comes_true(
        [&] { return (ranks_are_registered(scratch) && !locked_gpus(scratch).empty()) || has_ended(program); }));
    EXPECT_FALSE(has_ended(program)) << "the demo was over before";
    what(program);
  };
  return options;
}

/// Does `what` while a clock is locked: the demo, its workers and helpers are stopped. The demo continues after it.
RunOptions while_a_clock_is_locked(
    const ScratchFolder& scratch,
    std::function<void(const std::vector<pid_t>& workers, const std::vector<pid_t>& helpers)> what) {
  return once_clocks_are_locked(scratch, [&scratch, what = std::move(what)](pid_t demo) {
    std::vector<pid_t> workers, helpers;
    const auto stopped_with_a_locked_clock = [&] {
      if (locked_gpus(scratch).empty()) return has_ended(demo);
      stop_all({demo});  // it reports helpers that it sees stopped
      // A listed process may have just started one that is not; stopped ones start none.
      do {
        stop_all(workers = processes_of(scratch, "perseus-replay"));
        stop_all(helpers = processes_of(scratch, "perseus-clockd"));
      } while (workers != processes_of(scratch, "perseus-replay") ||
               helpers != processes_of(scratch, "perseus-clockd"));
      if (!locked_gpus(scratch, true).empty()) return true;
      signal_all(helpers, SIGCONT);
      signal_all(workers, SIGCONT);
      testing::signal_process(demo, SIGCONT);
      return false;
    };
    EXPECT_TRUE(comes_true(stopped_with_a_locked_clock));
    EXPECT_FALSE(locked_gpus(scratch, true).empty()) << "the demo was over before";
    what(workers, helpers);
    testing::signal_process(demo, SIGCONT);
  });
}

/// What the workers lost in an iteration of the plan on a machine that is too busy for the simulation: each waits for
/// the one that is late, and its GPU draws its blocking power meanwhile.
double lost_s(const json::value& details) {
  const double mean_ms = details.at("plan").at("lost_ms").to_number<double>();
  return 1e-3 * mean_ms * static_cast<double>(details.at("clients").as_array().size());
}
double lost_j(const json::value& details) {
  double blocking_w = 0;
  for (const json::value& client : details.at("clients").as_array()) {
    blocking_w += client.at("blocking_power_w").to_number<double>();
  }
  return blocking_w * lost_s(details);
}

TEST(Demo, LeavesASummaryAndNothingElse) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus(small_demo(scratch));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::value summary = json::parse(content_of(scratch.path("out/summary.json")));
  EXPECT_EQ(summary, json::parse(outcome.out));
  std::vector<std::string> keys;
  for (const auto& [key, value] : summary.as_object()) keys.emplace_back(key);
  EXPECT_THAT(keys, ::testing::UnorderedElementsAre("baseline_time_s", "baseline_energy_j", "plan_time_s",
                                                    "plan_energy_j", "energy_saving_pct", "slowdown_pct",
                                                    "straggler_energy_saving_pct", "predicted_energy_saving_pct",
                                                    "server_energy_saving_pct", "client_overhead_pct"));
  const auto figure = [&](const char* key) { return summary.at(key).to_number<double>(); };
  const json::value details = json::parse(content_of(scratch.path("out/details.json")));
  EXPECT_LT(figure("plan_energy_j") - lost_j(details), figure("baseline_energy_j"));
  EXPECT_NEAR(figure("energy_saving_pct"), 100 * (1 - figure("plan_energy_j") / figure("baseline_energy_j")), 1e-6);
  EXPECT_GT(figure("predicted_energy_saving_pct"), 0);
  EXPECT_TRUE(summary.at("straggler_energy_saving_pct").is_null()) << "one replica has no straggler";
  const std::string page = content_of(scratch.path("out/report.html"));
  EXPECT_THAT(page, HasSubstr("simulated"));
  EXPECT_THAT(page, HasSubstr("the plan, measured"));
  expect_nothing_left(scratch);
}

// The complete loop: the clients have no profile and measure that of the GPUs online.
TEST(Demo, MeasuresTheProfileWhileItTrains) {
  const ScratchFolder scratch;
  const Outcome outcome =
      run_perseus({"demo", "--json", "--profile", few_clocks(scratch), "--dp", "1", "--iterations", "2", "--time-scale",
                   "1", "--host-ahead",
                   "synchronous",  // as above
                   "--transfer-latency", "0.03", "--out", scratch.path("out"), "--scratch", scratch.path("work")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::value summary = json::parse(outcome.out);
  const auto figure = [&](const char* key) { return summary.at(key).to_number<double>(); };
  EXPECT_GT(figure("baseline_time_s"), 0);
  EXPECT_GT(figure("plan_time_s"), 0);
  EXPECT_GT(figure("predicted_energy_saving_pct"), 0);
  EXPECT_NEAR(figure("energy_saving_pct"), 100 * (1 - figure("plan_energy_j") / figure("baseline_energy_j")), 1e-6);
  EXPECT_NEAR(figure("slowdown_pct"), 100 * (figure("plan_time_s") / figure("baseline_time_s") - 1), 1e-6);
  const json::value details = json::parse(content_of(scratch.path("out/details.json")));
  EXPECT_EQ(details.at("profile"), "measured in vivo");
  EXPECT_LT(figure("plan_energy_j") - lost_j(details), figure("baseline_energy_j")) << "stage 0 has time to spare";
  // Only a plan that models the link predicts the time: without the link, an iteration is 0.06 s shorter.
  const double planned_s = details.at("planned_time_s").to_number<double>();
  EXPECT_GE(figure("plan_time_s"), 0.95 * planned_s);
  EXPECT_LE(figure("plan_time_s"), 1.05 * planned_s + lost_s(details));
  EXPECT_GE(details.at("profiling_iterations").as_int64(), 1);
  std::vector<std::string> states;
  for (const json::value& state : details.at("job_states").as_array()) states.emplace_back(state.as_string());
  EXPECT_THAT(states, ::testing::IsSupersetOf({"profiling", "deployed"}));
  EXPECT_EQ(states.back(), "finished");
  for (const json::value& client : details.at("clients").as_array()) {
    EXPECT_GT(client.at("plan_version").as_int64(), 0);
    EXPECT_GT(client.at("clocks_applied").as_int64(), 0);
    EXPECT_EQ(client.at("clocks_failed").as_int64(), 0);
  }
  EXPECT_GT(details.at("at_planned_clock_pct").to_number<double>(), 0);
  EXPECT_EQ(content_of(scratch.path("work/server.log")), "") << "nothing to warn of";
  EXPECT_THAT(content_of(scratch.path("work/workers.log")), Not(HasSubstr("rejected")));
  expect_nothing_left(scratch);
}

TEST(Demo, ShortensIterationsOfSlowProfiles) {
  const ScratchFolder scratch;
  const Outcome outcome =
      run_perseus({"demo", "--known-profile", "--json", "--profile", few_clocks(scratch, 100), "--iterations", "2",
                   "--dp", "1", "--out", scratch.path("out"), "--scratch", scratch.path("work")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::value details = json::parse(content_of(scratch.path("out/details.json")));
  EXPECT_NEAR(details.at("predicted").at("all_max_time_s").to_number<double>(), 0.67, 1e-6);
}

class DemoOfSchedule : public ::testing::TestWithParam<std::string> {};

// Recomputation, split backwards, several stages per rank: real workers, instruction names, the server's counts.
// tests/simulation/replay checks that workers run every schedule as the simulator predicts.
TEST_P(DemoOfSchedule, RunsItsPlan) {
  const ScratchFolder scratch;
  const Outcome outcome =
      run_perseus({"demo", "--known-profile", "--json", "--schedule", GetParam(), "--iterations", "2", "--time-scale",
                   "0.2", "--dp", "1", "--out", scratch.path("out"), "--scratch", scratch.path("work")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::value details = json::parse(content_of(scratch.path("out/details.json")));
  EXPECT_THAT(std::string(details.at("inputs").at("schedule").as_string()), HasSubstr(GetParam()));
  EXPECT_GT(details.at("predicted").at("energy_j").to_number<double>(), 0);
  for (const json::value& client : details.at("clients").as_array()) {
    EXPECT_GT(client.at("plan_version").as_int64(), 0);
  }
  expect_nothing_left(scratch);
}

INSTANTIATE_TEST_SUITE_P(Schedules, DemoOfSchedule, ::testing::Values("early-recompute-1f1b", "zbv"),
                         [](const auto& schedule) {
                           std::string name = schedule.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

class DemoOfHosts : public ::testing::TestWithParam<std::string> {};

// The lead of the hosts does not change the times on the GPUs.
TEST_P(DemoOfHosts, RunsTheSameIterationsAtMaximumClock) {
  const ScratchFolder scratch;
  std::vector<std::string> words = small_demo(scratch);
  words.insert(words.end(), {"--host-ahead", GetParam(), "--switch-latency", "2"});
  const Outcome outcome = run_perseus(words);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::value details = json::parse(content_of(scratch.path("out/details.json")));
  const auto figure = [&](const char* of, const char* key) { return details.at(of).at(key).to_number<double>(); };
  // On a machine that is too busy for the simulation, iterations take longer, by `lost_ms`.
  const double lost_s = 1e-3 * figure("baseline", "lost_ms");
  const double all_max_s = figure("predicted", "all_max_time_s");
  EXPECT_GE(figure("baseline", "time_s"), all_max_s - 1e-6);
  if (lost_s == 0) { EXPECT_NEAR(figure("baseline", "time_s"), all_max_s, 1e-6); }
  EXPECT_GT(details.at("at_planned_clock_pct").to_number<double>(), 80) << "clocks came at another moment";
  for (const json::value& client : details.at("clients").as_array()) {
    EXPECT_GT(client.at("plan_version").as_int64(), 0);
  }
  expect_nothing_left(scratch);
}

INSTANTIATE_TEST_SUITE_P(Depths, DemoOfHosts, ::testing::Values("synchronous", "1", "8", "unbounded"),
                         [](const auto& hosts) { return "Ahead_" + hosts.param; });

TEST(Demo, OptionsThatCannotRunAreRefusedAtTheStart) {
  const ScratchFolder scratch;
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    std::string says;
  };
  std::ofstream(scratch.path("file")) << "no folder\n";
  for (const Case& c : std::vector<Case>{
           {{"--dp", "0"}, 64, "--dp"},
           {{"--dp", "33"}, 64, "--dp"},
           {{"--host-ahead", "0"}, 64, "allowed: synchronous, unbounded, or a number of computations"},
           {{"--host-ahead", "far"}, 64, "far"},
           {{"--switch-latency", "-1"}, 64, "-1' is not a number from 0 to 1000 ms"},
           {{"--iterations", "99999999999999999999"}, 64, "99999999999999999999"},
           {{"--dp", "32", "--profile", few_clocks(scratch, 1, 64)}, 64, "2048 worker processes; at most 128"},
           {{"--profile", scratch.path("none.csv")}, 66, "none.csv"},
           {{"--profile", scratch.path("file")}, 65, "file"},
           {{"--schedule", "backwards"}, 64, "backwards"},
           {{"--schedule", "zbv", "--profile", few_clocks(scratch, 1, 3)},
            64,
            "3 stages cannot be divided among ranks of 2 chunks each"},
           {{"--schedule", "dualpipev", "--profile", few_clocks(scratch, 1, 10)}, 64, "8 microbatches"},
           {{"--out", scratch.path("file")}, 73, "file"},
           {{"--scratch", scratch.path("file/below")}, 73, "file/below"},
       }) {
    std::vector<std::string> words{"demo"};
    words.insert(words.end(), c.arguments.begin(), c.arguments.end());
    if (std::ranges::find(words, "--out") == words.end()) words.insert(words.end(), {"--out", scratch.path("out")});
    const Outcome outcome = run_perseus(words);
    EXPECT_EQ(outcome.exit_code, c.exit_code) << c.says << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(c.says));
    EXPECT_THAT(outcome.err, Not(HasSubstr("server up"))) << c.says;
    EXPECT_FALSE(fs::exists(scratch.path("out")));
  }
}

class TakenPort {
 public:
  TakenPort() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address_), size), 0);
    EXPECT_EQ(listen(socket_, 1), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address_), &size), 0);
  }
  ~TakenPort() { close(socket_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  [[nodiscard]] std::string port() const { return std::to_string(ntohs(address_.sin_port)); }

 private:
  int socket_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address_{};
};

TEST(Demo, ReportsAPortInUse) {
  const ScratchFolder scratch;
  const TakenPort taken;
  std::vector<std::string> words = small_demo(scratch);
  words.insert(words.end(), {"--server-port", taken.port()});
  const Outcome outcome = run_perseus(words);
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("the server did not start"), HasSubstr("in use")));
  EXPECT_FALSE(fs::exists(scratch.path("out")));
  expect_nothing_left(scratch);
}

TEST(Demo, KeepsTheServerUntilTheInterrupt) {
  const ScratchFolder scratch;
  std::vector<std::string> words = small_demo(scratch);
  words.insert(words.end(), {"--server-port", "0"});
  RunOptions options;
  options.meanwhile = [&](pid_t demo) {
    EXPECT_TRUE(comes_true([&] {
      return has_ended(demo) || (fs::exists(scratch.path("out")) && processes_of(scratch, "perseus-replay").empty());
    }));
    EXPECT_EQ(processes_of(scratch, "perseus", "--log-level").size(), 1u);
    testing::signal_process(demo, SIGINT);
  };
  const Outcome outcome = run_perseus(words, options);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("until Ctrl-C"));
  expect_nothing_left(scratch);
}

TEST(Demo, KilledInTheMiddleLocksNoClock) {
  const ScratchFolder scratch;
  const Outcome outcome =
      run_perseus(small_demo(scratch, 20),
                  once_clocks_are_locked(scratch, [](pid_t demo) { testing::signal_process(demo, SIGKILL); }));
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_FALSE(fs::exists(scratch.path("out")));
  expect_nothing_left(scratch);
}

TEST(Demo, InterruptedItEndsInOrder) {
  const ScratchFolder scratch;
  const Outcome outcome =
      run_perseus(small_demo(scratch, 20),
                  once_clocks_are_locked(scratch, [](pid_t demo) { testing::signal_process(demo, SIGINT); }));
  EXPECT_EQ(outcome.signal, SIGINT);
  EXPECT_THAT(outcome.err, HasSubstr("interrupted"));
  EXPECT_FALSE(fs::exists(scratch.path("out")));
  EXPECT_TRUE(locked_gpus(scratch).empty());
  EXPECT_TRUE(processes_of(scratch, "").empty());
}

TEST(Demo, ADeadWorkerEndsTheDemoWithAMessage) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus(small_demo(scratch, 20), once_clocks_are_locked(scratch, [&](pid_t) {
                                        const auto workers = processes_of(scratch, "perseus-replay");
                                        ASSERT_EQ(workers.size(), 2u);
                                        testing::signal_process(workers.back(), SIGKILL);
                                      }));
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("was killed by signal 9"), Not(HasSubstr("CUDA events fail"))));
  EXPECT_FALSE(fs::exists(scratch.path("out")));
  expect_nothing_left(scratch);
}

TEST(Demo, ADeadServerEndsTheDemoWithAMessage) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus(small_demo(scratch, 20), once_clocks_are_locked(scratch, [&](pid_t) {
                                        const auto servers = processes_of(scratch, "/perseus", "serve");
                                        ASSERT_EQ(servers.size(), 1u);
                                        testing::signal_process(servers.front(), SIGKILL);
                                      }));
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.err, HasSubstr("the server was killed by signal 9"));
  EXPECT_FALSE(fs::exists(scratch.path("out")));
  expect_nothing_left(scratch);
}

TEST(Demo, ADeadHelperEndsTheDemoWithAMessage) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus(small_demo(scratch, 20), once_clocks_are_locked(scratch, [&](pid_t) {
                                        const auto helpers = processes_of(scratch, "perseus-clockd");
                                        ASSERT_FALSE(helpers.empty());
                                        for (const pid_t helper : helpers) testing::signal_process(helper, SIGKILL);
                                      }));
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.err, HasSubstr("its helper has ended"));
  EXPECT_FALSE(fs::exists(scratch.path("out")));
  expect_nothing_left(scratch);
}

/// As when the kernel ends the processes that take most memory: no later helper gives these clocks back.
TEST(Demo, ClocksOfHelpersThatDieWithTheirWorkersAreGivenBack) {
  const ScratchFolder scratch;
  const Outcome outcome =
      run_perseus(small_demo(scratch, 20), while_a_clock_is_locked(scratch, [&](const auto& workers, auto helpers) {
                    // A helper that outlived another one for a moment would give its clock back. A supervisor's end may
                    // continue its worker, as that of a stopped process group.
                    std::stable_partition(helpers.begin(), helpers.end(),
                                          [](pid_t helper) { return named({helper}, "clockd-super") == 0; });
                    signal_all(helpers, SIGKILL);
                    signal_all(workers, SIGKILL);
                    EXPECT_TRUE(comes_true([&] {
                      return std::ranges::all_of(helpers, has_ended) && std::ranges::all_of(workers, has_ended);
                    }));
                    EXPECT_FALSE(locked_gpus(scratch).empty());
                  }));
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.err, HasSubstr("the demo has given it back"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("still locked")));
  expect_nothing_left(scratch);
}

/// Both processes of the helper are stopped; which of the two the demo sees as stopped for two iterations may differ.
TEST(Demo, AStoppedHelperEndsTheDemoWithAMessage) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus(
      small_demo(scratch, 20), while_a_clock_is_locked(scratch, [&](const auto& workers, const auto& helpers) {
        const std::vector<std::string> locked = locked_gpus(scratch, true);
        ASSERT_FALSE(locked.empty());
        const auto stays_stopped = processes_of(scratch, "perseus-clockd", locked.front());
        ASSERT_FALSE(stays_stopped.empty());
        for (const pid_t helper : helpers) {
          if (std::ranges::find(stays_stopped, helper) == stays_stopped.end()) testing::signal_process(helper, SIGCONT);
        }
        signal_all(workers, SIGCONT);
      }));
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("its helper (process "), HasSubstr("is stopped by a signal")));
  EXPECT_FALSE(fs::exists(scratch.path("out")));
  expect_nothing_left(scratch);
}

TEST(Demo, AStoppedSupervisorIsNamedAndContinued) {
  const ScratchFolder scratch;
  pid_t supervisor = 0;
  const Outcome outcome = run_perseus(small_demo(scratch, 20), once_clocks_are_locked(scratch, [&](pid_t) {
                                        EXPECT_TRUE(comes_true([&] {
                                          supervisor = named(processes_of(scratch, "perseus-clockd"), "clockd-super");
                                          return supervisor != 0;
                                        }));
                                        if (supervisor != 0) testing::signal_process(supervisor, SIGSTOP);
                                      }));
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.err,
              HasSubstr("the supervisor of its helper (process " + std::to_string(supervisor) + ") is stopped"));
  expect_nothing_left(scratch);
}

TEST(Demo, AStoppedServerIsReportedWithTheClientsLog) {
  const ScratchFolder scratch;
  RunOptions options = once_clocks_are_locked(scratch, [&](pid_t demo) {
    const auto servers = processes_of(scratch, "/perseus", "serve");
    ASSERT_EQ(servers.size(), 1u);
    const pid_t server = servers.front();
    testing::signal_process(server, SIGSTOP);
    const auto said = [&](const std::string& words) {
      return content_of(scratch.path("err")).find(words) != std::string::npos;
    };
    const std::string name = "the server (process " + std::to_string(server) + ") ";
    EXPECT_TRUE(comes_true([&] {
      return (said(name + "is stopped by a signal") && said(name + "has not answered for 5 s") &&
              said("no answer within 5 s; training continues")) ||
             testing::signal_process(demo, 0) != 0;
    })) << content_of(scratch.path("err"));
    testing::signal_process(server, SIGCONT);
  });
  options.prepare = [&] {
    if (dup2(open(scratch.path("err").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO) < 0) _exit(126);
  };
  const Outcome outcome = run_perseus(small_demo(scratch, 20), options);
  EXPECT_EQ(outcome.exit_code, 0) << content_of(scratch.path("err"));
  expect_nothing_left(scratch);
}

TEST(Demo, AFileSizeLimitEndsTheDemoWithAMessage) {
  const ScratchFolder scratch;
  RunOptions options;
  options.prepare = [] {  // ulimit -f 64: less than a simulated GPU's state
    const rlimit limit{65536, 65536};
    setrlimit(RLIMIT_FSIZE, &limit);
  };
  const Outcome outcome = run_perseus(small_demo(scratch), options);
  EXPECT_EQ(outcome.exit_code, 73) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(scratch.path("work/gpu_0")), HasSubstr("File too large")));
  for (const auto& entry : fs::directory_iterator(scratch.path("work"))) EXPECT_NE(entry.path().extension(), ".new");
  EXPECT_FALSE(fs::exists(scratch.path("out")));
  expect_nothing_left(scratch);
}

TEST(Demo, RemovesTheTemporaryFilesOfAKilledDemo) {
  const ScratchFolder scratch;
  fs::create_directory(scratch.path("tmp"));
  RunOptions options;
  options.prepare = [&] { setenv("TMPDIR", scratch.path("tmp").c_str(), 1); };
  const auto left = [&] { return static_cast<int>(std::distance(fs::directory_iterator(scratch.path("tmp")), {})); };
  options.meanwhile = [&](pid_t demo) {
    const auto locked = [&] {
      const auto folders = fs::directory_iterator(scratch.path("tmp"));
      return std::any_of(begin(folders), end(folders), [](const auto& f) { return fs::exists(f.path() / "in-use"); });
    };
    EXPECT_TRUE(comes_true([&] { return locked() || has_ended(demo); }));
    testing::signal_process(demo, SIGKILL);
  };
  EXPECT_EQ(run_perseus({"demo", "--out", scratch.path("out")}, options).signal, SIGKILL);
  EXPECT_EQ(left(), 1);
  fs::create_directory(scratch.path("tmp/perseus-demo-other"));  // being made: it has no lock yet
  options.meanwhile = {};
  const TakenPort taken;
  const Outcome next = run_perseus({"demo", "--server-port", taken.port(), "--out", scratch.path("out")}, options);
  EXPECT_EQ(next.exit_code, 69) << next.err;
  EXPECT_EQ(left(), 1);
  EXPECT_TRUE(fs::exists(scratch.path("tmp/perseus-demo-other")));
}

}  // namespace
}  // namespace perseus::testing
