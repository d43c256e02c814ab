#include "server/postgres/postgres_connection.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <utility>

namespace perseus::postgres {
namespace {

/// Settings of a session. A server whose host fails in a transaction must not keep its locks for long.
constexpr const char* kSession = R"(
  SET client_min_messages = warning;
  SET statement_timeout = '30s';
  SET idle_in_transaction_session_timeout = '10s';
  SET search_path = perseus;
  SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
)";

/// libpq's messages end in a newline, and may contain several.
std::string one_line(std::string_view message) {
  while (message.ends_with('\n')) message.remove_suffix(1);
  std::string line;
  for (const char c : message) {
    if (c == '\t') continue;
    line += c == '\n' ? std::string("; ") : std::string(1, c);
  }
  return line;
}

/// Rejects an invalid connection string: libpq would quote parts of it, and with an unescaped character in the
/// password these are parts of the password.
void check_form(const std::string& connection) {
  struct Free {
    void operator()(PQconninfoOption* options) const { libpq().conninfo_free(options); }
  };
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, Free> options(libpq().conninfo_parse(connection.c_str(), &message));
  libpq().free_memory(message);
  bool right = options != nullptr;
  for (const PQconninfoOption* option = options.get(); right && option->keyword != nullptr; ++option) {
    const std::string_view name = option->keyword, value = option->val == nullptr ? "" : option->val;
    const bool of_place = name == "host" || name == "hostaddr" || name == "dbname";
    if (of_place && value.find('@') != std::string_view::npos) right = false;
    if (name == "port" && value.find_first_not_of("0123456789,") != std::string_view::npos) right = false;
  }
  if (right) return;
  throw PostgresFailure{{ErrorCode::usage,
                         "database: invalid URL (not shown, since it may contain a password); allowed: "
                         "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for @, %2F for / and %25 for % in a "
                         "name or password"}};
}

}  // namespace

PostgresValue::PostgresValue(double number) : text_(fmt::format("{}", number)) {}

std::string array_literal(std::span<const std::string> texts) {
  std::string literal = "{";
  for (const std::string& text : texts) {
    literal += literal.size() > 1 ? ",\"" : "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') literal += '\\';
      literal += c;
    }
    literal += '"';
  }
  return literal + "}";
}

std::string array_literal(std::span<const std::int64_t> numbers) {
  return fmt::format("{{{}}}", fmt::join(numbers.begin(), numbers.end(), ","));
}

std::string array_literal(std::span<const std::optional<double>> numbers) {
  std::string literal = "{";
  for (const std::optional<double>& number : numbers) {
    if (literal.size() > 1) literal += ',';
    literal += number ? fmt::format("{}", *number) : "NULL";
  }
  return literal + "}";
}

int PostgresRows::affected() const { return std::atoi(libpq().cmd_tuples(result_.get())); }

std::string PostgresRows::text(int row, int column) const {
  return {libpq().get_value(result_.get(), row, column),
          static_cast<std::size_t>(libpq().get_length(result_.get(), row, column))};
}

std::int64_t PostgresRows::integer(int row, int column) const {
  return std::strtoll(libpq().get_value(result_.get(), row, column), nullptr, 10);
}

double PostgresRows::number(int row, int column) const {
  const char* text = libpq().get_value(result_.get(), row, column);
  double value = 0;
  std::from_chars(text, text + std::strlen(text), value);
  return value;
}

