// The store of clusters with a standby: one PostgreSQL database, of whose servers one writes (postgres_right.h).
//
// One connection writes (group_commit.h), one reads, and one asks for the right to write. Durability is the database's:
// where synchronous_commit is off, our sessions turn it on.
//
// Input:   a connection string in libpq's form ("postgresql://user@host/database", "host=... dbname=..."), of a
//          database whose schema `perseus` belongs to this program; opening creates the schema or migrates it.
// Output:  as in store.h.
// Errors:  when opening: `unavailable` if the database cannot be reached, invalid_input if its schema is of a later
//          version. Later: the next call reopens a lost connection; if only that was wrong (the database was
//          restarted), the call succeeds. backup() is rejected: use pg_dump.
// Cost:    a batch of appends is seven round trips whatever its size; reading is one.
// Threads: as in store.h.
#pragma once

#include <memory>
#include <string>

#include "server/store/store.h"

namespace perseus::postgres {

Result<std::unique_ptr<store::Store>> open_postgres_store(const std::string& connection, store::Post post);

}  // namespace perseus::postgres
