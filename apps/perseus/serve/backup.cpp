// perseus backup: a copy of a server's database, while it runs.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>

#include "base/json_writer.h"
#include "command_line/command.h"
#include "serve/server_store.h"
#include "server/sqlite/sqlite_backup.h"
#include "server/sqlite/sqlite_store.h"

namespace perseus::cli {
namespace {

constexpr std::array kBackupErrors{ErrorCode::invalid_input, ErrorCode::usage,    ErrorCode::not_found,
                                   ErrorCode::cannot_write,  ErrorCode::internal, ErrorCode::unavailable};

}  // namespace

void add_backup(CLI::App& app, Command& command) {
  struct Options {
    std::string data, to;
  };
  auto options = std::make_shared<Options>();
  auto* backup = app.add_subcommand("backup", "Copy a server's SQLite database into a new file, while the server runs");
  add_value(*backup, "--data DIR", options->data, "Directory given to 'perseus serve --data'")->required();
  backup->add_option("FILE", options->to, "File to write; it must not exist")->required();
  add_json_flag(*backup, command);
  backup->footer(
      help_footer(kBackupErrors, "  perseus backup --data /var/lib/perseus /backup/perseus-$(date +%F).db\n"));
  set_run(*backup, command, [options, &command]() -> Result<int> {
    const std::string database = sqlite_file_in(options->data);
    keep_to_ourselves();
    if (const Status done = sqlite::back_up_sqlite(database, options->to); !done) return done.error();
    const auto bytes = std::filesystem::file_size(options->to);
    if (command.json) {
      print(json_object([&](JsonWriter& f) {
              f.always("backup", options->to);
              f.always("bytes", bytes);
            }) +
            "\n");
    } else {
      print(fmt::format("{}: a copy of {}, {} bytes\n", options->to, database, bytes));
    }
    return 0;
  });
}

}  // namespace perseus::cli
