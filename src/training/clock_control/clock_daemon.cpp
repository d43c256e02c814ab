#include "training/clock_control/clock_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "training/clock_control/daemon_protocol.h"
#include "training/clock_control/helper_process.h"
#include "training/clock_control/lease.h"
#include "training/clock_control/mailbox.h"
#include "training/clock_control/start_helper.h"
#include "training/clock_control/urgency.h"
#include "training/device/open_gpu.h"

namespace perseus::clock_control {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kRequestLimit = 5 * kSecond;  // from the connection to the request
constexpr std::int64_t kRestoreAgain = 10 * kSecond;
constexpr std::int64_t kStopLimit = 10 * kSecond;
constexpr std::size_t kMostWaiting = 256;  // connections without a request
constexpr std::size_t kMostClients = 256;
constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD, Linux 6.5

void log(const std::string& line) { std::fputs(("perseus-clockd: " + line + "\n").c_str(), stderr); }

void refuse(int connection, device::DeviceFault fault, const std::string& why) {
  send_refusal(connection, {fault, why});
}

struct Peer {
  ucred who{};
  OwnedFd pidfd;  ///< of the connected process
  [[nodiscard]] bool lives() const {
    pollfd ended{pidfd.get(), POLLIN, 0};
    return ::poll(&ended, 1, 0) == 0;
  }
};

/// Nullopt: the peer has ended, or the kernel has no pidfds (before 5.3).
Peer peer_of(int connection) {
  Peer peer;
  socklen_t size = sizeof peer.who;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer.who, &size) != 0) return peer;
  int fd = -1;
  size = sizeof fd;
  if (::getsockopt(connection, SOL_SOCKET, kPeerPidfd, &fd, &size) != 0) {
    fd = peer.who.pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, peer.who.pid, 0)) : -1;
    if (fd >= 0) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  peer.pidfd = OwnedFd(fd);
  return peer;
}

/// A worker waits for it and reads it: any other file might block it or keep it awake.
bool is_eventfd(int fd) {
  std::array<char, 64> link{};
  const ssize_t length = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), link.data(), link.size());
  return length > 0 && std::string_view(link.data(), static_cast<std::size_t>(length)) == "anon_inode:[eventfd]";
}

class ClockDaemon {
 public:
  explicit ClockDaemon(const DaemonOptions& options) : options_(options) {}
  int run();

 private:
  struct Waiting {
    OwnedFd connection;
    std::int64_t until_ns = 0;
  };
  struct Client {
    std::string gpu;
    Peer peer;
    pid_t helper = 0;
  };
  std::string listen();
  bool bind_to(const std::string& path);
  bool prepare_folder(const std::string& folder) const;
  void serve();
  void accept_clients();
  void hear(Waiting& waiting);
  [[noreturn]] void become_helper(const ReceivedRequest& received, int connection, const Peer& peer) const;
  void see_children();
  void restore_if_due();
  int stop();
  [[nodiscard]] std::int64_t due_ns() const;

  DaemonOptions options_;
  OwnedFd lock_, socket_, signals_;
  std::vector<Waiting> waiting_;
  std::vector<Client> clients_;
  pid_t restorer_ = 0;
  bool restore_ = true;  ///< leases may have expired
  std::int64_t restore_at_ns_ = 0;
  bool complained_ = false;  ///< of leases that cannot be restored
};

bool ClockDaemon::prepare_folder(const std::string& folder) const {
  // Elsewhere a folder that is missing is a mistake in PATH: no client would find the daemon.
  if (options_.socket == kDaemonSocket) ::mkdir(folder.c_str(), 0755);
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) return false;
  // A helper that root has started made /run/perseus accessible to root alone; clients must reach the socket.
  const mode_t shared = about.st_mode & 0777;
  if (folder == "/run/perseus" && about.st_uid == ::geteuid() && shared == 0700) ::chmod(folder.c_str(), 0755);
  return true;
}

/// Creates and locks that file, until the lock is closed. Its last holder may have removed the file.
OwnedFd lock_file(const std::string& path, std::string& why) {
  for (;;) {
    OwnedFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock.valid()) return why = std::strerror(errno), OwnedFd();
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return why = "another daemon listens there", OwnedFd();
    struct stat locked {
    }, there{};
    if (::fstat(lock.get(), &locked) == 0 && ::stat(path.c_str(), &there) == 0 && locked.st_ino == there.st_ino) {
      return lock;
    }
  }
}

/// Returns the error; empty: clients can connect.
std::string ClockDaemon::listen() {
  const std::string& path = options_.socket;
  if (!can_be_socket_path(path)) return "no path of 1 to 103 bytes";
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0 && !S_ISSOCK(there.st_mode)) return "it exists and is not a socket";
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0 && !prepare_folder(path.substr(0, slash))) return std::strerror(errno);
  // Held for the daemon's life: it distinguishes a socket that a daemon left behind from one in use.
  std::string why;
  lock_ = lock_file(path + ".lock", why);
  if (!lock_.valid()) return why;
  const std::string unready = path + ".new";  // renamed to the path when clients can connect
  if (bind_to(unready) && ::rename(unready.c_str(), path.c_str()) == 0) return "";
  why = std::strerror(errno);
  ::unlink(unready.c_str());
  ::unlink((path + ".lock").c_str());
  return why;
}

