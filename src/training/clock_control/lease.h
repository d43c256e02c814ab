// The lease on a GPU's clock: the holder of a lock must unlock, and a file records that for when every holder is
// dead.
//
// A locked clock outlives the process that locked it, and the driver has no getter for it. So the holder writes a
// record before the first lock, and empties the file only after unlocking succeeded on that GPU. A record whose
// holder is dead is an expired lease.
//
// Input:   a GPU's identity and selector. The record names the GPU by UUID (else PCI bus id), since an index means
//          another GPU in another container. Older records, by index, are found by the file's name.
// Output:  a file per GPU in lease_directories(), empty while nothing is locked. Its flock lasts as long as the
//          holder: the kernel drops it with the process. A record of another boot is void, since no lock survives a
//          boot. A driver that was reloaded also drops its locks, but nothing reports that reliably, so such a record
//          stays until a reset succeeds.
// Errors:  DeviceError busy (another process holds it), no_permission (no directory for the file), lost (the GPU has
//          neither UUID nor bus id at the moment); any fault that prevented the unlocking (no library, no driver, GPU
//          lost, not visible here, another GPU by that name): the record stays.
// Cost:    file calls where the clock goes from unlocked to locked and back, none per clock.
// Source:  docs/decisions/0016-clock-lease.md, docs/decisions/0027-node-daemon-and-leases-by-uuid.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "training/device/gpu.h"
#include "training/device/open_gpu.h"

namespace perseus::clock_control {

/// Directories of leases: new ones go into the first usable one; expired ones are searched in all.
/// $PERSEUS_RUNTIME_DIR alone if set; else for root /run/perseus, then /tmp/perseus-UID, /dev/shm/perseus-UID. Not
/// $XDG_RUNTIME_DIR, which disappears when the user logs out, while jobs continue. A program with capabilities of its
/// own (setcap) ignores the environment. A directory that another user owns or may write to is not used, nor is a
/// relative path.
std::vector<std::string> lease_directories();

using OpenGpu = std::function<device::DeviceResult<std::unique_ptr<device::Gpu>>(const std::string& selector)>;

struct ExpiredLease {
  std::string path;
  device::DeviceStatus restored;
  bool of_earlier_boot = false;  ///< nothing was locked any more
};
/// One line for people, with what to do where it was not restored.
std::string text_of(const ExpiredLease& lease);

class Lease {
 public:
  /// Waits for another holder to end, at most that long; a record that it left names this process from now on.
  /// `ceiling`: see training/device/ceiling_gpu.h; 0: none.
  static device::DeviceResult<Lease> take(const device::GpuIdentity& gpu, const std::string& selector, double wait_s,
                                          Megahertz ceiling = Megahertz(0));
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&&) = delete;
  ~Lease();  ///< keeps a record

  /// A record exists: the clock is, or may be, locked by us, or by a holder that died.
  [[nodiscard]] bool recorded() const { return recorded_; }
  device::DeviceStatus record();  ///< call before locking
  void clear();                   ///< call after unlocking
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  /// Of a dead holder; held from now on. `how`: of flock().
  static device::DeviceResult<Lease> take_over(const std::string& path, double wait_s, int how);
  friend device::DeviceStatus restore_lease(const std::string& path, double wait_s, const OpenGpu& open);
  friend device::DeviceStatus keep_ceiling(const std::string& path, double wait_s, Megahertz ceiling,
                                           const OpenGpu& open);
  friend std::string clock_holder(const device::GpuIdentity& gpu, bool dead_too);
  friend std::vector<std::string> expired_leases();
  friend std::vector<ExpiredLease> restore_expired_leases(const OpenGpu& open, const std::string& except);
  Lease() = default;
  bool write() const;  ///< a record of this process
  device::DeviceStatus restore(const OpenGpu& open);
  int fd_ = -1;
  std::string path_, selector_, uuid_;
  Megahertz ceiling_;
  bool recorded_ = false;
};

/// Unlocks the GPU; repeats a failed call for a second while the GPU is busy, after any other fault for 0.13 s.
device::DeviceStatus unlock_patiently(device::Gpu& gpu);

/// Unlocks, and empties the lease.
device::DeviceStatus give_back_patiently(device::Gpu& gpu, Lease& lease);

/// The driver chooses from the lowest clock to the highest one at or below `ceiling`; retries like unlock_patiently().
/// Locks the ceiling where the device takes no range.
device::DeviceStatus limit_patiently(device::Gpu& gpu, Megahertz ceiling);

/// If that file has a record and its holder is dead (waits for that at most that long): unlocks the GPU and empties
/// the file.
device::DeviceStatus restore_lease(const std::string& path, double wait_s, const OpenGpu& open = device::open_gpu);

/// The same, but the GPU is limited to the highest clock at or below `ceiling`, and the record stays: for a training
/// process that lives and has lost its helper under a power budget.
device::DeviceStatus keep_ceiling(const std::string& path, double wait_s, Megahertz ceiling,
                                  const OpenGpu& open = device::open_gpu);

/// The holder of that GPU's lease, in words; empty: no holder, or nothing is locked. `dead_too`: also one that has
/// ended.
std::string clock_holder(const device::GpuIdentity& gpu, bool dead_too = false);

/// Why leases cannot be kept in $PERSEUS_RUNTIME_DIR; empty: they can, or it is not set.
std::string why_no_lease_folder();

/// Expired leases and the files that cannot be used as leases, each in a line with what to do. Changes nothing.
std::vector<std::string> expired_leases();

/// For root: those in the usual folders of other users, in lines. Root restores none of them, since a user could have
/// it unlock any GPU.
std::vector<std::string> expired_leases_of_others();

/// Restores all expired leases of lease_directories(); held or empty ones, and `except`, stay unchanged and are not
/// listed. A folder that cannot be used is listed.
std::vector<ExpiredLease> restore_expired_leases(const OpenGpu& open = device::open_gpu,
                                                 const std::string& except = {});

}  // namespace perseus::clock_control
