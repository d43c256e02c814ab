#include "training/clock_control/lease.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include "base/owned_fd.h"
#include "training/clock_control/mailbox.h"
#include "training/clock_control/process_state.h"
#include "training/device/ceiling_gpu.h"

namespace perseus::clock_control {
namespace {

constexpr std::string_view kPrefix = "clock-lease-";
constexpr std::string_view kHeader = "perseus clock lease\n";

void sleep_ms(long ms) {
  const timespec time{ms / 1000, ms % 1000 * 1'000'000};
  ::nanosleep(&time, nullptr);
}

std::string text_of_holder(const device::GpuIdentity& gpu, const std::string& path, const std::string& pid) {
  return fmt::format("the clock of {} is another perseus-clockd's{}{} (lease {})", gpu.uuid,
                     pid.empty() ? "" : ", process ", pid, path);
}

const char* given_folder() {
  const char* const given = ::secure_getenv("PERSEUS_RUNTIME_DIR");
  return given != nullptr && *given != 0 ? given : nullptr;
}

/// Empty if the folder belongs to this user alone: no other user can have put a file or a link there.
std::string why_unusable(const std::string& folder) {
  struct stat about {};
  if (!folder.starts_with('/')) return "not an absolute path";
  if (::lstat(folder.c_str(), &about) != 0) return std::strerror(errno);
  if (!S_ISDIR(about.st_mode)) return "not a folder";
  if (about.st_uid != ::geteuid()) return fmt::format("it belongs to user {}", about.st_uid);
  return (about.st_mode & (S_IWGRP | S_IWOTH)) == 0 ? "" : "other users can write to it";
}

bool usable(const std::string& folder) { return why_unusable(folder).empty(); }

std::string boot_id() {
  std::string id = kernel_text("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id.empty() ? "unknown" : id;
}

std::string file_name_of(const device::GpuIdentity& gpu) {
  std::string name(kPrefix);
  for (const char c : device::stable_id(gpu)) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
    name += plain ? c : '_';
  }
  return name.substr(0, 200);
}

/// Takes the flock, waiting at most that long; false: another process has it.
bool hold(int fd, double wait_s, int how = LOCK_EX) {
  const std::int64_t until = monotonic_ns() + static_cast<std::int64_t>(wait_s * 1e9);
  while (::flock(fd, how | LOCK_NB) != 0) {
    if (monotonic_ns() >= until) return false;
    sleep_ms(2);
  }
  return true;
}

std::string content(int fd) {
  std::string text(4096 + 256, '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::string value_of(const std::string& record, std::string_view key) {
  std::size_t at = 0;
  while (at < record.size()) {
    const std::size_t end = std::min(record.find('\n', at), record.size());
    const std::string_view line(record.data() + at, end - at);
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return std::string(line.substr(key.size() + 1));
    }
    at = end + 1;
  }
  return {};
}

/// A record's locked GPU.
struct LockedGpu {
  std::string selector;
  std::string uuid;   ///< empty: a record from before leases had it
  Megahertz ceiling;  ///< of an administrator; 0: none
};

/// True if the text is neither empty nor a record: damaged, or another file.
bool is_no_record(const std::string& text) {
  if (text.empty()) return false;
  const bool of_this_boot = value_of(text, "boot") == boot_id();
  return !text.starts_with(kHeader) || value_of(text, "boot").empty() ||
         (of_this_boot && value_of(text, "gpu").empty());
}

/// Nullopt if the lock ended with the boot, or there is no record.
std::optional<LockedGpu> locked_gpu(const std::string& record) {
  if (value_of(record, "boot") != boot_id()) return std::nullopt;
  LockedGpu locked{value_of(record, "gpu"), value_of(record, "uuid"),
                   Megahertz(std::atoi(value_of(record, "ceiling").c_str()))};
  if (locked.selector.empty()) return std::nullopt;
  return locked;
}

std::string_view file_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// What to do about a file that cannot be used as a lease; nothing for one that has another name.
std::string by_hand(std::string_view path) {
  if (!file_part(path).starts_with(kPrefix)) return {};
  const std::string_view id = file_part(path).substr(kPrefix.size());
  return fmt::format("; if a clock is locked, nvidia-smi -rgc{} gives it back; then delete the file",
                     id.starts_with("GPU-") ? fmt::format(" -i {}", id) : "");
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISLNK(mode)) return "a symbolic link";
  return S_ISFIFO(mode) ? "a FIFO" : "a device or socket";
}

/// Older records name the GPU by the index that it had in the holder's container; the file's name has the UUID.
void name_by_uuid(LockedGpu& locked, std::string_view path) {
  if (const auto which = device::split_selector(locked.selector).which;
      locked.uuid.empty() && which.starts_with("GPU-"))
    locked.uuid = which;
  if (!file_part(path).starts_with(kPrefix)) return;
  const std::string_view id = file_part(path).substr(kPrefix.size());
  const std::string_view kind = device::split_selector(locked.selector).kind;
  if (locked.uuid.empty() && (kind == "nvml" || kind == "zeusd") && id.starts_with("GPU-")) {
    locked.selector = fmt::format("{}:{}", kind, id);
  }
}

/// Repeats a call that fails: for a second while the device is busy, else for 0.13 s, since any failure may be the
/// driver's only one.
template <class Call>
auto patiently(const Call& call) {
  auto done = call();
  const auto longest_ms = [&done] { return done.error().fault == device::DeviceFault::busy ? 512 : 64; };
  for (long pause_ms = 1; !done && pause_ms <= longest_ms(); pause_ms *= 2) {
    sleep_ms(pause_ms);
    done = call();
  }
  return done;
}

/// Calls `set` for the GPU of that record, and no other; does nothing if there is no record.
device::DeviceStatus free_locked(const std::string& record, const std::string& path, const OpenGpu& open,
                                 const std::function<device::DeviceStatus(device::Gpu&)>& set) {
  std::optional<LockedGpu> locked = locked_gpu(record);
  if (!locked) return Ok{};
  name_by_uuid(*locked, path);
  const auto kept = [&](const device::DeviceError& error, std::string_view advice) {
    return device::DeviceError{error.fault, fmt::format("{} may still be locked, the lease {} is kept: {}{}",
                                                        locked->selector, path, error.message, advice)};
  };
  const auto still_locked = [&](const device::DeviceError& error) {
    return kept(error, error.fault == device::DeviceFault::no_permission
                           ? "; run perseus-clockd --restore as root, or give it CAP_SYS_ADMIN"
                           : "; run perseus-clockd --restore again where that GPU answers; if it has left the machine, "
                             "delete the file");
  };
  if (locked->uuid.empty() && file_part(path) == kPrefix) {
    return kept({device::DeviceFault::lost, "it names no GPU, since the GPU was lost when its holder started"},
                by_hand(path));
  }
  auto gpu = patiently([&] { return open(locked->selector); });
  if (!gpu) return still_locked(gpu.error());
  const device::GpuIdentity& found = (*gpu)->identity();
  const bool same = locked->uuid.empty() ? file_name_of(found) == file_part(path)
                                         : found.uuid == locked->uuid || found.pci_bus_id == locked->uuid;
  if (!same) {
    return still_locked({device::DeviceFault::lost,
                         fmt::format("{} is another GPU here: {}", locked->selector, device::stable_id(found))});
  }
  const auto limited = device::with_ceiling(std::move(*gpu), locked->ceiling);
  if (device::DeviceStatus done = set(*limited); !done) return still_locked(done.error());
  return Ok{};
}

}  // namespace

