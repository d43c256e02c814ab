// The functions of PostgreSQL's client library, which is loaded when a connection first needs it.
//
// Problem: it brings 20 more libraries, 3.5 MB of memory that a server with SQLite does not need.
// Output:  the functions of libpq-fe.h, without the PQ of their names.
// Errors:  thrown as PostgresFailure: the library is not installed, or too old.
// Cost:    loaded once, never unloaded.
// Threads: any.
#pragma once

#include <libpq-fe.h>

namespace perseus::postgres {

struct LibpqLibrary {
  decltype(&PQclear) clear;
  decltype(&PQcmdTuples) cmd_tuples;
  decltype(&PQconnectdbParams) connect_db_params;
  decltype(&PQconninfoFree) conninfo_free;
  decltype(&PQconninfoParse) conninfo_parse;
  decltype(&PQerrorMessage) error_message;
  decltype(&PQexec) exec;
  decltype(&PQexecPrepared) exec_prepared;
  decltype(&PQfinish) finish;
  decltype(&PQfreemem) free_memory;
  decltype(&PQgetisnull) get_is_null;
  decltype(&PQgetlength) get_length;
  decltype(&PQgetvalue) get_value;
  decltype(&PQntuples) num_tuples;
  decltype(&PQprepare) prepare;
  decltype(&PQresultErrorField) result_error_field;
  decltype(&PQresultStatus) result_status;
  decltype(&PQsetClientEncoding) set_client_encoding;
  decltype(&PQsetNoticeProcessor) set_notice_processor;
  decltype(&PQstatus) status;
};
const LibpqLibrary& libpq();

}  // namespace perseus::postgres
