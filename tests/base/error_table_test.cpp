#include "base/error_table.h"

#include <gtest/gtest.h>
#include <sysexits.h>

#include <set>

namespace perseus {
namespace {

TEST(ErrorTable, RowOfEachCodeIsItsOwn) {
  for (const ErrorEntry& entry : error_table()) EXPECT_EQ(&entry_of(entry.code), &entry) << entry.name;
}

TEST(ErrorTable, ExitCodesAreThoseOfSysexits) {
  EXPECT_EQ(entry_of(ErrorCode::usage).exit_code, EX_USAGE);
  EXPECT_EQ(entry_of(ErrorCode::invalid_input).exit_code, EX_DATAERR);
  EXPECT_EQ(entry_of(ErrorCode::not_found).exit_code, EX_NOINPUT);
  EXPECT_EQ(entry_of(ErrorCode::cannot_write).exit_code, EX_CANTCREAT);
  EXPECT_EQ(entry_of(ErrorCode::internal).exit_code, EX_SOFTWARE);
  EXPECT_EQ(entry_of(ErrorCode::conflict).exit_code, EX_TEMPFAIL);
  EXPECT_EQ(entry_of(ErrorCode::unauthorized).exit_code, EX_NOUSER);
  EXPECT_EQ(entry_of(ErrorCode::forbidden).exit_code, EX_NOPERM);
  EXPECT_EQ(entry_of(ErrorCode::too_large).exit_code, EX_PROTOCOL);
  EXPECT_EQ(entry_of(ErrorCode::unavailable).exit_code, EX_UNAVAILABLE);
}

TEST(ErrorTable, NoTwoRowsAreTakenForOneAnother) {
  std::set<int> exit_codes, c_codes;
  std::set<std::string_view> names, exceptions;
  for (const ErrorEntry& entry : error_table()) {
    EXPECT_TRUE(exit_codes.insert(entry.exit_code).second) << entry.name;
    EXPECT_TRUE(c_codes.insert(entry.c_code).second) << entry.name;
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_TRUE(exceptions.insert(entry.exception).second) << entry.name;
    EXPECT_NE(entry.exit_code, 0) << entry.name;
    EXPECT_NE(entry.c_code, 0) << entry.name;
    EXPECT_GE(entry.http_status, 400) << entry.name;
  }
}

TEST(ErrorTable, EveryHttpStatusHasACode) {
  for (const ErrorEntry& entry : error_table()) EXPECT_EQ(code_of_http_status(entry.http_status), entry.code);
  EXPECT_EQ(code_of_http_status(429), ErrorCode::unavailable);  // too many requests: later
  EXPECT_EQ(code_of_http_status(431), ErrorCode::too_large);
  EXPECT_EQ(code_of_http_status(405), ErrorCode::usage);
  EXPECT_EQ(code_of_http_status(502), ErrorCode::unavailable);
}

}  // namespace
}  // namespace perseus