PostgresConnection::PostgresConnection(const std::string& connection, Patience patience) {
  check_form(connection);
  // Our settings come first, so that the connection string overrides them.
  const std::array<const char*, 9> keywords{"connect_timeout",
                                            "tcp_user_timeout",
                                            "keepalives_idle",
                                            "fallback_application_name",
                                            "keepalives_interval",
                                            "keepalives_count",
                                            "target_session_attrs",
                                            "dbname",
                                            nullptr};
  const char* timeout_s = patience == Patience::long_ ? "30" : "3";
  const std::array<const char*, 9> values{timeout_s,          "10000", "5", "perseus", "2", "3", "read-write",
                                          connection.c_str(), nullptr};
  connection_.reset(libpq().connect_db_params(keywords.data(), values.data(), 1));
  if (connection_ == nullptr || lost()) fail(nullptr);
  libpq().set_notice_processor(
      connection_.get(), [](void*, const char*) {}, nullptr);  // failures are returned instead
  libpq().set_client_encoding(connection_.get(), "UTF8");
  script(kSession);
  opened_ = true;
}

PostgresRows PostgresConnection::script(const std::string& sql) {
  return checked(libpq().exec(connection_.get(), sql.c_str()));
}

PostgresRows PostgresConnection::run(const char* sql, std::span<const PostgresValue> values, bool as_bytes) {
  const auto [known, is_new] = prepared_.try_emplace(sql, fmt::format("s{}", prepared_.size()));
  if (is_new) {
    try {
      checked(libpq().prepare(connection_.get(), known->second.c_str(), sql, 0, nullptr));
    } catch (const PostgresFailure&) {
      prepared_.erase(known);
      throw;
    }
  }
  std::vector<const char*> texts;
  std::vector<int> lengths, formats;
  for (const PostgresValue& value : values) {
    if (!value.is_bytes() && value.text().find('\0') != std::string::npos) {
      throw PostgresFailure{{ErrorCode::invalid_input, "database: a text with a NUL character cannot be stored"}};
    }
    texts.push_back(value.text().c_str());
    lengths.push_back(static_cast<int>(value.text().size()));
    formats.push_back(value.is_bytes() ? 1 : 0);
  }
  return checked(libpq().exec_prepared(connection_.get(), known->second.c_str(), static_cast<int>(values.size()),
                                       texts.data(), lengths.data(), formats.data(), as_bytes ? 1 : 0));
}

PostgresRows PostgresConnection::checked(PGresult* result) {
  PostgresRows rows(result);
  const ExecStatusType status = libpq().result_status(result);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail(result);
  return rows;
}

void PostgresConnection::fail(const PGresult* result) const {
  PostgresFailure failure;
  failure.lost = connection_ == nullptr || lost();
  const char* field = result == nullptr ? nullptr : libpq().result_error_field(result, PG_DIAG_SQLSTATE);
  const std::string_view state = field == nullptr ? "" : field;
  const std::string_view kind = state.substr(0, 2);
  failure.retry = state == "40001" || state == "40P01";  // could not serialize; deadlock
  // Data exception, constraint, program limit: caused by the values. All other errors (connection, disk, shutdown)
  // may be transient.
  const bool of_value = kind == "22" || kind == "23" || kind == "54";
  failure.error.code = of_value ? ErrorCode::invalid_input : ErrorCode::unavailable;
  // Clients of the server read this message. libpq's own text quotes the SQL, and names host and user when the
  // connection is lost.
  const char* primary = result == nullptr ? nullptr : libpq().result_error_field(result, PG_DIAG_MESSAGE_PRIMARY);
  const std::string why = opened_ && failure.lost ? "the connection is lost"
                          : primary != nullptr    ? std::string(primary)
                                                  : libpq().error_message(connection_.get());
  failure.error.message = "database: " + one_line(why);
  throw failure;  // NOLINT(*-throw-by-value-catch-by-reference)
}

void* LibpqFunction::find() const {
  void* const library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (void* const found = library == nullptr ? nullptr : dlsym(library, name)) return found;
  const char* const why = dlerror();
  throw PostgresFailure{
      {ErrorCode::unavailable,
       std::string("database: PostgreSQL's client library is not installed: ") + (why == nullptr ? "no reason" : why)}};
}

const LibpqLibrary& libpq() {
  static const LibpqLibrary library;
  return library;
}

}  // namespace perseus::postgres