bool ClockDaemon::bind_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  ::unlink(path.c_str());
  socket_ = OwnedFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.valid()) return false;
  const mode_t before = ::umask(0177);  // no client connects before the mode is set
  const bool bound = ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int error = errno;
  ::umask(before);
  errno = error;
  return bound && (!options_.group || ::chown(path.c_str(), static_cast<uid_t>(-1), *options_.group) == 0) &&
         ::chmod(path.c_str(), options_.mode) == 0 && ::listen(socket_.get(), 128) == 0;
}

int ClockDaemon::run() {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) ::sigaddset(&wanted, signal);
  ::sigprocmask(SIG_BLOCK, &wanted, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = OwnedFd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  // Workers whose supervisor has died become our children, so we see their deaths.
  if (!signals_.valid() || ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return 69;
  if (const std::string why = listen(); !why.empty()) {
    log(fmt::format("--socket {}: cannot listen there: {}", options_.socket, why));
    return 69;
  }
  log(fmt::format("version {}, listening on {}", PERSEUS_VERSION, options_.socket));
  become_urgent();
  serve();
  return stop();
}

std::int64_t ClockDaemon::due_ns() const {
  std::int64_t due = restore_ && restorer_ == 0 ? restore_at_ns_ : INT64_MAX;
  for (const Waiting& one : waiting_) due = std::min(due, one.until_ns);
  return due;
}

void ClockDaemon::serve() {
  for (;;) {
    restore_if_due();
    std::erase_if(waiting_, [](const Waiting& one) { return monotonic_ns() >= one.until_ns; });
    std::vector<pollfd> fds{{signals_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
    if (waiting_.size() >= kMostWaiting) fds[1].fd = -1;
    for (const Waiting& one : waiting_) fds.push_back({one.connection.get(), POLLIN, 0});
    const std::int64_t due = due_ns();
    const std::int64_t left_ns = std::clamp<std::int64_t>(due - monotonic_ns(), 0, 3600 * kSecond);
    const timespec limit{left_ns / kSecond, left_ns % kSecond};
    if (::ppoll(fds.data(), fds.size(), due == INT64_MAX ? nullptr : &limit, nullptr) <= 0) continue;
    for (signalfd_siginfo signal{}; ::read(signals_.get(), &signal, sizeof signal) == sizeof signal;) {
      if (signal.ssi_signo != SIGCHLD) return;
    }
    see_children();
    for (std::size_t i = 2; i < fds.size(); ++i) {
      if (fds[i].revents != 0) hear(waiting_[i - 2]);
    }
    std::erase_if(waiting_, [](const Waiting& one) { return !one.connection.valid(); });
    if (fds[1].revents != 0) accept_clients();
  }
}

void ClockDaemon::accept_clients() {
  while (waiting_.size() < kMostWaiting) {
    OwnedFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.valid()) return;
    waiting_.push_back({std::move(connection), monotonic_ns() + kRequestLimit});
  }
}

/// Receives the request of a connection; after that the connection is a helper's, or closed.
void ClockDaemon::hear(Waiting& waiting) {
  const OwnedFd connection = std::move(waiting.connection);
  const auto received = receive_request(connection.get());
  if (!received)
    return refuse(connection.get(), device::DeviceFault::not_supported, "the clock daemon received an unknown request");
  const DaemonRequest& request = received->request;
  if (std::string_view(request.version.data()) != PERSEUS_VERSION) {
    return refuse(connection.get(), device::DeviceFault::no_driver,
                  fmt::format("the clock daemon is version " PERSEUS_VERSION ", this is {}", request.version.data()));
  }
  if (!is_eventfd(received->fds[1].get())) {
    return refuse(connection.get(), device::DeviceFault::not_supported, "the clock daemon received no eventfd");
  }
  Peer peer = peer_of(connection.get());
  if (!peer.pidfd.valid() || !peer.lives()) {
    return refuse(connection.get(), device::DeviceFault::not_supported,
                  "the clock daemon cannot watch this process: it has ended, or the daemon runs in a PID namespace of "
                  "its own and "
                  "Linux is older than 6.5");
  }
  const std::string selector = request.selector.data();
  const auto is_kind = [&](std::string_view kind) { return selector.starts_with(kind); };
  // A simulated GPU is a path of the client's, and opening a path with the daemon's rights can do anything.
  if (!is_kind("nvml:") && !is_kind("zeusd:") && !(is_kind("simulated:") && options_.simulated)) {
    return refuse(connection.get(), device::DeviceFault::not_supported,
                  fmt::format("the clock daemon does not serve {}; allowed: nvml:, zeusd:{}", selector,
                              options_.simulated ? ", simulated:" : ""));
  }
  if (clients_.size() >= kMostClients) {
    return refuse(connection.get(), device::DeviceFault::busy,
                  fmt::format("the clock daemon has {} clients", clients_.size()));
  }
  std::string gpu(device::split_selector(selector).which);
  for (const Client& other : clients_) {
    // The helper of a process that has ended, or that requests again, is giving back: the new one waits for its
    // lease.
    if (other.gpu != gpu || !other.peer.lives() || (peer.who.pid > 0 && other.peer.who.pid == peer.who.pid)) {
      continue;
    }
    const std::string why =
        fmt::format("the clock of {} is in use by process {} of user {}", gpu, other.peer.who.pid, other.peer.who.uid);
    log(fmt::format("refused process {} of user {}: {}", peer.who.pid, peer.who.uid, why));
    return refuse(connection.get(), device::DeviceFault::busy, why);
  }
  const pid_t helper = ::fork();
  if (helper < 0) return refuse(connection.get(), device::DeviceFault::busy, "the clock daemon cannot fork");
  if (helper == 0) become_helper(*received, connection.get(), peer);
  log(fmt::format("{}: process {} of user {}, helper {}", gpu, peer.who.pid, peer.who.uid, helper));
  clients_.push_back({std::move(gpu), std::move(peer), helper});
}

void ClockDaemon::become_helper(const ReceivedRequest& received, int connection, const Peer& peer) const {
  const int node = received.fds.size() > 2 ? received.fds[2].get() : -1;
  const std::array<int, 5> given{received.fds[0].get(), connection, received.fds[1].get(), peer.pidfd.get(), node};
  std::array<int, 5> moved{};  // above the numbers that they will take
  constexpr int free_numbers = 64;
  for (std::size_t i = 0; i < given.size(); ++i) moved.at(i) = ::fcntl(given.at(i), F_DUPFD_CLOEXEC, free_numbers);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const int number = HelperFds::kMailbox + static_cast<int>(i);
    if (moved.at(i) < 0 || ::dup2(moved.at(i), number) < 0) ::close(number);
  }
  const Megahertz asked(std::clamp(received.request.ceiling_mhz, 0, 65535));
  run_daemons_helper({received.request.selector.data(), options_.ceiling, true, asked});
}

void ClockDaemon::see_children() {
  int status = 0;
  for (pid_t ended = ::waitpid(-1, &status, WNOHANG); ended > 0; ended = ::waitpid(-1, &status, WNOHANG)) {
    const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended == restorer_) {
      restorer_ = 0;
      complained_ = !well;
      // Retry later: helpers of an earlier daemon are not our children, so we do not see their deaths. A restoration
      // that is already due stays due.
      if (!restore_) restore_at_ns_ = monotonic_ns() + kRestoreAgain;
      restore_ = true;
      continue;
    }
    if (!well) {
      restore_ = true;
      restore_at_ns_ = 0;
    }
    std::erase_if(clients_, [&](const Client& client) {
      if (client.helper == ended) log(fmt::format("{}: helper {} has ended", client.gpu, ended));
      return client.helper == ended;
    });
  }
}

