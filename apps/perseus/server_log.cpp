#include "server_log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "command.h"
#include "net/http_message.h"

namespace perseus {
namespace {

std::shared_ptr<spdlog::logger> logger_to(spdlog::sink_ptr sink, const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>("perseus", std::move(sink));
  logger->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%v})", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::trace);
  return logger;
}

}  // namespace

ServerLog::ServerLog(const std::string& level)
    : logger_(logger_to(std::make_shared<spdlog::sinks::stderr_sink_st>(), level)) {}

Status ServerLog::open(const std::string& level, const std::string& file) {
  try {
    spdlog::sink_ptr sink = std::make_shared<spdlog::sinks::stderr_sink_st>();
    if (!file.empty()) sink = std::make_shared<spdlog::sinks::basic_file_sink_st>(file);
    logger_ = logger_to(std::move(sink), level);
    return Ok{};
  } catch (const spdlog::spdlog_ex& exception) {
    return Error{ErrorCode::cannot_write, fmt::format("log_file: {}", exception.what())};
  }
}

void ServerLog::debug(std::string_view message) { logger_->debug(json_quoted(message)); }
void ServerLog::info(std::string_view message) { logger_->info(json_quoted(message)); }
void ServerLog::warn(std::string_view message) { logger_->warn(json_quoted(message)); }
void ServerLog::error(std::string_view message) { logger_->error(json_quoted(message)); }
void ServerLog::audit(const std::string& change) { logger_->info("\"change\",\"change\":" + change); }

}  // namespace perseus
