// perseus serve: the cluster-wide server.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "command_line/command.h"
#include "serve/serve_config.h"
#include "serve/server_process.h"

namespace perseus::cli {
namespace {

// The limit on open files of `perseus serve`, which limits its connections.

/// Databases, pipes, libraries: all descriptors but connections.
constexpr rlim_t kMostOwnFiles = 64;
/// Minimum at the start, besides those that the parent process left open.
constexpr rlim_t kLeastFiles = 48;

/// Without descriptors, libraries end the process, or name another cause. Errors: unavailable.
Status check_files(rlim_t allowed) {
  std::error_code none_left;
  const std::filesystem::directory_iterator open("/proc/self/fd", none_left);
  rlim_t in_use = none_left == std::errc::too_many_files_open ? allowed : 0;
  if (!none_left) in_use = static_cast<rlim_t>(std::distance(begin(open), end(open)));
  if (allowed >= in_use + kLeastFiles) return Ok{};
  return Error{ErrorCode::unavailable,
               fmt::format("open files: {} (ulimit -n), of which {} are in use; allowed: at least {}", allowed, in_use,
                           in_use + kLeastFiles)};
}

/// Allows that many connections; returns the allowed number of files.
rlim_t make_room_for(std::size_t connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return RLIM_INFINITY;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t files = std::min(limit.rlim_cur, connections + kMostOwnFiles);
  // With several threads, the kernel doubles its table of open files only after every processor has passed a quiescent
  // state, tens of milliseconds in which accepting stands still. So this enlarges the table now, by using its last
  // entry once.
  const int last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, static_cast<int>(files) - 1);
  if (last >= 0) close(last);
  return limit.rlim_cur;
}

Result<int> run_serve(ServeConfig config, const ServeOptions& given) {
  const rlim_t most_files = make_room_for(config.http.connections);
  if (Status enough = check_files(most_files); !enough) return enough.error();
  ServerProcess server(std::move(config), given, most_files);
  if (Status started = server.start(); !started) return started.error();
  return server.run();
}

}  // namespace

void add_serve(CLI::App& app, Command& command) {
  auto* serve = app.add_subcommand("serve", "Serve plans to a cluster's training jobs, over HTTP");
  auto options = std::make_shared<ServeOptions>();
  for (const ConfigKey& key : config_table()) {
    const std::string meaning =
        key.fallback.empty() ? std::string(key.meaning) : fmt::format("{} (default {})", key.meaning, key.fallback);
    serve
        ->add_option_function<std::string>(
            flag_of(key), [options, &key](const std::string& value) { options->flags[std::string(key.name)] = value; },
            meaning)
        ->type_name(std::string(key.type));
  }
  add_value(*serve, "--config FILE", options->file, "TOML file with any of these settings");
  serve->add_flag("--print-config", options->print_config, "Print the effective settings as a TOML file and exit");
  add_json_flag(*serve, command);
  serve->footer(help_footer(kServiceErrors,
                            "  perseus serve --listen 127.0.0.1:7787 --data DIR\n"
                            "  perseus serve --config /etc/perseus.toml\n"));
  set_run(*serve, command, [options]() -> Result<int> {
    if (options->print_config) {
      const auto text = format_config(options->flags, options->file);
      if (!text) return text.error();
      print(*text);
      return 0;
    }
    const auto config = read_config(options->flags, options->file);
    if (!config) return config.error();
    return run_serve(*config, *options);
  });
}

}  // namespace perseus::cli