std::vector<std::string> lease_directories() {
  if (const char* given = given_folder(); given != nullptr) return {given};
  std::vector<std::string> folders;
  if (::geteuid() == 0) folders.emplace_back("/run/perseus");
  folders.push_back(fmt::format("/tmp/perseus-{}", ::geteuid()));
  folders.push_back(fmt::format("/dev/shm/perseus-{}", ::geteuid()));
  return folders;
}

device::DeviceResult<Lease> Lease::take(const device::GpuIdentity& gpu, const std::string& selector, double wait_s,
                                        Megahertz ceiling) {
  if (device::stable_id(gpu).empty()) {
    return device::DeviceError{
        device::DeviceFault::lost,
        fmt::format("{} has neither a UUID nor a PCI bus id at the moment, so no lease can name it", selector)};
  }
  Lease lease;
  lease.selector_ = device::stable_selector(gpu, selector);
  lease.uuid_ = device::stable_id(gpu);
  lease.ceiling_ = ceiling;
  std::vector<std::string> tried;
  for (const std::string& folder : lease_directories()) {
    const std::string path = folder + "/" + file_name_of(gpu);
    if (folder.starts_with('/')) ::mkdir(folder.c_str(), 0700);
    std::string why = why_unusable(folder);
    if (why.empty()) {
      lease.fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
      why = std::strerror(errno);
    }
    if (lease.fd_ >= 0) {
      lease.path_ = path;
      break;
    }
    tried.push_back(fmt::format("{} ({})", folder, why));
  }
  if (lease.fd_ < 0) {
    return device::DeviceError{
        device::DeviceFault::no_permission,
        fmt::format("no folder for the lease on the clock of {}: {}{}", lease.uuid_,
                    given_folder() == nullptr ? "" : "PERSEUS_RUNTIME_DIR=", fmt::join(tried, ", "))};
  }
  if (!hold(lease.fd_, wait_s)) {
    return device::DeviceError{device::DeviceFault::busy,
                               text_of_holder(gpu, lease.path_, value_of(content(lease.fd_), "pid"))};
  }
  // A damaged record of this GPU may have recorded a lock.
  const std::string record = content(lease.fd_);
  const bool locked = locked_gpu(record).has_value();
  lease.recorded_ = locked || is_no_record(record);
  if (locked) (void)lease.write();
  if (!lease.recorded_) lease.clear();
  return lease;
}

