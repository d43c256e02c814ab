// The store of clusters with several servers: one PostgreSQL database, any number of servers on it.
//
// One connection writes (group_commit.h), one reads, and one listens for the other servers' notifications; after a
// lost connection it reads everything again. Appends lock their jobs' rows in the order of the ids, and check the
// sequence before they write; claims are upserts, so of two servers one waits for the other. Durability is the
// database's: where synchronous_commit is off, our sessions turn it on.
//
// Problem: each server serves any rank of any job, so all servers must agree on every job's log, divide work, and
//          learn of each other's changes.
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

namespace perseus::store {

Result<std::unique_ptr<Store>> open_postgres_store(const std::string& connection, Post post);

}  // namespace perseus::store
