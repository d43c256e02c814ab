// perseus-clockd: the small program that may change a GPU's clock, so that a training process need not.
#include <sys/auxv.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "clock_control/helper_process.h"
#include "clock_control/lease.h"

namespace {

constexpr const char* kHelp =
    R"(perseus-clockd sets a GPU's clock for a training process, and gives it back when that process or itself ends.

The Perseus client starts it, one per GPU, with a mailbox in shared memory; it is of no use without one.

usage: perseus-clockd --restore [LEASE]
         Unlocks GPUs whose clock was left locked because the training process and its helper were all killed at once
         (the whole container or job step): those of this machine's expired leases, or of that one. It touches no
         other GPU and none that is in use. For a job's epilog; the next helper that starts does the same.
       perseus-clockd --help | --version

Setting clocks needs root or CAP_SYS_ADMIN:  setcap cap_sys_admin+ep perseus-clockd
Run so, it takes nothing from the environment. Leases are kept in $PERSEUS_RUNTIME_DIR if that is set, else in
/run/perseus (root) or /tmp/perseus-UID.

Exit codes: 0 done; 64 wrong usage; 69 a clock could not be given back.
)";

int restore_all() {
  bool all = true;
  for (const auto& [path, restored] : perseus::restore_expired_leases()) {
    all &= restored.ok();
    std::printf("%s: %s\n", path.c_str(),
                restored ? "the clock is given back" : restored.error().message.c_str());
  }
  return all ? 0 : 69;
}

int restore_one(const std::string& path) {
  const auto restored = perseus::restore_lease(path, 5);
  if (!restored) std::fprintf(stderr, "perseus-clockd: %s\n", restored.error().message.c_str());
  return restored ? 0 : 69;
}

}  // namespace

int main(int argc, char** argv) {
  // With more rights than its caller (setcap), what the caller's environment says (which library is NVML, where the
  // daemon's socket is) would be the caller's code run with our rights.
  if (::getauxval(AT_SECURE) != 0) ::clearenv();

  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "--help" || command == "-h") return std::fputs(kHelp, stdout), 0;
  if (command == "--version") return std::puts("perseus-clockd " PERSEUS_VERSION), 0;
  if (command == "--restore" && argc == 2) return restore_all();
  if (command == "--restore" && argc == 3) return restore_one(argv[2]);
  if (command == "--device" && argc == 3 && perseus::helper_fds_given()) perseus::run_helper(argv[2]);
  std::fputs(
      "perseus-clockd: no mailbox: the Perseus client starts this program and passes one on (see perseus-clockd "
      "--help)\n",
      stderr);
  return 64;
}