Lease::Lease(Lease&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      selector_(std::move(other.selector_)),
      uuid_(std::move(other.uuid_)),
      ceiling_(other.ceiling_),
      recorded_(other.recorded_) {}

Lease::~Lease() {
  if (fd_ >= 0) ::close(fd_);
}

bool Lease::write() const {
  const std::string text =
      fmt::format("perseus clock lease\nboot {}\ngpu {}\nuuid {}\n{}pid {}\n", boot_id(), selector_, uuid_,
                  ceiling_.value() > 0 ? fmt::format("ceiling {}\n", ceiling_.value()) : "", ::getpid());
  // One call: a process killed in it has written all or nothing. The end of a longer record has no key.
  if (::pwrite(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return false;
  return ::ftruncate(fd_, static_cast<off_t>(text.size())) == 0;
}

device::DeviceStatus Lease::record() {
  if (recorded_) return Ok{};
  if (!write()) {
    const std::string why = std::strerror(errno);
    clear();
    return device::DeviceError{device::DeviceFault::no_permission,
                               fmt::format("cannot write the lease {}: {}", path_, why)};
  }
  recorded_ = true;
  return Ok{};
}

void Lease::clear() {
  if (::ftruncate(fd_, 0) == 0) recorded_ = false;
}

device::DeviceStatus unlock_patiently(device::Gpu& gpu) {
  return patiently([&gpu] { return gpu.unlock_clock(); });
}

device::DeviceStatus give_back_patiently(device::Gpu& gpu, Lease& lease) {
  if (device::DeviceStatus unlocked = unlock_patiently(gpu); !unlocked) return unlocked;
  lease.clear();
  return Ok{};
}

device::DeviceStatus limit_patiently(device::Gpu& gpu, Megahertz ceiling) {
  Megahertz lowest = ceiling, highest = ceiling;
  if (const auto clocks = gpu.supported_clocks(); clocks && !clocks->empty()) {
    lowest = clocks->back();
    highest = device::highest_within(*clocks, ceiling);
  }
  return patiently([&] {
    device::DeviceStatus limited = gpu.limit_clock(lowest, highest);
    const bool no_range = !limited && limited.error().fault == device::DeviceFault::not_supported;
    return no_range ? gpu.lock_clock(highest) : limited;
  });
}

device::DeviceResult<Lease> Lease::take_over(const std::string& path, double wait_s, int how) {
  Lease lease;
  lease.path_ = path;
  const auto cannot = [&path](const std::string& why) {
    return device::DeviceError{device::DeviceFault::no_permission, fmt::format("{}: {}", path, why)};
  };
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0) return cannot(std::strerror(errno));
  if (!S_ISREG(about.st_mode)) {
    return cannot(fmt::format("{}, not a file; left as it is{}", kind_of(about.st_mode), by_hand(path)));
  }
  lease.fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (lease.fd_ < 0 || ::fstat(lease.fd_, &about) != 0) return cannot(std::strerror(errno));
  if (!S_ISREG(about.st_mode)) return cannot("not a file");
  if (about.st_uid != ::geteuid())
    return cannot(fmt::format("it belongs to user {0}; run perseus-clockd --restore as user {0}", about.st_uid));
  if (!hold(lease.fd_, wait_s, how)) {
    return device::DeviceError{device::DeviceFault::busy, fmt::format("{}: its holder lives (process {})", path,
                                                                      value_of(content(lease.fd_), "pid"))};
  }
  if (is_no_record(content(lease.fd_))) {
    return cannot("not a lease of perseus-clockd, or a damaged one; left as it is" + by_hand(path));
  }
  return lease;
}

device::DeviceStatus Lease::restore(const OpenGpu& open) {
  if (device::DeviceStatus unlocked = free_locked(content(fd_), path_, open, unlock_patiently); !unlocked) {
    return unlocked;
  }
  clear();
  return Ok{};
}

device::DeviceStatus restore_lease(const std::string& path, double wait_s, const OpenGpu& open) {
  auto lease = Lease::take_over(path, wait_s, LOCK_EX);
  return lease ? lease->restore(open) : lease.error();
}

device::DeviceStatus keep_ceiling(const std::string& path, double wait_s, Megahertz ceiling, const OpenGpu& open) {
  const auto lease = Lease::take_over(path, wait_s, LOCK_EX);
  if (!lease) return lease.error();
  return free_locked(content(lease->fd_), path, open,
                     [ceiling](device::Gpu& gpu) { return limit_patiently(gpu, ceiling); });
}

std::string clock_holder(const device::GpuIdentity& gpu, bool dead_too) {
  for (const std::string& folder : lease_directories()) {
    Lease lease;
    lease.path_ = folder + "/" + file_name_of(gpu);
    if (usable(folder)) lease.fd_ = ::open(lease.path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (lease.fd_ < 0) continue;
    const std::string record = content(lease.fd_);
    // Shared: a process that wants the lease at this moment waits briefly, and two readers both get it.
    const bool held = ::flock(lease.fd_, LOCK_SH | LOCK_NB) != 0;
    if (!locked_gpu(record)) continue;
    if (held) return text_of_holder(gpu, lease.path_, value_of(record, "pid"));
    if (dead_too) return fmt::format("of a process that has ended (lease {})", lease.path_);
  }
  return {};
}

namespace {

/// Sorted; none where the folder cannot be read.
std::vector<std::string> names_in(const std::string& folder, std::string_view prefix) {
  std::vector<std::string> names;
  DIR* const entries = ::opendir(folder.c_str());
  if (entries == nullptr) return names;
  while (const dirent* entry = ::readdir(entries)) {
    if (std::string_view(entry->d_name).starts_with(prefix)) names.emplace_back(entry->d_name);
  }
  ::closedir(entries);
  std::ranges::sort(names);
  return names;
}

/// Leases that are not empty, by name, and what else has the name of one; folders that cannot be used go to `unusable`,
/// in words.
std::vector<std::string> lease_files(const std::function<void(const std::string& folder, std::string why)>& unusable) {
  std::vector<std::string> paths;
  for (const std::string& folder : lease_directories()) {
    struct stat about {};
    const bool there = ::lstat(folder.c_str(), &about) == 0 || !folder.starts_with('/');
    // Another user may have made one of the usual folders: it has no leases of this user.
    const bool own = given_folder() != nullptr || about.st_uid == ::geteuid();
    if (const std::string why = why_unusable(folder); !why.empty()) {
      if (there && own) unusable(folder, fmt::format("the leases of this folder are not used: {}", why));
      continue;
    }
    for (const std::string& name : names_in(folder, kPrefix)) {
      std::string path = fmt::format("{}/{}", folder, name);
      const bool there_still = ::lstat(path.c_str(), &about) == 0;
      if (there_still && (!S_ISREG(about.st_mode) || about.st_size > 0)) paths.push_back(std::move(path));
    }
  }
  return paths;
}

}  // namespace

std::string why_no_lease_folder() {
  const char* const given = given_folder();
  const std::string why = given == nullptr ? "" : why_unusable(given);
  return why.empty() ? ""
                     : fmt::format(
                           "PERSEUS_RUNTIME_DIR: '{}': {}; allowed: the absolute path of a folder to which only "
                           "its owner, this user, can write",
                           given, why);
}

std::vector<std::string> expired_leases() {
  std::vector<std::string> lines;
  const auto files = lease_files([&](const auto& folder, const auto& why) { lines.push_back(folder + ": " + why); });
  for (const std::string& path : files) {
    // Shared: see clock_holder().
    const auto lease = Lease::take_over(path, 0, LOCK_SH);
    if (!lease) {
      if (lease.error().fault != device::DeviceFault::busy) lines.push_back(lease.error().message);
    } else if (const auto locked = locked_gpu(content(lease->fd_))) {
      lines.push_back(
          fmt::format("{}: the process that locked the clock of {} has ended; perseus-clockd --restore gives "
                      "it back",
                      path, locked->uuid.empty() ? locked->selector : locked->uuid));
    }
  }
  return lines;
}

std::vector<std::string> expired_leases_of_others() {
  std::vector<std::string> paths;
  if (::geteuid() != 0 || given_folder() != nullptr) return paths;
  for (const std::string parent : {"/tmp/", "/dev/shm/"}) {
    for (const std::string& folder : names_in(parent, "perseus-")) {
      if (usable(parent + folder)) continue;  // root's
      for (const std::string& name : names_in(parent + folder, kPrefix)) {
        const std::string path = fmt::format("{}{}/{}", parent, folder, name);
        const OwnedFd lease(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
        const bool plain = std::ranges::all_of(path, [](char c) { return c > ' ' && c < 0x7F; });
        if (plain && lease.valid() && hold(lease.get(), 0, LOCK_SH) && locked_gpu(content(lease.get())))
          paths.push_back(path +
                          ": of another user's process, which has ended; that user's perseus-clockd --restore "
                          "gives the clock back");
      }
    }
  }
  return paths;
}

std::vector<ExpiredLease> restore_expired_leases(const OpenGpu& open, const std::string& except) {
  std::vector<ExpiredLease> expired;
  const auto cannot = [](std::string why) { return device::DeviceError{device::DeviceFault::no_permission, why}; };
  const auto files = lease_files([&](const auto& folder, const auto& why) {
    expired.push_back({folder, cannot(folder + ": " + why)});
  });
  for (const std::string& path : files) {
    if (path == except) continue;
    auto lease = Lease::take_over(path, 0, LOCK_EX);
    if (!lease) {
      if (lease.error().fault != device::DeviceFault::busy) expired.push_back({path, lease.error()});
      continue;
    }
    const std::string record = content(lease->fd_);
    if (!record.empty()) expired.push_back({path, lease->restore(open), !locked_gpu(record)});
  }
  return expired;
}

std::string text_of(const ExpiredLease& lease) {
  if (!lease.restored) return lease.restored.error().message;
  return fmt::format(
      "{}: {}", lease.path,
      lease.of_earlier_boot ? "of an earlier boot, which ended every lock: emptied" : "the clock is given back");
}

}  // namespace perseus::clock_control
