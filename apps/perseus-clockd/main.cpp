// perseus-clockd: the small program that may change a GPU's clock, so that a training process need not.
#include <grp.h>
#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/standard_streams.h"
#include "training/clock_control/clock_daemon.h"
#include "training/clock_control/daemon_protocol.h"
#include "training/clock_control/helper_process.h"
#include "training/clock_control/lease.h"
#include "training/clock_control/urgency.h"

namespace {

constexpr const char* kHelp =
    R"(perseus-clockd sets a GPU's clock for a training process, and gives it back when either process ends.

usage: perseus-clockd --daemon [--socket PATH] [--mode OCTAL] [--group NAME] [--ceiling MHZ]
         Serve the training processes of this node, containers included, until SIGTERM. One per node, outside of
         containers. A container must see PATH, whose folder exists; default: /run/perseus/clockd.sock. Any local user may
         connect (--mode 0666); a client gets a GPU if it can open the GPU's device node and no other client holds it.
         For tests only: --simulated serves simulated GPUs too.
       perseus-clockd --restore [LEASE [SECONDS]]
         Unlock GPUs whose clock stayed locked because the training process and its helper were killed at once (the
         whole container or job step): the GPUs of this machine's expired leases, or of LEASE if its holder ends within
         SECONDS (default: 5). It changes no other GPU and none in use. Run it in a job's epilog; the next helper that
         starts does the same. A lease is kept until a reset succeeded on its GPU.
       perseus-clockd --help | --version

Without a daemon the Perseus client starts perseus-clockd itself, one per GPU, with a mailbox in shared memory.

--ceiling MHZ: the administrator's limit. The helper locks no clock above it, and gives a clock back by locking
[lowest, MHZ]. NVML cannot report such limits. Clients: PERSEUS_CEILING_MHZ.

Setting clocks needs root or CAP_SYS_ADMIN:  setcap cap_sys_admin+ep perseus-clockd
With more rights than its caller, it empties its environment first. Leases are kept in $PERSEUS_RUNTIME_DIR (an absolute
path) if that is set, else in /run/perseus (root) or /tmp/perseus-UID.

Exit codes: 0 done; 64 wrong usage; 69 a clock could not be given back, or the daemon cannot listen; 73 standard output
cannot be written.
)";

int wrong(const std::string& what) {
  std::fprintf(stderr, "perseus-clockd: %s (see perseus-clockd --help)\n", what.c_str());
  return 64;
}

/// Parses the whole text as a number within [least, most]; nullopt: it is none.
template <class Number, class... Base>
std::optional<Number> number(const std::string& text, Number least, Number most, Base... base) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value >= least && value <= most ? std::optional(value) : std::nullopt;  // NaN: nullopt
}

int restore_all() {
  // A wrong folder holds no lease, so that clocks would seem to be free.
  if (const std::string why = perseus::clock_control::why_no_lease_folder(); !why.empty()) {
    std::fprintf(stderr, "perseus-clockd: %s\n", why.c_str());
    return 69;
  }
  bool all = true;
  for (const auto& lease : perseus::clock_control::restore_expired_leases()) {
    all &= lease.restored.ok();
    std::puts(text_of(lease).c_str());
  }
  for (const std::string& line : perseus::clock_control::expired_leases_of_others()) std::puts(line.c_str());
  return all ? 0 : 69;
}

int restore(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return restore_all();
  const std::string& lease = arguments[0];
  if (lease.empty()) return wrong("--restore: the path of the lease is empty");
  if (lease.starts_with("--")) return wrong("--restore: unknown option " + lease + "; allowed: LEASE [SECONDS]");
  if (arguments.size() > 2)
    return wrong("--restore: one argument too many: " + arguments[2] + "; allowed: LEASE [SECONDS]");
  const auto wait_s = number(arguments.size() > 1 ? arguments[1] : "5", 0.0, 3600.0);
  if (!wait_s) return wrong("--restore LEASE SECONDS: '" + arguments[1] + "'; allowed: 0 to 3600");
  const auto restored = perseus::clock_control::restore_lease(lease, *wait_s);
  if (!restored) std::fprintf(stderr, "perseus-clockd: %s\n", restored.error().message.c_str());
  return restored ? 0 : 69;
}

