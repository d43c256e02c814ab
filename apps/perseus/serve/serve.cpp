// perseus serve: the cluster-wide server.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "command_line/command.h"
#include "command_line/exit_codes.h"
#include "serve/open_files.h"
#include "serve/serve_config.h"
#include "serve/server_process.h"

namespace perseus::cli {
namespace {

Result<int> run_serve(ServeConfig config, const ServeOptions& given) {
  const rlim_t most_files = make_room_for(config.max_connections);
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
  serve->add_option("--config", options->file, "TOML file with any of these settings")->type_name("FILE");
  serve->add_flag("--print-config", options->print_config, "Print the effective settings as a TOML file and exit");
  add_json_flag(*serve, command);
  serve->footer(help_footer(kServiceErrors,
                            "  perseus serve --listen 127.0.0.1:7787 --data DIR\n"
                            "  perseus serve --config /etc/perseus.toml\n"));
  serve->callback([options, &command] {
    command.run = [options]() -> Result<int> {
      if (options->print_config) {
        const auto text = format_config(options->flags, options->file);
        if (!text) return text.error();
        print(*text);
        return 0;
      }
      const auto config = read_config(options->flags, options->file);
      if (!config) return config.error();
      return run_serve(*config, *options);
    };
  });
}

}  // namespace perseus::cli
