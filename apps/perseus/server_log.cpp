#include "server_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>

#include "command.h"
#include "net/http_message.h"

namespace perseus {
namespace {

constexpr const char* kPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%v})";
constexpr std::chrono::minutes kComplainEvery{1};

/// Says that lines of the log are lost, as a line of the same form.
void complain(const std::string& why) {
  static std::optional<std::chrono::steady_clock::time_point> last;
  const auto now = std::chrono::steady_clock::now();
  if (last && now - *last < kComplainEvery) return;
  last = now;
  spdlog::logger aside("perseus", std::make_shared<spdlog::sinks::stderr_sink_st>());
  aside.set_pattern(kPattern, spdlog::pattern_time_type::utc);
  aside.error(json_quoted("lines of the log are lost: " + why));
}

/// Why a file cannot be appended to: spdlog would make its directories, and names no cause.
Status check_log_file(const std::string& file) {
  const std::filesystem::path directory = std::filesystem::absolute(file).parent_path();
  std::error_code problem;
  if (!std::filesystem::is_directory(directory, problem)) {
    return Error{ErrorCode::cannot_write,
                 fmt::format("log_file: '{}'; there is no directory {}", file, directory.string())};
  }
  const int opened = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (opened < 0) {
    return Error{ErrorCode::cannot_write,
                 fmt::format("log_file: '{}' cannot be appended to: {}", file, std::strerror(errno))};
  }
  ::close(opened);
  return Ok{};
}

std::shared_ptr<spdlog::logger> logger_to(spdlog::sink_ptr sink, const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>("perseus", std::move(sink));
  logger->set_error_handler(complain);
  logger->set_pattern(kPattern, spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::trace);
  return logger;
}

}  // namespace

ServerLog::ServerLog(const std::string& level)
    : logger_(logger_to(std::make_shared<spdlog::sinks::stderr_sink_st>(), level)) {}

Status ServerLog::open(const std::string& level, const std::string& file) {
  if (!file.empty()) {
    if (Status writable = check_log_file(file); !writable) return writable;
  }
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
