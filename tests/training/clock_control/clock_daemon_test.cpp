// The node's clock daemon as a real process: which caller gets a GPU, and that the clock is restored however a holder
// ends.
#include "training/clock_control/clock_daemon.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon_process.h"
#include "gives_back.h"
#include "lease_folder.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "small_gpu.h"
#include "tests/support/signal_process.h"
#include "training/clock_control/clock_controller.h"
#include "training/clock_control/helper_process.h"
#include "training/clock_control/mailbox.h"
#include "training/device/open_gpu.h"
#include "training_process.h"

namespace perseus::clock_control {
namespace {

using testing::eventually;

using ::testing::HasSubstr;

class Daemon : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = simulated_gpu::SimulatedGpu::create(folder_.file("gpu"), small_gpu());
    ASSERT_TRUE(made) << made.error().message;
    gpu_ = std::move(*made);
  }
  void start_daemon(std::vector<std::string> more = {}) {
    daemon_.emplace(folder_.path(), std::move(more));
    ASSERT_TRUE(daemon_->listens());
  }
  [[nodiscard]] ClockControllerOptions options(RestartLimits restart = {}) const {
    // A helper of the test itself could not start: only the daemon's can work.
    ClockControllerOptions options{"simulated:" + folder_.file("gpu"), "/no/such/helper", 60, restart};
    options.daemon = folder_.file("clockd.sock");
    return options;
  }
  void start(RestartLimits restart = {}) {
    auto started = ClockController::start(options(restart));
    ASSERT_TRUE(started) << started.error().message;
    controller_ = std::move(*started);
  }
  void lock(Megahertz clock = Megahertz(700)) {
    controller_->set(clock);
    ASSERT_TRUE(eventually([&] { return gpu_->locked() && gpu_->clock() == clock; }));
  }
  [[nodiscard]] std::string log() const { return LeaseFolder::text_of(folder_.file("daemon.log")); }
  [[nodiscard]] OwnedFd connect() const {
    OwnedFd connection(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, folder_.file("clockd.sock").c_str());
    EXPECT_EQ(::connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return connection;
  }
  /// The daemon's error text for this request, or "" if it hands out a helper.
  [[nodiscard]] std::string answer(const DaemonRequest& request, const std::vector<int>& fds) const {
    const OwnedFd connection = connect();
    iovec part{const_cast<DaemonRequest*>(&request), sizeof request};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(3 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      *header = {CMSG_LEN(fds.size() * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
    }
    EXPECT_EQ(::sendmsg(connection.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof request));
    HelperHello hello;
    if (::recv(connection.get(), &hello, sizeof hello, 0) != sizeof hello) return "closed without a word";
    return hello.fault < 0 ? "" : hello.text.data();
  }
  [[nodiscard]] DaemonRequest request() const {
    DaemonRequest request;
    std::strcpy(request.version.data(), PERSEUS_VERSION);
    std::strcpy(request.selector.data(), ("simulated:" + folder_.file("gpu")).c_str());
    return request;
  }

  LeaseFolder folder_;
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu_;
  std::optional<DaemonProcess> daemon_;
  std::unique_ptr<ClockController> controller_;
};

TEST_F(Daemon, GivesItsClientAHelperOutsideOfTheClientsProcesses) {
  start_daemon();
  start();
  lock();
  const std::string status = LeaseFolder::text_of(fmt::format("/proc/{}/status", controller_->supervisor_pid()));
  EXPECT_THAT(status, HasSubstr(fmt::format("PPid:\t{}\n", daemon_->pid())));
  EXPECT_TRUE(gives_back(controller_, [&] { return !gpu_->locked(); }));
  start();
  lock(Megahertz(350));
}

TEST_F(Daemon, RefusesASecondClientAndNamesTheHolder) {
  start_daemon();
  const pid_t training = start_training_process(options());
  ASSERT_TRUE(eventually([&] { return gpu_->locked(); }));
  const auto second = ClockController::start(options());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().fault, device::DeviceFault::busy);
  EXPECT_THAT(second.error().message, HasSubstr(fmt::format("in use by process {} of user {}", training, ::getuid())));
  testing::signal_process(training, SIGKILL);
  ::waitpid(training, nullptr, 0);
}

TEST_F(Daemon, GivesBackWhenTheClientIsKilled) {
  start_daemon();
  const pid_t training = start_training_process(options());
  ASSERT_TRUE(eventually([&] { return gpu_->locked(); }));
  testing::signal_process(training, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !gpu_->locked(); }));
  ::waitpid(training, nullptr, 0);
  start();  // the GPU is free again
}