/// For a training process that lives and has lost its helper under a power budget.
int keep(const std::vector<std::string>& arguments) {
  const auto ceiling = arguments.size() == 2 ? number(arguments[1], 1, 65535) : std::nullopt;
  if (!ceiling) return wrong("--keep-ceiling: this option is for the Perseus client; allowed: LEASE MHZ");
  constexpr double wait_s = 5;
  const auto kept = perseus::clock_control::keep_ceiling(arguments[0], wait_s, perseus::Megahertz(*ceiling));
  if (!kept) std::fprintf(stderr, "perseus-clockd: %s\n", kept.error().message.c_str());
  return kept ? 0 : 69;
}

/// Stores the value; returns what is wrong with it, empty: nothing.
std::string take(const std::string& name, const std::string& value, perseus::clock_control::DaemonOptions& options) {
  if (name == "--socket") {
    options.socket = value;
    return perseus::clock_control::can_be_socket_path(value) ? "" : "a path of 1 to 103 bytes that does not end in /";
  }
  if (name == "--group") {
    const group* const found = ::getgrnam(value.c_str());
    if (found == nullptr) return "the name of a group of this machine";
    options.group = found->gr_gid;
    return "";
  }
  if (name == "--mode") {
    const auto mode = number(value, 0U, 0777U, 8);
    if (mode) options.mode = *mode;
    return mode ? "" : "octal, 0 to 0777";
  }
  const auto ceiling = number(value, 1, 65535);
  if (ceiling) options.ceiling = perseus::Megahertz(*ceiling);
  return ceiling ? "" : "1 to 65535 (MHz)";
}

int serve(const std::vector<std::string>& arguments) {
  constexpr std::array with_value{"--socket", "--group", "--mode", "--ceiling"};
  perseus::clock_control::DaemonOptions options;
  options.socket = perseus::clock_control::kDaemonSocket;
  std::vector<std::string> seen;
  for (auto word = arguments.begin(); word != arguments.end(); ++word) {
    const std::string& name = *word;
    if (std::ranges::find(seen, name) != seen.end()) return wrong(name + " is given twice");
    seen.push_back(name);
    if (name == "--simulated") {
      options.simulated = true;
      continue;
    }
    if (std::ranges::find(with_value, name) == with_value.end()) {
      return wrong("--daemon: unknown option " + name +
                   "; allowed: --socket PATH, --group NAME, --mode OCTAL, --ceiling MHZ");
    }
    if (++word == arguments.end()) return wrong(name + " has no value");
    if (const std::string allowed = take(name, *word, options); !allowed.empty()) {
      return wrong(std::string(name).append(": '").append(*word).append("'; allowed: ").append(allowed));
    }
  }
  return perseus::clock_control::run_clock_daemon(options);
}

int run(const std::string& command, const std::vector<std::string>& arguments) {
  if (std::ranges::find(arguments, "--help") != arguments.end() || command == "--help" || command == "-h") {
    return std::fputs(kHelp, stdout), 0;
  }
  if (command == "--version") return std::puts("perseus-clockd " PERSEUS_VERSION), 0;
  if (command == "--restore" || command == "--keep-ceiling") {
    perseus::clock_control::become_urgent();  // a clock must not wait for the programs that keep every CPU
    return command == "--restore" ? restore(arguments) : keep(arguments);
  }
  if (command == "--daemon") return serve(arguments);
  if (command != "--device") {
    return wrong((command.empty() ? "no command" : "unknown command " + command) +
                 "; allowed: --daemon, --restore, --help, --version");
  }
  const bool limited = arguments.size() == 3 && arguments[1] == "--ceiling";
  const auto ceiling = number(limited ? arguments[2] : "0", 0, 65535);
  if ((arguments.size() == 1 || limited) && ceiling && perseus::clock_control::helper_fds_given()) {
    perseus::clock_control::run_helper({arguments[0], perseus::Megahertz(*ceiling)});
  }
  return wrong("--device: no mailbox; this option is for the Perseus client, which passes one");
}

}  // namespace

int main(int argc, char** argv) {
  perseus::prepare_standard_streams();
  // With more rights than its caller (setcap), the caller's environment (which library is NVML, where the daemon's
  // socket is) would let the caller's code run with these rights.
  if (::getauxval(AT_SECURE) != 0) ::clearenv();
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const int code = words.empty() ? run("", {}) : run(words[0], {words.begin() + 1, words.end()});
  return perseus::exit_code_after_output("perseus-clockd", code);
}
