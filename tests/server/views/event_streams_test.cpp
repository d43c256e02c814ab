#include "server/views/event_streams.h"

#include <gtest/gtest.h>

#include "io/http/connection.h"

namespace perseus::views {
namespace {

TEST(EventStreams, EventsOfAMomentAreOneText) {
  EventStreams streams;
  EXPECT_FALSE(streams.take("event", 100)) << "no stream is open";
  // The stream of a disconnected client discards events.
  const auto id = streams.add(http::Responder(std::make_shared<http::PendingAnswer>(nullptr)));
  EXPECT_TRUE(streams.take("event", 100));
  EXPECT_FALSE(streams.take("event", 100.01));
  EXPECT_LT(streams.next_wake_s().value_or(1e9), 100.1);
  EXPECT_FALSE(streams.take(std::string(100000, 'x'), 100.01)) << "as much as goes together: it is sent at once";
  EXPECT_FALSE(streams.next_wake_s());
  streams.remove(id);
  EXPECT_TRUE(streams.empty());
}

}  // namespace
}  // namespace perseus::views