TEST_F(Daemon, GivesBackOnSigterm) {
  start_daemon();
  start();
  lock();
  EXPECT_EQ(daemon_->end(SIGTERM), 0) << log();
  EXPECT_FALSE(gpu_->locked());
  EXPECT_TRUE(eventually([&] { return controller_->state() == ControlState::gone; }));
}

TEST_F(Daemon, RestoresWhenSupervisorAndWorkerAreKilledAtOnce) {
  start_daemon();
  start();
  lock();
  const std::array<pid_t, 2> both{controller_->supervisor_pid(), controller_->helper_pid()};
  for (const int signal : {SIGSTOP, SIGKILL}) {
    for (const pid_t pid : both) testing::signal_process(pid, signal);
  }
  EXPECT_TRUE(eventually([&] { return !gpu_->locked(); })) << log();
}

TEST_F(Daemon, TheNextDaemonRestoresClocksOfTheLastOne) {
  start_daemon();
  start();
  lock();
  const std::array<pid_t, 3> all{daemon_->pid(), controller_->supervisor_pid(), controller_->helper_pid()};
  for (const int signal : {SIGSTOP, SIGKILL}) {
    for (const pid_t pid : all) testing::signal_process(pid, signal);
  }
  EXPECT_EQ(daemon_->status(), -1);
  EXPECT_TRUE(eventually([&] { return controller_->state() == ControlState::gone; }));
  EXPECT_TRUE(gpu_->locked());
  start_daemon();
  EXPECT_TRUE(eventually([&] { return !gpu_->locked(); })) << log();
}

TEST_F(Daemon, AClientOutlivesItAndTakesTheNextOne) {
  start_daemon();
  start({0.001, 0.02});
  lock();
  EXPECT_EQ(daemon_->end(SIGTERM), 0);
  ASSERT_TRUE(eventually([&] { return controller_->state() == ControlState::gone; }));
  start_daemon();
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); })) << controller_->why();
  EXPECT_TRUE(eventually([&] { return controller_->working_helper() == 2; }));
}

TEST_F(Daemon, ASuspendedTrainingProcessGivesItsClockBackAndTakesItAgain) {
  start_daemon();
  expect_clock_follows_suspension(start_training_process(options({0.01, 0.02})), *gpu_);
}

TEST_F(Daemon, KeepsAnAdministratorsCeiling) {
  start_daemon({"--ceiling", "700"});
  start();
  controller_->set(Megahertz(350));
  ASSERT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(350); }));
  controller_->set(Megahertz(1400));
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
  controller_->set(Megahertz(350));
  ASSERT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(350); }));
  EXPECT_TRUE(gives_back(controller_, [&] { return gpu_->clock() == Megahertz(700); }))
      << "its limit is back, not removed";
}

TEST_F(Daemon, AClientsOwnCeilingEndsWithIt) {
  start_daemon();
  ClockControllerOptions limited = options();
  limited.ceiling = Megahertz(700);
  auto started = ClockController::start(limited);
  ASSERT_TRUE(started) << started.error().message;
  (*started)->set(Megahertz(1400));
  EXPECT_TRUE(eventually([&] { return gpu_->locked() && gpu_->clock() == Megahertz(700); }));
  EXPECT_TRUE(gives_back(*started, [&] { return !gpu_->locked(); }));
}

TEST_F(Daemon, OpensNoFileThatAClientNames) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string socket = folder_.file("clockd.sock");
    ::execl(PERSEUS_CLOCKD_PROGRAM, PERSEUS_CLOCKD_PROGRAM, "--daemon", "--socket", socket.c_str(), nullptr);
    ::_exit(127);
  }
  EXPECT_TRUE(eventually([&] { return daemon_listens(folder_.file("clockd.sock")); }));
  const auto started = ClockController::start(options());
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("does not serve simulated:"));
  testing::signal_process(child, SIGTERM);
  ::waitpid(child, nullptr, 0);
}

