#include "tests/support/postgres_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "base/result.h"

namespace perseus::testing {
namespace {

namespace fs = std::filesystem;

/// Starts a program without output, as the user `postgres` if the test runs as root. It ends when the test process
/// ends.
pid_t start_program(const std::string& program, const std::vector<std::string>& arguments, const std::string& log) {
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const passwd* user = ::getuid() == 0 ? ::getpwnam("postgres") : nullptr;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  PERSEUS_CHECK(child >= 0, "fork");
  if (child > 0) return child;
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (out < 0 || ::dup2(out, STDOUT_FILENO) < 0 || ::dup2(out, STDERR_FILENO) < 0) ::_exit(126);
  if (user != nullptr && (::setgroups(0, nullptr) != 0 || ::setgid(user->pw_gid) != 0 || ::setuid(user->pw_uid) != 0)) {
    ::_exit(126);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
  if (::getppid() != parent || ::chdir("/") != 0) ::_exit(126);
  ::execv(words[0], words.data());
  ::_exit(127);
}

bool succeeds(const std::string& program, const std::vector<std::string>& arguments, const std::string& log) {
  int status = 0;
  const pid_t child = start_program(program, arguments, log);
  PERSEUS_CHECK(::waitpid(child, &status, 0) == child, "waitpid");
  return status == 0;
}

}  // namespace

std::string PostgresServer::programs() {
  std::string newest;
  int version = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", none)) {
    const int found = std::atoi(entry.path().filename().c_str());
    if (found <= version || !fs::exists(entry.path() / "bin/initdb", none)) continue;
    version = found;
    newest = entry.path() / "bin";
  }
  return newest;
}

PostgresServer::PostgresServer(Flush flush)
    : flush_(flush), folder_(fs::path(scratch_.path("log")).parent_path().string()) {
  fs::permissions(folder_, fs::perms::all);
  PERSEUS_CHECK(succeeds(programs() + "/initdb",
                         {"-D", folder_ + "/data", "-U", "perseus", "-A", "trust", "-E", "UTF8", "--locale=C",
                          "--no-sync", "--no-instructions"},
                         folder_ + "/log"),
                (folder_ + "/log: initdb failed").c_str());
  start();
}

PostgresServer::~PostgresServer() {
  if (server_ > 0) stop();
}

void PostgresServer::start() {
  server_ = start_program(programs() + "/postgres",
                          {"-D", folder_ + "/data", "-k", folder_, "-c", "listen_addresses=", "-c",
                           flush_ == Flush::never ? "fsync=off" : "fsync=on", "-c", "shared_buffers=16MB"},
                          folder_ + "/log");
  // The server is a separate process, so the test polls until it is ready.
  for (int attempt = 0; attempt < 3000; ++attempt) {
    if (succeeds(programs() + "/pg_isready", {"-q", "-h", folder_, "-U", "perseus", "-d", "postgres"}, "/dev/null"))
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  PERSEUS_CHECK(false, (folder_ + "/log: the server does not start").c_str());
}

void PostgresServer::stop() {
  PERSEUS_CHECK(server_ > 0, "the server does not run, and kill(-1) would end every process");
  ::kill(server_, SIGINT);  // "fast" shutdown: disconnects clients, and completes in order
  ::waitpid(server_, nullptr, 0);
  server_ = -1;
}

std::string PostgresServer::new_database() {
  const std::string name = fmt::format("test{}", ++databases_);
  PERSEUS_CHECK(succeeds(programs() + "/createdb", {"-h", folder_, "-U", "perseus", name}, folder_ + "/log"),
                "createdb");
  return fmt::format("host={} user=perseus dbname={}", folder_, name);
}

}  // namespace perseus::testing
