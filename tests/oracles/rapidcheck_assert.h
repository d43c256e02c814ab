// RC_ASSERT_THAT(assertion): a GoogleTest AssertionResult as an assertion inside a RapidCheck property.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#define RC_ASSERT_THAT(assertion)                   \
  do {                                              \
    const ::testing::AssertionResult r = assertion; \
    if (!r) RC_FAIL(r.message());                   \
  } while (false)
