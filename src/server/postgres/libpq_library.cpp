#include "server/postgres/libpq_library.h"

#include <dlfcn.h>

#include "server/postgres/postgres_connection.h"

namespace perseus::postgres {
namespace {

[[noreturn]] void fail_to_load() {
  const char* const why = dlerror();
  throw PostgresFailure{
      {ErrorCode::unavailable,
       std::string("database: PostgreSQL's client library is not installed: ") + (why == nullptr ? "no reason" : why)}};
}

template <class Function>
void find(void* library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) fail_to_load();
}

LibpqLibrary load() {
  void* const library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail_to_load();
  LibpqLibrary functions{};
  find(library, functions.clear, "PQclear");
  find(library, functions.cmd_tuples, "PQcmdTuples");
  find(library, functions.connect_db_params, "PQconnectdbParams");
  find(library, functions.conninfo_free, "PQconninfoFree");
  find(library, functions.conninfo_parse, "PQconninfoParse");
  find(library, functions.error_message, "PQerrorMessage");
  find(library, functions.exec, "PQexec");
  find(library, functions.exec_prepared, "PQexecPrepared");
  find(library, functions.finish, "PQfinish");
  find(library, functions.free_memory, "PQfreemem");
  find(library, functions.get_is_null, "PQgetisnull");
  find(library, functions.get_length, "PQgetlength");
  find(library, functions.get_value, "PQgetvalue");
  find(library, functions.num_tuples, "PQntuples");
  find(library, functions.prepare, "PQprepare");
  find(library, functions.result_error_field, "PQresultErrorField");
  find(library, functions.result_status, "PQresultStatus");
  find(library, functions.set_client_encoding, "PQsetClientEncoding");
  find(library, functions.set_notice_processor, "PQsetNoticeProcessor");
  find(library, functions.status, "PQstatus");
  return functions;
}

}  // namespace

const LibpqLibrary& libpq() {
  static const LibpqLibrary library = load();
  return library;
}

}  // namespace perseus::postgres
