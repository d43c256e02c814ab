// TransferLatency: which link a transfer takes, its text forms, and the pipeline body of the server API.
#include "planning/model/transfer_latency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "io/formats/transfer_latency_text.h"
#include "server/jobs/describe.h"

namespace perseus::model {
namespace {

using ::testing::HasSubstr;

const TransferLatency three_boundaries({{Seconds(1), Seconds(1)}, {Seconds(2), Seconds(3)}, {Seconds(4), Seconds(4)}});

TEST(TransferLatency, OneValueHoldsForAllPairsOfRanks) {
  EXPECT_EQ(*TransferLatency(Seconds(0.5)).between(0, 7, 8), Seconds(0.5));
}

TEST(TransferLatency, BoundariesHaveTwoDirections) {
  EXPECT_EQ(*three_boundaries.between(0, 1, 4), Seconds(1));
  EXPECT_EQ(*three_boundaries.between(1, 2, 4), Seconds(2));
  EXPECT_EQ(*three_boundaries.between(2, 1, 4), Seconds(3));
}

TEST(TransferLatency, LastBoundaryConnectsLastAndFirstRank) {
  EXPECT_EQ(*three_boundaries.between(2, 0, 3), Seconds(4));
  EXPECT_EQ(*three_boundaries.between(0, 2, 3), Seconds(4));
  EXPECT_THAT(three_boundaries.between(3, 0, 4).error().message, HasSubstr("one more, from rank 3 to rank 0"));
  EXPECT_THAT(three_boundaries.between(0, 2, 4).error().message, HasSubstr("not neighbors"));
}

TEST(TransferLatency, TwoRanksHaveOneBoundary) {
  const TransferLatency latency({{Seconds(1), Seconds(2)}});
  EXPECT_EQ(*latency.between(0, 1, 2), Seconds(1));
  EXPECT_EQ(*latency.between(1, 0, 2), Seconds(2));
  EXPECT_TRUE(latency.check(2));
}

TEST(TransferLatency, CheckNamesValueAndCount) {
  EXPECT_TRUE(three_boundaries.check(3));
  EXPECT_TRUE(three_boundaries.check(4));
  EXPECT_THAT(three_boundaries.check(8).error().message, HasSubstr("3 boundaries for 8 ranks; allowed: 7 or 8"));
  EXPECT_THAT(three_boundaries.check(2).error().message, HasSubstr("allowed: 1"));
  EXPECT_THAT(TransferLatency(Seconds(-1)).check(4).error().message, HasSubstr("-1; must be finite and >= 0"));
  const TransferLatency bad({{Seconds(1), Seconds(std::nan(""))}});
  EXPECT_THAT(bad.check(2).error().message, HasSubstr("boundary 0: nan"));
}

TEST(TransferLatency, ReportsNameTheSlowestLink) {
  EXPECT_EQ(text_of(TransferLatency(Seconds(0.002))), "0.002 s");
  EXPECT_EQ(text_of(three_boundaries), "1 to 4 s, slowest: boundary 2");
  EXPECT_EQ(text_of(TransferLatency({{Seconds(1), Seconds(2)}})), "1 to 2 s, slowest: boundary 0, backward");
}

TEST(TransferLatencyText, CommandLineForms) {
  EXPECT_EQ(*formats::parse_transfer_latency("0.002"), TransferLatency(Seconds(0.002)));
  EXPECT_EQ(*formats::parse_transfer_latency("1,2/3,4"), three_boundaries);
  for (const char* bad : {"", "inf", "-1", "1,", "1/2/3", "x", "2e6"}) {
    const auto parsed = formats::parse_transfer_latency(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, ErrorCode::usage);
    EXPECT_THAT(parsed.error().message, HasSubstr("allowed: 0 to 1e+06 s"));
  }
}

TEST(TransferLatencyText, CommandLineFormReadsBackAsWritten) {
  for (const char* text : {"0", "0.002", "0.002,0.064", "0.002,0.064/0.07,0.003", "0.1/0.2"}) {
    EXPECT_EQ(formats::transfer_latency_option(formats::parse_transfer_latency(text).value()), text);
  }
}

TEST(TransferLatencyText, JsonReadsBackAsWritten) {
  for (const TransferLatency& latency : {TransferLatency(Seconds(0.0034694109133670006)), three_boundaries}) {
    const std::string text = formats::format_transfer_latency(latency);
    const auto document = formats::parse_json(text, "x");
    ASSERT_TRUE(document) << text;
    const auto read = formats::read_transfer_latency(document->root());
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, latency);
  }
  EXPECT_EQ(formats::format_transfer_latency(three_boundaries), "[1, [2, 3], 4]");
}

TEST(TransferLatencyText, JsonErrorsNameThePath) {
  const auto error = [](const char* text) {
    const auto document = formats::parse_json(text, "x");
    const auto read = formats::read_transfer_latency(document->root());
    return read ? std::string("no error") : read.error().message;
  };
  EXPECT_THAT(error(R"([1, "fast"])"), HasSubstr("$[1]: found"));
  EXPECT_THAT(error("[1, [1, 2, 3]]"), HasSubstr("[forward, backward]"));
  EXPECT_THAT(error("[]"), HasSubstr("expected a number of seconds"));
  EXPECT_THAT(error("true"), HasSubstr("expected a number of seconds"));
}

TEST(TransferLatencyText, ServerKeepsNumbersAndLists) {
  jobs::PipelineShape shape;
  shape.microbatches = 4;
  shape.transfer_latency = Seconds(0.004);
  EXPECT_THAT(jobs::json_text(shape), HasSubstr(R"("transfer_latency_s":0.004)"));
  shape.transfer_latency = three_boundaries;
  const std::string text = jobs::json_text(shape);
  EXPECT_THAT(text, HasSubstr(R"("transfer_latency_s":[1, [2, 3], 4])"));
  const auto read = jobs::parse_json_as<jobs::PipelineShape>(text, "x");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, shape);
}

}  // namespace
}  // namespace perseus::model
