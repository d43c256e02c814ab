#include "serve/serve_config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>

#include "support/scratch_folder.h"

namespace perseus::cli {
namespace {

/// What a running server replaces: the limits of the parts, and what it reads from its settings each time.
auto replaced(const ServeConfig& config) {
  return std::tuple<const http::HttpLimits&, const plans::PlanningLimits&, const service::ServiceLimits&,
                    const routes::ApiLimits&, const double&, const std::string&, const std::string&>(
      config.http, config.service, config.service, config.api, config.grace_s, config.log_level, config.log_file);
}

std::string other_value(const ConfigKey& key, const std::string& secret_file) {
  if (key.name == "hosts") return "perseus.example";
  if (key.type == "LEVEL") return "error";
  if (key.type == "URL") return "http://example.org";
  if (key.type == "FILE") return secret_file;
  if (key.type == "PERCENT") return "7%";
  return "7";
}

TEST(ServeConfig, SettingsReloadIfTheRunningServerReplacesThem) {
  const testing::ScratchFolder folder;
  const std::string file = folder.file("secret", "7\n");
  for (const ConfigKey& key : config_table()) {
    ServeConfig before, after;
    ASSERT_TRUE(key.set(before, std::string(key.fallback))) << key.name;
    ASSERT_TRUE(key.set(after, other_value(key, file))) << key.name;
    EXPECT_EQ(replaced(before) != replaced(after), key.reloads) << key.name;
  }
}

}  // namespace
}  // namespace perseus::cli
