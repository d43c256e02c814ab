// When the server sends changed rows to dashboards, on a hand-turned clock.
#include "server/views/job_changes.h"

#include <gtest/gtest.h>

#include "io/http/connection.h"

namespace perseus::views {
namespace {

/// The stream of a disconnected client: it discards events.
http::Responder closed_client() { return http::Responder(std::make_shared<http::PendingAnswer>(nullptr)); }

TEST(JobChanges, AreSentTogetherAtMostTwiceASecond) {
  JobChanges changes;
  changes.note(100);
  EXPECT_FALSE(changes.next_wake_s()) << "no stream is open";
  const auto id = changes.add(closed_client(), {});
  changes.note(100);
  const double due_s = changes.next_wake_s().value_or(0);
  EXPECT_GT(due_s, 100);
  EXPECT_LT(due_s, 100.2);
  changes.note(100.01);
  EXPECT_EQ(changes.next_wake_s(), due_s) << "it is sent with the first one";
  changes.send({}, due_s);
  EXPECT_FALSE(changes.next_wake_s());
  changes.note(due_s + 0.01);
  EXPECT_GE(changes.next_wake_s().value_or(0), due_s + 0.5);
  changes.remove(id);
  EXPECT_FALSE(changes.next_wake_s()) << "no stream is left";
}

}  // namespace
}  // namespace perseus::views
