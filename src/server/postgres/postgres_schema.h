// The tables of a PostgreSQL store: their migrations.
//
// Output:  the schema `perseus` at the present version; a lock excludes other servers meanwhile.
// Errors:  PostgresFailure, with invalid_input if a later version wrote the schema.
// Cost:    a migration reads every row once.
// Threads: one at a time.
#pragma once

#include "server/postgres/postgres_connection.h"

namespace perseus::postgres {

void migrate(PostgresConnection& connection);

}  // namespace perseus::postgres
