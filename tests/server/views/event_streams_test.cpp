#include "server/views/event_streams.h"

#include <gtest/gtest.h>

#include "io/http/connection.h"

namespace perseus::views {
namespace {

TEST(EventStreams, EventsOfAMomentAreOneText) {
  EventStreams streams;
  streams.take("event", 100);
  EXPECT_FALSE(streams.next_wake_s()) << "no stream is open";
  // The stream of a disconnected client discards events.
  const auto id = streams.add(http::Responder(std::make_shared<http::PendingAnswer>(nullptr)));
  streams.take("event", 100);
  const double due_s = streams.next_wake_s().value_or(1e9);
  EXPECT_LT(due_s, 100.1);
  streams.take("event", 100.01);
  EXPECT_EQ(streams.next_wake_s(), due_s);
  streams.take(std::string(100000, 'x'), 100.01);
  EXPECT_FALSE(streams.next_wake_s()) << "as much as goes together: it is sent at once";
  streams.remove(id);
  EXPECT_TRUE(streams.empty());
}

}  // namespace
}  // namespace perseus::views
