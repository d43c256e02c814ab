// Published measurements that tests read in place and that the repository does not hold.
//
// They lie beside the checkout (../shared/data) or where the environment variable PERSEUS_SHARED_DATA says. A test
// that needs them starts with PERSEUS_NEEDS_SHARED_DATA(data), and is skipped with a stated reason where they are not.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace perseus::testing {

/// The folder, or nothing where it does not exist.
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
