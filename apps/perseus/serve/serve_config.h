// The settings of `perseus serve`: one table defines flags, environment variables, the TOML file and their
// documentation.
//
// Input:   a setting as text from, in this order, a flag (--idle-expiry-s 60), the environment
//          (PERSEUS_IDLE_EXPIRY_S=60) or the file (idle_expiry_s = 60); else its default.
// Output:  the settings.
// Errors:  usage naming the source of the value, the value and the allowed ones; also for a key in the file that is
//          not in the table.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/http/http_server.h"
#include "server/routes/api.h"
#include "server/service/service.h"

namespace perseus::cli {

struct ServeConfig {
  std::string listen, data, database, tls_certificate, tls_key, log_level, log_file;
  double grace_s = 0;
  // Of the parts; members without a setting keep their default. A reload replaces what set_limits() of a part takes.
  http::HttpServerOptions http;
  service::ServiceOptions service;
  routes::ApiOptions api;
  std::map<std::string, std::string> texts;  ///< every setting by name, as it was given
};

struct ConfigKey {
  std::string_view name;      ///< in the file; the flag has dashes, the environment capitals
  std::string_view type;      ///< for --help
  std::string_view fallback;  ///< default
  std::string_view meaning;
  std::function<Status(ServeConfig&, const std::string& text)> set;
  bool reloads = false;  ///< a running server takes a new value at SIGHUP; false: it keeps the initial one
};

std::span<const ConfigKey> config_table();
std::string flag_of(const ConfigKey& key);
std::string environment_of(const ConfigKey& key);

/// `flags`: by name, only those given. `file` may be empty.
Result<ServeConfig> read_config(const std::map<std::string, std::string>& flags, const std::string& file);
struct RereadConfig {
  ServeConfig config;                ///< with the new values; where a setting needs a restart, with the old one
  std::vector<std::string> changed;  ///< names of the settings with new values
  std::vector<std::string> kept;     ///< names of the settings whose new values need a restart
};
/// Reads the settings of a running server again.
Result<RereadConfig> reread_config(const ServeConfig& before, const std::map<std::string, std::string>& flags,
                                   const std::string& file);
/// The resulting settings, as a TOML file with comments.
Result<std::string> format_config(const std::map<std::string, std::string>& flags, const std::string& file);

}  // namespace perseus::cli
