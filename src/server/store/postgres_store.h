// The store of clusters with several servers: one PostgreSQL database, any number of servers on it.
//
// Problem: each server serves any rank of any job, so they must agree on every job's log, divide work, and hear of
//          each other's changes.
// Input:   a connection string as libpq takes it ("postgresql://user@host/database", "host=... dbname=..."), of a
//          database whose schema `perseus` is this program's; the schema is created, and brought up to date, when
//          opening. Output, threads: as store.h says. One connection writes (group_commit.h), one reads, one listens
//          for the others' notices and asks for all there is when it comes back from a loss. Appends lock their jobs'
//          rows, in the order of the ids, and look at the sequence reached before they write; claims are upserts, so
//          of two servers one waits for the other. Durability is the database's: where synchronous_commit is off, it
//          is turned on for our sessions. Errors when opening: `unavailable` where the database cannot be reached,
//          invalid_input where its schema is of a later version. Later: a lost connection is opened anew by the next
//          call; where only that was wrong (the database was restarted), the call succeeds. backup() is refused:
//          pg_dump does that.
// Cost:    a batch of appends is seven round trips whatever its size; reading is one.
#pragma once

#include <memory>
#include <string>

#include "server/store/store.h"

namespace perseus::store {

Result<std::unique_ptr<Store>> open_postgres_store(const std::string& connection, Post post);

}  // namespace perseus::store
