// SIGKILL at random moments to the training process, supervisor, worker, daemon, several of them, or whole
// containers: every clock must be restored. PERSEUS_KILLS sets the number of kills.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon_process.h"
#include "lease_folder.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "small_gpu.h"
#include "tests/support/eventually.h"
#include "tests/support/signal_process.h"
#include "training/clock_control/clock_controller.h"
#include "training/clock_control/lease.h"
#include "training/device/open_gpu.h"

extern "C" char** environ;

namespace perseus::clock_control {
namespace {

using testing::eventually;

using Instant = std::chrono::steady_clock::time_point;

double seconds_since(Instant began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

/// Returns when the process has ended: a child of ours, or an orphan that we adopted (PR_SET_CHILD_SUBREAPER).
bool ended(pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; }

struct Training {
  std::string gpu;
  std::string leases;  ///< folder of its helper's leases
  unsigned seed = 0;
  std::string restart = "0";    ///< see trainer_main.cpp
  std::string socket = "none";  ///< of the node's daemon
  bool container = false;       ///< as process 1 of a PID namespace
  bool exits = false;           ///< exits without stopping its controller
};

/// Starts process 1 of a new PID namespace as a child of this process (PR_SET_CHILD_SUBREAPER); -1: not permitted
/// here.
pid_t spawn_in_namespace(char** argv, char** environment, int in, int out) {
  std::array<int, 2> number{};
  if (::pipe2(number.data(), O_CLOEXEC) != 0) return -1;
  const pid_t outside = ::fork();
  if (outside == 0) {
    pid_t first = -1;
    if (::unshare(CLONE_NEWPID) == 0) first = ::fork();
    if (first == 0) {
      ::dup2(in, STDIN_FILENO);
      ::dup2(out, STDOUT_FILENO);
      ::execve(argv[0], argv, environment);
      ::_exit(127);
    }
    (void)!::write(number[1], &first, sizeof first);
    ::_exit(0);
  }
  pid_t first = -1;
  ::close(number[1]);
  (void)!::read(number[0], &first, sizeof first);
  ::close(number[0]);
  ::waitpid(outside, nullptr, 0);
  return first;
}

class Trainer {
 public:
  explicit Trainer(const Training& training) {
    std::array<int, 2> in{}, out{};
    PERSEUS_CHECK(::pipe2(in.data(), O_CLOEXEC) == 0 && ::pipe2(out.data(), O_CLOEXEC) == 0, "no pipes");
    std::array<std::string, 5> arguments{PERSEUS_TRAINER_PROGRAM, "simulated:" + training.gpu,
                                         fmt::format("{}", training.seed), training.restart, "exit"};
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    if (!training.exits) argv.pop_back();
    argv.push_back(nullptr);
    std::string runtime = "PERSEUS_RUNTIME_DIR=" + training.leases, socket = "PERSEUS_CLOCKD_SOCKET=" + training.socket;
    std::string leaks = "ASAN_OPTIONS=detect_leaks=0";  // exit() beside a running controller leaves its memory
    std::vector<char*> environment{runtime.data(), socket.data()};
    std::string sleep = "TSAN_OPTIONS=atexit_sleep_ms=0";
    if (training.exits) environment.insert(environment.end(), {leaks.data(), sleep.data()});
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string_view name(*variable);
      if (!name.starts_with("PERSEUS_RUNTIME_DIR=") && !name.starts_with("PERSEUS_CLOCKD_SOCKET=")) {
        environment.push_back(*variable);
      }
    }
    environment.push_back(nullptr);
    if (training.container) {
      pid = spawn_in_namespace(argv.data(), environment.data(), in[0], out[1]);
    } else {
      posix_spawn_file_actions_t files;
      ::posix_spawn_file_actions_init(&files);
      ::posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
      ::posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
      PERSEUS_CHECK(::posix_spawn(&pid, argv[0], &files, nullptr, argv.data(), environment.data()) == 0, "no trainer");
      ::posix_spawn_file_actions_destroy(&files);
    }
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    output_ = ::fdopen(out[0], "r");
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer() {
    ::close(input_);
    (void)std::fclose(output_);
    if (pid > 0) ::waitpid(pid, nullptr, 0);
  }
  /// Waits until it has control; false if it ended before.
  bool ready() { return std::fscanf(output_, "%d %d", &supervisor, &worker) == 2; }

  pid_t pid = 0, supervisor = 0, worker = 0;

 private:
  int input_ = -1;
  FILE* output_ = nullptr;
};

/// Number of kills: $PERSEUS_KILLS, or else a default for everyday runs. Two fifths kill helpers that a training
/// process has started itself; the others kill helpers of the daemon and helpers in containers.
int kills() {
  const char* given = std::getenv("PERSEUS_KILLS");
  return given == nullptr ? 250 : std::max(std::atoi(given), 10);
}

unsigned kill_seed() {
  const char* given = std::getenv("PERSEUS_TEST_SEED");
  return given == nullptr ? 2026 : static_cast<unsigned>(std::atoi(given));
}

class Kills : public ::testing::Test {
 protected:
  // The parallel rounds share this process's children, so each round waits for its children by process id only.
  void SetUp() override { ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }
  void TearDown() override { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
  /// After this no process is left that could lock or unlock.
  static bool everybody_has_ended() {
    return eventually([] {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {}
      return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
    });
  }
  LeaseFolder folder_;
};

enum Victim : unsigned { training_process = 1, supervisor = 2, worker = 4 };

/// Runs one round. Returns the time until the clock was restored; negative if it never was. `restores`: counts rounds
/// in which no process was left, so that `perseus-clockd --restore` had to.
double kill_once(const std::string& folder, simulated_gpu::SimulatedGpu& gpu, std::mt19937& random,
                 std::atomic<int>& restores) {
  constexpr unsigned all_of_them = training_process | supervisor | worker;
  Trainer trainer({folder + "/gpu", folder, static_cast<unsigned>(random())});
  unsigned victims = 1 + static_cast<unsigned>(random() % all_of_them);
  if (random() % 8 == 0) {
    victims = training_process;  // possibly during its start
    ::usleep(static_cast<unsigned>(random() % 60'000));
  } else {
    EXPECT_TRUE(trainer.ready());
    ::usleep(static_cast<unsigned>(random() % 8'000));
  }
  const Instant killed = std::chrono::steady_clock::now();
  std::array<std::pair<unsigned, pid_t>, 3> all{
      {{training_process, trainer.pid}, {supervisor, trainer.supervisor}, {worker, trainer.worker}}};
  std::shuffle(all.begin(), all.end(), random);
  for (const auto& [who, pid] : all) {
    if ((victims & who) != 0 && pid > 0) testing::signal_process(pid, SIGKILL);
  }
  // Both helper processes have ended, and the clock is free.
  const auto over = [](pid_t pid) { return pid == 0 || ended(pid); };
  bool supervisor_over = false, worker_over = false;
  const auto is_back = [&] {
    supervisor_over = supervisor_over || over(trainer.supervisor);
    // The worker becomes our child when the supervisor has ended. If the supervisor lived longer, it has waited for
    // the worker itself.
    worker_over = worker_over || (supervisor_over && over(trainer.worker));
    return worker_over && (!gpu.locked() || victims == all_of_them);
  };
  // Beside busy programs Linux 6.18 may let a new process wait for tens of seconds before it first runs.
  const bool back = eventually(is_back, std::chrono::minutes(4));
  if (back && victims == all_of_them) {
    if (gpu.locked()) ++restores;
    const std::string restore =
        fmt::format("PERSEUS_RUNTIME_DIR='{}' '{}' --restore > /dev/null", folder, PERSEUS_CLOCKD_PROGRAM);
    // A restorer of the training process may be at it.
    if (!eventually([&] { return std::system(restore.c_str()) == 0 && !gpu.locked(); })) return -1;
  }
  return back ? seconds_since(killed) : -1;
}

TEST_F(Kills, AtAnyMomentTheClockGoesBack) {
  constexpr int kAtOnce = 4;
  const int rounds = 2 * kills() / 5;
  const unsigned seed = kill_seed();
  std::atomic<int> round{0}, restores{0};
  std::mutex mutex;
  std::vector<double> times;
  std::vector<std::unique_ptr<simulated_gpu::SimulatedGpu>> gpus;
  std::vector<std::thread> threads;
  // One folder each, because a starting helper also restores the expired leases in its folder.
  const auto folder_of = [&](int i) { return folder_.file(fmt::format("{}", i)); };
  for (int i = 0; i < kAtOnce; ++i) {
    simulated_gpu::SimulatedGpuSpec spec = small_gpu();
    spec.set_call_time = Seconds(0.0003);  // so that some die in the middle of a call
    ASSERT_EQ(::mkdir(folder_of(i).c_str(), 0700), 0);
    auto made = simulated_gpu::SimulatedGpu::create(folder_of(i) + "/gpu", spec);
    ASSERT_TRUE(made) << made.error().message;
    gpus.push_back(std::move(*made));
  }
  for (int i = 0; i < kAtOnce; ++i) {
    threads.emplace_back([&, i] {
      for (int mine = round++; mine < rounds; mine = round++) {
        std::mt19937 random(seed + static_cast<unsigned>(mine));
        const double time_s = kill_once(folder_of(i), *gpus[static_cast<std::size_t>(i)], random, restores);
        const std::lock_guard lock(mutex);
        times.push_back(time_s);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(everybody_has_ended());
  for (const auto& gpu : gpus) EXPECT_FALSE(gpu->locked());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
    const bool lease = entry.path().filename().string().starts_with("clock-lease-");
    EXPECT_TRUE(!lease || LeaseFolder::text_of(entry.path()).empty()) << entry.path();
  }
  std::ranges::sort(times);
  const auto restored = std::ranges::count_if(times, [](double time_s) { return time_s >= 0; });
  const auto time_ms = [&](std::size_t percent) { return 1e3 * times[(times.size() - 1) * percent / 100]; };
  fmt::print(
      "restored {}/{}, {} of them by --restore; until the clock was back: median {:.1f} ms, 99 % {:.1f} ms, longest "
      "{:.1f} ms\n",
      restored, rounds, restores.load(), time_ms(50), time_ms(99), time_ms(100));
  EXPECT_EQ(restored, rounds);
}

/// What the round kills, or how a container ends, beside helpers started by a training process on the host.
enum class End { daemons_processes, container_with_daemon, container, exit_of_container };

class KillsOnANode : public Kills {
 protected:
  struct Node {
    std::string folder;
    std::unique_ptr<simulated_gpu::SimulatedGpu> gpu;
  };
  void SetUp() override {
    Kills::SetUp();
    for (Node* node : {&with_daemon_, &without_}) {
      node->folder = folder_.file(node == &without_ ? "without" : "with");
      ASSERT_EQ(::mkdir(node->folder.c_str(), 0700), 0);
      simulated_gpu::SimulatedGpuSpec spec = small_gpu();
      spec.set_call_time = Seconds(0.0003);
      auto made = simulated_gpu::SimulatedGpu::create(node->folder + "/gpu", spec);
      ASSERT_TRUE(made) << made.error().message;
      node->gpu = std::move(*made);
    }
  }
  void start_daemon() {
    ::setenv("PERSEUS_RUNTIME_DIR", with_daemon_.folder.c_str(), 1);
    daemon_.emplace(with_daemon_.folder);
    ASSERT_TRUE(daemon_->listens());
  }
  void kill_daemon() {
    EXPECT_EQ(daemon_->end(SIGKILL), -1);
    ::unlink(daemon_->socket().c_str());
    daemon_.reset();
  }
  static bool restore(const Node& node) {
    ::setenv("PERSEUS_RUNTIME_DIR", node.folder.c_str(), 1);
    return std::system((std::string(PERSEUS_CLOCKD_PROGRAM) + " --restore > /dev/null").c_str()) == 0;
  }
  /// Checks that no helper is left, the lease is empty, and the clock is free.
  static bool is_free(const Node& node) {
    ::setenv("PERSEUS_RUNTIME_DIR", node.folder.c_str(), 1);
    auto device = device::open_gpu("simulated:" + node.folder + "/gpu");
    if (!device) return false;
    const auto lease = Lease::take((*device)->identity(), "simulated:" + node.folder + "/gpu", 0);
    return lease && !lease->recorded() && !node.gpu->locked();
  }
  /// Runs one round with a daemon on the node. Negative: the clock was never restored.
  double kill_with_daemon(End end, std::mt19937& random) {
    if (!daemon_) start_daemon();
    double time_s = 0;
    {
      Trainer trainer({with_daemon_.folder + "/gpu", with_daemon_.folder, static_cast<unsigned>(random()), "0",
                       daemon_->socket(), end != End::daemons_processes});
      if (!trainer.ready()) return -1;
      ::usleep(static_cast<unsigned>(random() % 8'000));
      // In a container: process 1, and sometimes the daemon. Else any of the four, in any order.
      const unsigned victims =
          end == End::daemons_processes ? 1 + static_cast<unsigned>(random() % 15) : (random() % 4 == 0 ? 9U : 1U);
      std::array<std::pair<unsigned, pid_t>, 4> all{
          {{1, trainer.pid}, {2, trainer.supervisor}, {4, trainer.worker}, {8, daemon_->pid()}}};
      std::shuffle(all.begin(), all.end(), random);
      const Instant killed = std::chrono::steady_clock::now();
      for (const auto& [who, pid] : all) {
        if ((victims & who) != 0 && pid > 0) testing::signal_process(pid, SIGKILL);
      }
      if ((victims & 8) != 0) {
        kill_daemon();
        start_daemon();  // as the service manager does
      }
      if ((victims & 7) != 0 && !eventually([&] { return !with_daemon_.gpu->locked(); })) return -1;
      time_s = seconds_since(killed);
    }
    while (::waitpid(-1, nullptr, WNOHANG) > 0 && testing::signal_process(daemon_->pid(), 0) == 0) {}
    return eventually([&] { return is_free(with_daemon_); }) ? time_s : -1;
  }
  /// Runs one round without a daemon, in a container. Negative: the clock was locked even after a restore.
  double end_container(End end, std::mt19937& random) {
    Instant told;
    {
      Trainer trainer({without_.folder + "/gpu", without_.folder, static_cast<unsigned>(random()), "0", "none", true,
                       end == End::exit_of_container});
      if (!trainer.ready()) return -1;
      ::usleep(static_cast<unsigned>(random() % 8'000));
      told = std::chrono::steady_clock::now();
      if (end == End::container) testing::signal_process(trainer.pid, SIGKILL);
    }
    constexpr double kExitLimit_s = 2;  // an exit waits no longer for the helper
    const bool late = seconds_since(told) >= kExitLimit_s;
    // Process 1 has been waited for: the kernel kills all other processes of the namespace before.
    const bool locked = without_.gpu->locked();
    left_by_containers_ += locked && end == End::container ? 1 : 0;
    left_by_exits_ += locked && !late && end == End::exit_of_container ? 1 : 0;
    const Instant began = std::chrono::steady_clock::now();
    return restore(without_) && is_free(without_) ? seconds_since(began) : -1;
  }

  Node with_daemon_, without_;
  std::optional<DaemonProcess> daemon_;
  int left_by_containers_ = 0, left_by_exits_ = 0;
};

TEST_F(KillsOnANode, OfItsDaemonItsHelpersAndContainersLeaveNoLock) {
  const bool can_unshare = [] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::unshare(CLONE_NEWPID) == 0 ? 0 : 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status == 0;
  }();
  if (!can_unshare) GTEST_SKIP() << "needs the right to make PID namespaces";
  const int rounds = kills() - 2 * kills() / 5;
  std::array<int, 4> count{}, restored{};
  std::array<double, 4> longest_s{};
  for (int round = 0; round < rounds; ++round) {
    std::mt19937 random(kill_seed() + 100'000U + static_cast<unsigned>(round));
    const auto end = static_cast<End>(round % 4);
    const auto kind = static_cast<std::size_t>(round % 4);
    const bool daemon = end == End::daemons_processes || end == End::container_with_daemon;
    const double time_s = daemon ? kill_with_daemon(end, random) : end_container(end, random);
    ++count.at(kind);
    restored.at(kind) += time_s >= 0 ? 1 : 0;
    longest_s.at(kind) = std::max(longest_s.at(kind), time_s);
    ASSERT_GE(time_s, 0) << "round " << round;
  }
  const std::array<const char*, 4> names{"daemon's processes", "containers with a daemon", "containers and --restore",
                                         "exits of containers"};
  for (std::size_t kind = 0; kind < names.size(); ++kind) {
    fmt::print("{}: restored {}/{}, longest {:.1f} ms\n", names.at(kind), restored.at(kind), count.at(kind),
               1e3 * longest_s.at(kind));
  }
  fmt::print("locked until --restore: {} of {} killed containers, {} of {} that exited\n", left_by_containers_,
             count[2], left_by_exits_, count[3]);
  EXPECT_EQ(left_by_exits_, 0) << "exit handlers give back";
}

TEST_F(Kills, OfAHelperAndThenOfATrainingProcessThatStartsTheNextOne) {
  constexpr int kRounds = 40;
  const std::string path = folder_.file("gpu");
  simulated_gpu::SimulatedGpuSpec spec = small_gpu();
  spec.set_call_time = Seconds(0.0003);
  auto gpu = simulated_gpu::SimulatedGpu::create(path, spec);
  ASSERT_TRUE(gpu);
  std::mt19937 random(2026);
  for (int round = 0; round < kRounds; ++round) {
    {
      Trainer trainer({path, folder_.path(), static_cast<unsigned>(round), "0.001"});
      ASSERT_TRUE(trainer.ready());
      testing::signal_process(random() % 2 == 0 ? trainer.worker : trainer.supervisor, SIGKILL);
      ::usleep(static_cast<unsigned>(random() % 30'000));
      testing::signal_process(trainer.pid, SIGKILL);
    }
    ASSERT_TRUE(everybody_has_ended()) << round;
    EXPECT_FALSE((*gpu)->locked()) << round;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      const bool lease = entry.path().filename().string().starts_with("clock-lease-");
      EXPECT_TRUE(!lease || LeaseFolder::text_of(entry.path()).empty()) << round;
    }
  }
}

TEST_F(Kills, AllAtOnceTheNextOneGivesTheClockBack) {
  const std::string path = folder_.file("gpu");
  auto gpu = simulated_gpu::SimulatedGpu::create(path, small_gpu());
  ASSERT_TRUE(gpu);
  for (const bool by_hand : {true, false}) {
    bool was_locked = false;
    for (int attempt = 0; attempt < 50 && !was_locked; ++attempt) {
      Trainer trainer({path, folder_.path(), static_cast<unsigned>(attempt)});
      ASSERT_TRUE(trainer.ready());
      ASSERT_TRUE(eventually([&] { return (*gpu)->locked(); }));
      // Stops all first, so that none observes another's death.
      const std::array<pid_t, 3> all{trainer.pid, trainer.worker, trainer.supervisor};
      for (const int signal : {SIGSTOP, SIGKILL}) {
        for (const pid_t pid : all) testing::signal_process(pid, signal);
      }
      ASSERT_TRUE(eventually([&] { return ended(trainer.supervisor); }));
      ASSERT_TRUE(eventually([&] { return ended(trainer.worker); }));
      was_locked = (*gpu)->locked();  // it may have been at 0 at that moment
    }
    ASSERT_TRUE(was_locked);
    if (by_hand) {
      EXPECT_EQ(std::system((std::string(PERSEUS_CLOCKD_PROGRAM) + " --restore > /dev/null").c_str()), 0);
    } else {
      ASSERT_TRUE(ClockController::start({"simulated:" + path, PERSEUS_CLOCKD_PROGRAM, 60, {}}));
    }
    EXPECT_FALSE((*gpu)->locked());
  }
  EXPECT_TRUE(everybody_has_ended());
}

TEST_F(Kills, TheNextHelperOfAnotherGpuGivesItBackToo) {
  const std::string path = folder_.file("gpu"), other = folder_.file("other");
  auto gpu = simulated_gpu::SimulatedGpu::create(path, small_gpu());
  ASSERT_TRUE(gpu && simulated_gpu::SimulatedGpu::create(other, small_gpu()));
  {
    // As a killed holder leaves it.
    auto device = device::open_gpu("simulated:" + path);
    ASSERT_TRUE(device);
    auto lease = Lease::take((*device)->identity(), "simulated:" + path, 0);
    ASSERT_TRUE(lease && lease->record() && (*device)->lock_clock(Megahertz(350)));
  }
  const auto controller = ClockController::start({"simulated:" + other, PERSEUS_CLOCKD_PROGRAM, 60, {}});
  ASSERT_TRUE(controller) << controller.error().message;
  EXPECT_TRUE(eventually([&] { return !(*gpu)->locked(); }));
}

TEST_F(Kills, ALeaseThatAnotherProcessRemovedIsStillOwed) {
  const std::string path = folder_.file("gpu");
  auto gpu = simulated_gpu::SimulatedGpu::create(path, small_gpu());
  ASSERT_TRUE(gpu);
  const auto controller = ClockController::start({"simulated:" + path, PERSEUS_CLOCKD_PROGRAM, 60, {}});
  ASSERT_TRUE(controller) << controller.error().message;
  (*controller)->set(Megahertz(700));
  ASSERT_TRUE(eventually([&] { return (*gpu)->locked(); }));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (entry.path() != path) std::filesystem::remove(entry.path());
  }
  testing::signal_process((*controller)->helper_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return !(*gpu)->locked(); }));
}

TEST_F(Kills, AForkedChildOfTheDeadKeepsNothingLocked) {
  const std::string path = folder_.file("gpu");
  auto gpu = simulated_gpu::SimulatedGpu::create(path, small_gpu());
  ASSERT_TRUE(gpu);
  std::array<int, 2> until{}, forked{};
  ASSERT_EQ(::pipe(until.data()) + ::pipe(forked.data()), 0);
  const pid_t training = ::fork();
  if (training == 0) {
    const auto controller = ClockController::start({"simulated:" + path, PERSEUS_CLOCKD_PROGRAM, 60, {}});
    if (!controller) ::_exit(1);
    (*controller)->set(Megahertz(700));
    if (::fork() == 0) {  // like a data loader's worker, which has all our file descriptors
      char byte = 1;
      ::close(until[1]);
      (void)!::write(forked[1], &byte, 1);
      (void)!::read(until[0], &byte, 1);
      ::_exit(0);
    }
    for (;;) ::pause();
  }
  ::close(until[0]);
  char byte = 0;
  ASSERT_EQ(::read(forked[0], &byte, 1), 1);
  ASSERT_TRUE(eventually([&] { return (*gpu)->locked(); }));
  testing::signal_process(training, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !(*gpu)->locked(); }));
  for (const int fd : {until[1], forked[0], forked[1]}) ::close(fd);
  EXPECT_TRUE(everybody_has_ended());
}

TEST_F(Kills, ExecInTheTrainingProcessGivesTheClockBack) {
  const std::string path = folder_.file("gpu");
  auto gpu = simulated_gpu::SimulatedGpu::create(path, small_gpu());
  ASSERT_TRUE(gpu);
  std::array<int, 2> until{}, locked{};
  ASSERT_EQ(::pipe(until.data()) + ::pipe(locked.data()), 0);
  const pid_t training = ::fork();
  if (training == 0) {
    const auto controller = ClockController::start({"simulated:" + path, PERSEUS_CLOCKD_PROGRAM, 60, {}});
    if (!controller) ::_exit(1);
    (*controller)->set(Megahertz(700));
    ::close(until[1]);
    ::dup2(until[0], STDIN_FILENO);
    if (!eventually([&] { return (*gpu)->locked(); })) ::_exit(1);
    (void)!::write(locked[1], "1", 1);
    ::execl("/bin/cat", "cat", nullptr);
    ::_exit(1);
  }
  ::close(until[0]);
  ::close(locked[1]);
  char byte = 0;  // the clock may be restored before the test can look
  ASSERT_EQ(::read(locked[0], &byte, 1), 1);
  EXPECT_TRUE(eventually([&] { return !(*gpu)->locked(); }));
  for (const int fd : {until[1], locked[0]}) ::close(fd);
  EXPECT_TRUE(everybody_has_ended());
}

}  // namespace
}  // namespace perseus::clock_control
