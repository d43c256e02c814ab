// The history of jobs' iterations, and of the site's domains, in a PostgreSQL store: reads.
//
// Input:   a connection with the tables of postgres_schema.h.
// Output:  as in store.h.
// Errors:  PostgresFailure.
// Cost:    one round trip per call.
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/postgres/postgres_connection.h"
#include "server/store/history_row.h"
#include "server/store/site_row.h"

namespace perseus::postgres {

std::vector<store::HistoryRow> read_history(PostgresConnection& connection, const std::string& job, std::int64_t from_s,
                                            std::int64_t to_s);
std::vector<store::HistoryBytes> read_history_bytes(PostgresConnection& connection);
std::vector<store::SiteRow> read_site_history(PostgresConnection& connection, std::int64_t from_s, std::int64_t to_s);

}  // namespace perseus::postgres
