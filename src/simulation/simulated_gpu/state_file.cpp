#include "simulation/simulated_gpu/state_file.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <limits>

#include "base/owned_fd.h"

namespace perseus::simulated_gpu {

struct Content {
  std::uint64_t magic;
  std::uint32_t version, size;
  std::uint64_t spec_hash;
  Spec spec;
  std::atomic<std::uint32_t> in_force;  ///< which of the two states
  std::atomic<std::uint32_t> changes;
  std::array<State, 2> states;
  Marks marks;
  pthread_mutex_t mutex;
};

namespace {

constexpr std::uint64_t kMagic = 0x5550475345535250;  // "PRSESGPU"
constexpr std::uint32_t kVersion = 2;

double monotonic_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// FNV-1a: detects a damaged specification, not a forged one.
std::uint64_t hash_of(const Spec& spec) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&spec);
  for (std::size_t i = 0; i < sizeof spec; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

Error failed(ErrorCode code, const std::string& path, int number) {
  return {code, fmt::format("{}: {}", path, std::strerror(number))};
}

Error no_gpu(const std::string& path, const std::string& why) {
  return {ErrorCode::invalid_input, fmt::format("{}: not the state file of a simulated GPU: {}", path, why)};
}

Result<Content*> map(int fd, const std::string& path) {
  void* memory = mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return failed(ErrorCode::unavailable, path, errno);
  return static_cast<Content*>(memory);
}

void make_mutex(pthread_mutex_t& mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

}  // namespace

std::string check_content(std::span<const std::byte> bytes, double now_s) {
  if (bytes.size() != sizeof(Content)) return fmt::format("it has {} bytes, not {}", bytes.size(), sizeof(Content));
  const auto& content = *reinterpret_cast<const Content*>(bytes.data());
  if (content.magic != kMagic) return "it does not begin with the magic number";
  if (content.version != kVersion || content.size != sizeof(Content)) {
    return fmt::format("it is of version {}, this program's is {}", content.version, kVersion);
  }
  if (std::string why = check(content.spec); !why.empty()) return why;
  if (content.spec_hash != hash_of(content.spec)) return "its specification is damaged";
  const std::uint32_t in_force = content.in_force;
  if (in_force > 1) return "its index of the valid state is wrong";
  if (std::string why = check(content.spec, content.states[in_force]); !why.empty()) return why;
  if (content.states[in_force].now_s > now_s) {
    return "its time is in the future: it was created before this machine's last start; create it again";
  }
  return {};
}

StateFile::StateFile(std::string path, Content& content, TimeSource now, bool real_time)
    : path_(std::move(path)), content_(content), now_(std::move(now)), real_time_(real_time) {}

StateFile::~StateFile() { munmap(&content_, sizeof(Content)); }

Result<std::unique_ptr<StateFile>> StateFile::create(const std::string& path, Spec spec, double limit_w,
                                                     TimeSource now) {
  const bool real_time = !now;
  if (real_time) now = monotonic_s;
  spec.made_s = now();
  if (const std::string why = check(spec); !why.empty()) {
    return Error{ErrorCode::invalid_input, fmt::format("a simulated GPU cannot be made of this: {}", why)};
  }
  const std::string unfinished = fmt::format("{}.{}.new", path, getpid());
  const OwnedFd file(open(unfinished.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) return failed(ErrorCode::cannot_write, path, errno);
  // Reserved now: a full disk is an error here instead of a SIGBUS later.
  const int reserved = posix_fallocate(file.get(), 0, sizeof(Content));
  if (reserved != 0) {
    unlink(unfinished.c_str());
    return failed(ErrorCode::cannot_write, path, reserved);
  }
  const Result<Content*> mapped = map(file.get(), path);
  if (!mapped) {
    unlink(unfinished.c_str());
    return mapped.error();
  }
  Content& content = **mapped;
  content.version = kVersion;
  content.size = sizeof(Content);
  content.spec = spec;
  content.spec_hash = hash_of(content.spec);
  content.states[0] = initial_state(spec, limit_w, content.marks);
  make_mutex(content.mutex);
  content.magic = kMagic;
  std::unique_ptr<StateFile> made(new StateFile(path, content, std::move(now), real_time));
  if (rename(unfinished.c_str(), path.c_str()) != 0) {
    const int why = errno;
    unlink(unfinished.c_str());
    return failed(ErrorCode::cannot_write, path, why);
  }
  return made;
}

Result<std::unique_ptr<StateFile>> StateFile::attach(const std::string& path, TimeSource now) {
  const bool real_time = !now;
  if (real_time) now = monotonic_s;
  const OwnedFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid()) return failed(ErrorCode::not_found, path, errno);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return failed(ErrorCode::not_found, path, errno);
  if (!S_ISREG(status.st_mode)) return no_gpu(path, "it is no regular file");
  if (status.st_size != sizeof(Content)) {
    return no_gpu(path, fmt::format("it has {} bytes, not {}", status.st_size, sizeof(Content)));
  }
  const Result<Content*> mapped = map(file.get(), path);
  if (!mapped) return mapped.error();
  std::unique_ptr<StateFile> file_of_gpu(new StateFile(path, **mapped, std::move(now), real_time));
  // A read may overlap with the work of another process on the other state; two changes during one read are unlikely,
  // so read again before refusing.
  std::string why;
  for (int look = 0; look < 3; ++look) {
    why = check_content({reinterpret_cast<const std::byte*>(*mapped), sizeof(Content)}, file_of_gpu->now_() + 60);
    if (why.empty()) return file_of_gpu;
  }
  return no_gpu(path, why);
}

const Spec& StateFile::spec() const { return content_.spec; }

StateFile::Transaction::Transaction(StateFile& file) : file_(file) {
  Content& content = file.content_;
  const int locked = pthread_mutex_lock(&content.mutex);
  if (locked == EOWNERDEAD) {
    pthread_mutex_consistent(&content.mutex);
  } else {
    PERSEUS_CHECK(locked == 0, std::strerror(locked));
  }
  const std::uint32_t in_force = content.in_force.load(std::memory_order_relaxed);
  content.states[1 - in_force] = content.states[in_force];
  advance(content.spec, content.states[1 - in_force], content.marks, file.now_());
}

StateFile::Transaction::~Transaction() { pthread_mutex_unlock(&file_.content_.mutex); }

State& StateFile::Transaction::state() const {
  return file_.content_.states[1 - file_.content_.in_force.load(std::memory_order_relaxed)];
}

Marks& StateFile::Transaction::marks() const { return file_.content_.marks; }

void StateFile::Transaction::commit() const {
  std::atomic<std::uint32_t>& in_force = file_.content_.in_force;
  in_force.store(1 - in_force.load(std::memory_order_relaxed), std::memory_order_release);
}

const State& StateFile::last() const { return content_.states[content_.in_force.load(std::memory_order_acquire)]; }

std::uint32_t StateFile::changes() const { return content_.changes.load(); }

void StateFile::tell_change() {
  ++content_.changes;
  syscall(SYS_futex, &content_.changes, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

void StateFile::wait_change(std::uint32_t seen, double at_most_s) const {
  timespec limit{};
  const double whole = std::floor(at_most_s);
  limit.tv_sec = static_cast<time_t>(whole);
  limit.tv_nsec = static_cast<long>((at_most_s - whole) * 1e9);
  syscall(SYS_futex, &content_.changes, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

}  // namespace perseus::simulated_gpu