/// In a separate process: a driver that hangs must not keep clients waiting.
void ClockDaemon::restore_if_due() {
  if (!restore_ || restorer_ != 0 || monotonic_ns() < restore_at_ns_) return;
  const pid_t child = ::fork();
  if (child == 0) {
    become_urgent();
    lock_.reset();
    socket_.reset();
    waiting_.clear();
    bool all = true;
    for (const ExpiredLease& lease : restore_expired_leases()) {
      all &= lease.restored.ok();
      if (lease.restored || !complained_) log(text_of(lease));
    }
    ::_exit(all ? 0 : 1);
  }
  restore_at_ns_ = child < 0 ? monotonic_ns() + kSecond : 0;
  if (child < 0) return;
  restorer_ = child;
  restore_ = false;
}

int ClockDaemon::stop() {
  ::unlink(options_.socket.c_str());
  socket_.reset();
  waiting_.clear();
  for (const Client& client : clients_) ::kill(client.helper, SIGTERM);
  const std::int64_t until_ns = monotonic_ns() + kStopLimit;
  for (bool last = false; monotonic_ns() < until_ns;) {
    see_children();
    if (clients_.empty() && restorer_ == 0) {
      if (last) break;
      last = restore_ = true;
      restore_at_ns_ = 0;
      complained_ = false;
      restore_if_due();
    }
    pollfd child{signals_.get(), POLLIN, 0};
    ::poll(&child, 1, 50);
    for (signalfd_siginfo signal{}; ::read(signals_.get(), &signal, sizeof signal) == sizeof signal;) {}
  }
  const bool all = clients_.empty() && restorer_ == 0 && !complained_;
  log(all ? "ended, all clocks are given back" : "ended, a clock could not be given back: perseus-clockd --restore");
  return all ? 0 : 69;
}

}  // namespace

bool can_be_socket_path(const std::string& path) {
  return !path.empty() && !path.ends_with('/') &&
         path.size() + std::string_view(".new").size() < sizeof(sockaddr_un::sun_path);
}

int run_clock_daemon(const DaemonOptions& options) { return ClockDaemon(options).run(); }

}  // namespace perseus::clock_control
