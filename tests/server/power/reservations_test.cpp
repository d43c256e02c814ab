// Reservations that end while others are made.
#include "server/power/reservations.h"

#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::power {
namespace {

TEST(Reservations, ANewOneOfTheSameNameStaysAsTheFormerEnds) {
  testing::ServiceParts parts;
  Reservations reservations(parts.options, parts.base.access_to_store());
  const auto reserve = [&](double since_s) {
    jobs::Reservation one;
    one.job = "a";
    one.since_s = since_s;
    one.expires_s = since_s + 100;
    reservations.change([one](const auto&, const auto& then) { then(std::optional(Reservations::List{one})); },
                        [](const Result<Ok>&) {});
  };
  reserve(1);
  parts.base.settle();
  reserve(2);
  reservations.end_over({"a"}, {}, 3);  // the job of the first one has started
  parts.base.settle();
  EXPECT_EQ(reservations.at(3).size(), 1U);
  reservations.end_over({"a"}, {}, 4);
  parts.base.settle();
  EXPECT_TRUE(reservations.at(4).empty());
}

}  // namespace
}  // namespace perseus::power
