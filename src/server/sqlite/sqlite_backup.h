// Copies the file of a SQLite store while servers use it.
//
// Errors:  unavailable: the message names the file.
// Cost:    reads and writes the file once.
// Threads: any.
#pragma once

#include <string>

#include "base/result.h"

namespace perseus::sqlite {

/// Makes a consistent copy of the file in a new one, even while a server in another process uses it: Store::backup()
/// without opening a store. The copy appears complete or not at all, and is on disk when this returns.
Status back_up_sqlite(const std::string& path, const std::string& to);

}  // namespace perseus::sqlite
