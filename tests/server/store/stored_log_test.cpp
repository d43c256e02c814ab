// The rules of a stored log without a database: what an append adds, what is packed, and what counts as damaged.
#include "server/store/stored_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/store/checksum.h"

namespace perseus::store {
namespace {

using ::testing::HasSubstr;

constexpr const char* kJob = "j_1";

Append append_of(std::int64_t expected, std::vector<std::string> bodies) {
  Append append;
  append.job = kJob;
  append.expected_sequence = expected;
  append.bodies = std::move(bodies);
  append.index.state = "deployed";
  return append;
}

JobIndexRow row_of(std::int64_t last, std::int64_t packed = 0) {
  JobIndexRow row;
  row.job = kJob;
  row.last_sequence = last;
  row.packed = packed;
  return row;
}

Status add(LogReader& log, std::int64_t sequence, const std::string& body) {
  return log.add_event({sequence, body}, checksum_of_event(kJob, sequence, body));
}

TEST(StoredLog, AppendCountsEventsAndBytes) {
  JobIndexRow present = row_of(2, 1);
  present.bytes = 10;
  const Append append = append_of(2, {"abc", "de"});
  const auto events = accept_append(append, present);
  ASSERT_TRUE(events.has_value());
  ASSERT_EQ(events->size(), 2U);
  EXPECT_EQ((*events)[1].sequence, 4);
  EXPECT_EQ(*(*events)[1].body, "de");
  EXPECT_EQ((*events)[1].crc, checksum_of_event(kJob, 4, "de"));
  const JobIndexRow index = index_after(append, present);
  EXPECT_EQ(index.job, kJob);
  EXPECT_EQ(index.state, "deployed");
  EXPECT_EQ(index.last_sequence, 4);
  EXPECT_EQ(index.bytes, 15);
  EXPECT_EQ(index.packed, 1);
}

TEST(StoredLog, AppendConflictsWithAnotherSequenceAndWithDamage) {
  const Append append = append_of(2, {"abc"});
  JobIndexRow later = row_of(3), damaged = row_of(2);
  damaged.damaged = true;
  EXPECT_FALSE(accept_append(append, later).has_value());
  EXPECT_FALSE(accept_append(append, damaged).has_value());
  EXPECT_EQ(later, row_of(3));
}

TEST(StoredLog, ReadsPacksAndEventsFromAnySequenceOn) {
  const std::vector<std::string> bodies{"one", "two", "three"};
  const std::string pack = pack_events(bodies);
  for (std::int64_t after = 0; after <= 4; ++after) {
    LogReader log(kJob, after);
    if (after < 3) {
      ASSERT_TRUE(log.add_pack(1, 3, pack, checksum_of_pack(kJob, 1, 3, pack)).ok());
      EXPECT_EQ(log.next(), 4);
    }
    if (after < 4) { ASSERT_TRUE(add(log, 4, "four").ok()); }
    const auto events = log.finish(row_of(4));
    ASSERT_TRUE(events) << events.error().message;
    ASSERT_EQ(static_cast<std::int64_t>(events->size()), 4 - after);
    for (const StoredEvent& event : *events) {
      EXPECT_EQ(event.body, event.sequence == 4 ? "four" : bodies[event.sequence - 1]);
    }
  }
}

TEST(StoredLog, NamesTheFirstMissingOrDamagedEvent) {
  LogReader gap(kJob, 0);
  ASSERT_TRUE(add(gap, 1, "one").ok());
  EXPECT_THAT(add(gap, 3, "three").error().message, HasSubstr("job j_1 is damaged: event 2"));
  LogReader changed(kJob, 0);
  EXPECT_THAT(changed.add_event({1, "two"}, checksum_of_event(kJob, 1, "one")).error().message, HasSubstr("event 1"));
  LogReader cut(kJob, 0);
  ASSERT_TRUE(add(cut, 1, "one").ok());
  EXPECT_THAT(cut.finish(row_of(2)).error().message, HasSubstr("event 2"));
  const std::string pack = pack_events(std::vector<std::string>{"two"});
  LogReader begun_late(kJob, 0);
  EXPECT_FALSE(begun_late.add_pack(2, 2, pack, checksum_of_pack(kJob, 2, 2, pack)).ok());
  LogReader short_pack(kJob, 0);
  EXPECT_FALSE(short_pack.add_pack(1, 2, pack, checksum_of_pack(kJob, 1, 2, pack)).ok());
}

TEST(StoredLog, EventsWithoutAnIndexRowAreDamage) {
  LogReader none(kJob, 0);
  const auto empty = none.finish(std::nullopt);
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->empty());
  LogReader some(kJob, 0);
  ASSERT_TRUE(add(some, 1, "one").ok());
  EXPECT_THAT(some.finish(std::nullopt).error().message, HasSubstr("its row in the index"));
}

TEST(StoredLog, PacksInTurnsAndKeepsTheBytesInTheIndex) {
  const std::string body(kMostPackedBytes / 2, 'x');
  JobIndexRow row = row_of(3);
  row.bytes = static_cast<std::int64_t>(3 * body.size());
  int turns = 0;
  for (bool more = true; more; ++turns) {
    LogPacker packer(row);
    ASSERT_TRUE(packer.has_work());
    for (std::int64_t next = packer.first(); next <= 3 && packer.has_room(); ++next) {
      ASSERT_TRUE(packer.add(next, body, checksum_of_event(kJob, next, body)));
    }
    const auto pack = packer.finish();
    ASSERT_TRUE(pack.has_value());
    EXPECT_EQ(pack->first, row.packed + 1);
    EXPECT_EQ(pack->crc, checksum_of_pack(kJob, pack->first, pack->last, pack->bytes));
    EXPECT_EQ(pack->index.bytes, row.bytes + static_cast<std::int64_t>(pack->bytes.size()) -
                                     (pack->last - pack->first + 1) * static_cast<std::int64_t>(body.size()));
    row = pack->index;
    more = pack->more;
  }
  EXPECT_EQ(turns, 2);
  EXPECT_EQ(row.packed, 3);
  EXPECT_FALSE(LogPacker(row).has_work());
}

TEST(StoredLog, NeverPacksDamage) {
  LogPacker packer(row_of(2));
  EXPECT_FALSE(packer.add(2, "two", checksum_of_event(kJob, 2, "two")));
  EXPECT_FALSE(packer.add(1, "one", checksum_of_event(kJob, 1, "two")));
  EXPECT_FALSE(packer.finish().has_value());
  JobIndexRow damaged = row_of(2);
  damaged.damaged = true;
  EXPECT_FALSE(LogPacker(damaged).has_work());
}

}  // namespace
}  // namespace perseus::store