TEST_F(Daemon, SetsClocksForAClientWithoutRights) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give it up";
  simulated_gpu::SimulatedGpuSpec spec = small_gpu();
  spec.needs_root = true;
  auto made = simulated_gpu::SimulatedGpu::create(folder_.file("gpu"), spec);
  ASSERT_TRUE(made) << made.error().message;
  gpu_ = std::move(*made);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(folder_.file("gpu").c_str(), 0666), 0);
  start_daemon();
  const pid_t training = ::fork();
  if (training == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
    auto device = device::open_gpu("simulated:" + folder_.file("gpu"));
    if (!device || (*device)->lock_clock(Megahertz(350))) ::_exit(2);
    auto started = ClockController::start(options());
    if (!started) ::_exit(3);
    (*started)->set(Megahertz(700));
    for (;;) ::pause();
  }
  EXPECT_TRUE(
      eventually([&] { return gpu_->clock() == Megahertz(700) || ::waitpid(training, nullptr, WNOHANG) != 0; }));
  EXPECT_EQ(gpu_->clock(), Megahertz(700)) << log();
  testing::signal_process(training, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !gpu_->locked(); }));
  ::waitpid(training, nullptr, 0);
}

TEST_F(Daemon, RefusesAClientThatCannotOpenTheGpusNode) {
  start_daemon();
  const OwnedFd mailbox(create_mailbox_fd()), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const OwnedFd read_only(::open(folder_.file("gpu").c_str(), O_RDONLY | O_CLOEXEC));
  const OwnedFd other(::open(folder_.file("other").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const OwnedFd node(::open(folder_.file("gpu").c_str(), O_RDWR | O_CLOEXEC));
  const std::string cannot = "the client cannot open " + folder_.file("gpu");
  EXPECT_THAT(answer(request(), {mailbox.get(), wake.get()}), HasSubstr(cannot));
  EXPECT_THAT(answer(request(), {mailbox.get(), wake.get(), read_only.get()}), HasSubstr(cannot));
  EXPECT_THAT(answer(request(), {mailbox.get(), wake.get(), other.get()}), HasSubstr(cannot));
  EXPECT_EQ(answer(request(), {mailbox.get(), wake.get(), node.get()}), "");
}

TEST_F(Daemon, RefusesInvalidRequestsAndContinues) {
  start_daemon();
  const OwnedFd mailbox(create_mailbox_fd()), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  EXPECT_THAT(answer(request(), {}), HasSubstr("an unknown request"));
  EXPECT_THAT(answer(request(), {mailbox.get()}), HasSubstr("an unknown request"));
  EXPECT_THAT(answer(request(), {mailbox.get(), mailbox.get()}), HasSubstr("no eventfd"));
  EXPECT_THAT(answer(request(), {wake.get(), wake.get()}), HasSubstr("unknown mailbox"));
  DaemonRequest odd = request();
  std::strcpy(odd.version.data(), "9.9.9");
  EXPECT_THAT(answer(odd, {mailbox.get(), wake.get()}), HasSubstr("this is 9.9.9"));
  odd.magic = 1;
  EXPECT_THAT(answer(odd, {mailbox.get(), wake.get()}), HasSubstr("an unknown request"));
  {
    const OwnedFd connection = connect();
    EXPECT_EQ(::send(connection.get(), "x", 1, 0), 1);
  }
  start();
  lock();
}

TEST_F(Daemon, IsTheOnlyOneOnItsSocket) {
  start_daemon();
  DaemonProcess second(folder_.path());
  EXPECT_EQ(second.status(), 69);
  EXPECT_THAT(log(), HasSubstr("another daemon listens there"));
  start();
}

TEST_F(Daemon, ItsSocketHasTheConfiguredGroup) {
  start_daemon({"--mode", "0600"});
  struct stat about {};
  ASSERT_EQ(::stat(folder_.file("clockd.sock").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
}

TEST_F(Daemon, WrongOptionsAreUsage) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--mode", "9"}, {"--ceiling", "x"}, {"--group"}, {"--nonsense", "1"}}) {
    DaemonProcess daemon(folder_.path(), wrong);
    EXPECT_EQ(daemon.status(), 64) << wrong.front();
  }
}

TEST_F(Daemon, WithoutOneASocketThatWasNamedIsAnError) {
  const auto started = ClockController::start(options());
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("no clock daemon at " + folder_.file("clockd.sock")));
}

}  // namespace
}  // namespace perseus::clock_control
