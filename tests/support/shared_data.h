// Published measurements that tests read in place; the repository does not hold them.
//
// Input:   the environment variable PERSEUS_SHARED_DATA, or else the folder shared/data beside the checkout.
// Errors:  a test that needs them starts with PERSEUS_NEEDS_SHARED_DATA(data), which skips the test with the reason
//          where they are absent.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace perseus::testing {

/// The folder, or nothing if it does not exist.
inline std::optional<std::filesystem::path> shared_data() {
  const char* override = std::getenv("PERSEUS_SHARED_DATA");
  std::filesystem::path folder = override != nullptr ? override : PERSEUS_SHARED_DATA;
  if (!std::filesystem::is_directory(folder)) return std::nullopt;
  return folder;
}

}  // namespace perseus::testing

/// Declares `const std::filesystem::path variable`, or skips the test.
#define PERSEUS_NEEDS_SHARED_DATA(variable)                                                       \
  if (!perseus::testing::shared_data()) {                                                         \
    GTEST_SKIP() << "no published measurements: neither the environment variable "                \
                    "PERSEUS_SHARED_DATA nor " PERSEUS_SHARED_DATA " names a folder that exists"; \
  }                                                                                               \
  const std::filesystem::path variable = *perseus::testing::shared_data()
