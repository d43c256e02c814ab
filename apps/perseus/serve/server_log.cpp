#include "serve/server_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/formatter.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/json_writer.h"

namespace perseus::cli {
namespace {

constexpr std::chrono::minutes kComplainEvery{1};

/// One line per message, which is an object: what the line has beside time and level.
class JsonLineFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    using std::chrono::milliseconds;
    const auto since_epoch = std::chrono::duration_cast<milliseconds>(message.time.time_since_epoch());
    const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(since_epoch).count();
    const std::string line = json_object([&](JsonWriter& f) {
      f.always("time", fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(seconds), since_epoch.count() - seconds * 1000));
      f.always("level", to_view(spdlog::level::to_string_view(message.level)));
      f.members_of(to_view(message.payload));
    });
    out.append(line);
    out.push_back('\n');
  }
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonLineFormatter>();
  }

 private:
  static std::string_view to_view(spdlog::string_view_t text) { return {text.data(), text.size()}; }
};

std::string message_json(std::string_view message) {
  return json_object([&](JsonWriter& f) { f.always("message", message); });
}

/// Writes without waiting: a stalled reader of the log must not block the server. A pipe loses lines that it cannot
/// take at once; a file takes all.
class PromptSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  /// Of a file: its name; the sink closes it. No name: standard error.
  explicit PromptSink(int descriptor, std::string file = "") : descriptor_(descriptor), file_(std::move(file)) {}
  PromptSink(const PromptSink&) = delete;
  PromptSink& operator=(const PromptSink&) = delete;
  ~PromptSink() override {
    if (!file_.empty()) ::close(descriptor_);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    for (std::size_t written = 0; written < text.size();) {
      // A pipe that is ready takes PIPE_BUF bytes at once.
      pollfd ready{descriptor_, POLLOUT, 0};
      if (::poll(&ready, 1, 0) != 1) throw lost("the process that reads it does not keep up");
      const ssize_t n =
          ::write(descriptor_, text.data() + written, std::min<std::size_t>(text.size() - written, PIPE_BUF));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw lost(std::strerror(errno));
      written += static_cast<std::size_t>(n);
    }
  }
  void flush_() override {}

 private:
  [[nodiscard]] spdlog::spdlog_ex lost(const char* why) const {
    return spdlog::spdlog_ex(fmt::format("{}: {}", file_.empty() ? "standard error" : file_, why));
  }

  int descriptor_;
  std::string file_;
};

/// Reports lost lines of the log, as a line of the same form.
void complain(const std::string& why) {
  static std::optional<std::chrono::steady_clock::time_point> last;
  const auto now = std::chrono::steady_clock::now();
  if (last && now - *last < kComplainEvery) return;
  last = now;
  spdlog::logger aside("perseus", std::make_shared<PromptSink>(STDERR_FILENO));
  aside.set_error_handler([](const std::string&) {});  // there is no further destination
  aside.set_formatter(std::make_unique<JsonLineFormatter>());
  aside.error(message_json("lines of the log are lost: " + why));
}

/// Its descriptor, or why it cannot be appended to. Refuses a named pipe without a reader instead of waiting for it.
Result<int> open_log_file(const std::string& file) {
  const std::filesystem::path directory = std::filesystem::absolute(file).parent_path();
  std::error_code problem;
  if (!std::filesystem::is_directory(directory, problem)) {
    return Error{ErrorCode::cannot_write,
                 fmt::format("log_file: '{}'; there is no directory {}", file, directory.string())};
  }
  const int opened = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (opened >= 0) return opened;
  return Error{ErrorCode::cannot_write,
               fmt::format("log_file: '{}' cannot be appended to: {}", file,
                           errno == ENXIO ? "a named pipe that nothing reads" : std::strerror(errno))};
}

std::shared_ptr<spdlog::logger> logger_to(spdlog::sink_ptr sink, const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>("perseus", std::move(sink));
  logger->set_error_handler(complain);
  logger->set_formatter(std::make_unique<JsonLineFormatter>());
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::trace);
  return logger;
}

}  // namespace

ServerLog::ServerLog(const std::string& level)
    : logger_(logger_to(std::make_shared<PromptSink>(STDERR_FILENO), level)) {}

Status ServerLog::open(const std::string& level, const std::string& file) {
  spdlog::sink_ptr sink = std::make_shared<PromptSink>(STDERR_FILENO);
  if (!file.empty()) {
    const auto opened = open_log_file(file);
    if (!opened) return opened.error();
    sink = std::make_shared<PromptSink>(*opened, file);
  }
  logger_ = logger_to(std::move(sink), level);
  return Ok{};
}

void ServerLog::debug(std::string_view message) { logger_->debug(message_json(message)); }
void ServerLog::info(std::string_view message) { logger_->info(message_json(message)); }
void ServerLog::warn(std::string_view message) { logger_->warn(message_json(message)); }
void ServerLog::error(std::string_view message) { logger_->error(message_json(message)); }
void ServerLog::audit(const std::string& change) {
  logger_->info(json_object([&](JsonWriter& f) {
    f.always("message", "change");
    f.always("change", JsonRaw{change});
  }));
}

}  // namespace perseus::cli
