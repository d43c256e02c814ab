// perseus-clockd: the small program that may change a GPU's clock, so that a training process need not.
#include <sys/auxv.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clock_control/clock_daemon.h"
#include "clock_control/daemon_protocol.h"
#include "clock_control/helper_process.h"
#include "clock_control/lease.h"

namespace {

constexpr const char* kHelp =
    R"(perseus-clockd sets a GPU's clock for a training process, and gives it back when that process or itself ends.

usage: perseus-clockd --daemon [--socket PATH] [--mode OCTAL] [--group NAME] [--ceiling MHZ]
         Serve the training processes of this node, containers included, until SIGTERM. One per node, outside of
         containers. A container must see PATH; default: /run/perseus/clockd.sock. Any local user may ask (--mode 0666);
         a client gets a GPU if it can open the GPU's device node and no other client holds it.
       perseus-clockd --restore [LEASE [SECONDS]]
         Unlock GPUs whose clock was left locked because the training process and its helper were all killed at once
         (the whole container or job step): those of this machine's expired leases, or of that one when its holder has
         ended (default: within 5 s). It touches no other GPU and none that is in use. For a job's epilog; the next
         helper that starts does the same. A lease is kept until a reset succeeded on its GPU.
       perseus-clockd --help | --version

Without a daemon the Perseus client starts perseus-clockd itself, one per GPU, with a mailbox in shared memory.

--ceiling MHZ: a limit that an administrator has set. No clock above it is locked, and giving a clock back locks
[lowest, MHZ] again. NVML has no getter for such limits. Clients: PERSEUS_CEILING_MHZ.

Setting clocks needs root or CAP_SYS_ADMIN:  setcap cap_sys_admin+ep perseus-clockd
Run so, it takes nothing from the environment. Leases are kept in $PERSEUS_RUNTIME_DIR if that is set, else in
/run/perseus (root) or /tmp/perseus-UID.

Exit codes: 0 done; 64 wrong usage; 69 a clock could not be given back, or the daemon cannot listen.
)";

int restore_all() {
  bool all = true;
  for (const auto& [path, restored] : perseus::restore_expired_leases()) {
    all &= restored.ok();
    std::printf("%s: %s\n", path.c_str(), restored ? "the clock is given back" : restored.error().message.c_str());
  }
  return all ? 0 : 69;
}

int restore_one(const std::string& path, double wait_s) {
  const auto restored = perseus::restore_lease(path, wait_s);
  if (!restored) std::fprintf(stderr, "perseus-clockd: %s\n", restored.error().message.c_str());
  return restored ? 0 : 69;
}

/// A whole number within [0, most] in that base; nothing: it is none.
std::optional<long> number(const std::string& text, int base, long most) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, base);
  if (text.empty() || *end != 0 || value < 0 || value > most) return std::nullopt;
  return value;
}

int wrong(const std::string& what) {
  std::fprintf(stderr, "perseus-clockd: %s (see perseus-clockd --help)\n", what.c_str());
  return 64;
}

int serve(std::vector<std::string> arguments) {
  perseus::DaemonOptions options;
  options.socket = perseus::kDaemonSocket;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    std::string& name = arguments[i];
    if (i + 1 == arguments.size()) return wrong(name + " has no value");
    const std::string& value = arguments[i + 1];
    const auto mode = number(value, 8, 0777), ceiling = number(value, 10, 65535);
    if (name == "--socket") {
      options.socket = value;
    } else if (name == "--group") {
      options.group = value;
    } else if (name == "--mode" && mode) {
      options.mode = static_cast<mode_t>(*mode);
    } else if (name == "--ceiling" && ceiling) {
      options.ceiling = perseus::Megahertz(static_cast<int>(*ceiling));
    } else {
      return wrong("wrong option: " +
                   name.append(" ").append(value).append(
                       "; allowed: --socket PATH, --mode OCTAL up to 0777, --group NAME, --ceiling MHZ up to 65535"));
    }
  }
  return perseus::run_clock_daemon(options);
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
  if (command == "--restore" && argc == 3) return restore_one(argv[2], 5);
  if (command == "--restore" && argc == 4) return restore_one(argv[2], std::atof(argv[3]));
  if (command == "--daemon") return serve({argv + 2, argv + argc});
  const bool limited = argc == 5 && std::string_view(argv[3]) == "--ceiling";
  if (command == "--device" && (argc == 3 || limited) && perseus::helper_fds_given()) {
    perseus::run_helper({argv[2], perseus::Megahertz(limited ? std::atoi(argv[4]) : 0)});
  }
  std::fputs(
      "perseus-clockd: no mailbox: the Perseus client starts this program and passes one on (see perseus-clockd "
      "--help)\n",
      stderr);
  return 64;
}
