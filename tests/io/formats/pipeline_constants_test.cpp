#include "io/formats/pipeline_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::formats {
namespace {

using ::testing::HasSubstr;

TEST(PipelineConstants, ReadBackAsWritten) {
  const PipelineConstants written{
      "1f1b", 128, {Watts(106.16014), Seconds(0.0034694109133670006), true}, Watts(4.1), Seconds(1e-5)};
  const auto read = parse_pipeline_constants(format_pipeline_constants(written), "constants.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->schedule, "1f1b");
  EXPECT_EQ(read->microbatches, 128);
  EXPECT_EQ(read->costs.blocking_power, written.costs.blocking_power);
  EXPECT_EQ(read->costs.transfer_latency, written.costs.transfer_latency);
  EXPECT_TRUE(read->costs.blocking_transfers);
  EXPECT_EQ(read->blocking_power_stddev, Watts(4.1));
  EXPECT_EQ(read->transfer_latency_stddev, model::TransferLatency(Seconds(1e-5)));
}

TEST(PipelineConstants, FilesWithOneLatencyReadAndWriteAsBefore) {
  const std::string text =
      "{\n  \"schedule\": \"1f1b\",\n  \"microbatches\": 128,\n  \"blocking_power_w\": 106.2,\n"
      "  \"blocking_power_stddev_w\": 4.1,\n  \"transfer_latency_s\": 0.00347,\n"
      "  \"transfer_latency_stddev_s\": 1.1e-05,\n  \"blocking_transfers\": true\n}\n";
  const auto read = parse_pipeline_constants(text, "c.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->costs.transfer_latency, model::TransferLatency(Seconds(0.00347)));
  EXPECT_EQ(format_pipeline_constants(*read), text);
}

TEST(PipelineConstants, LatenciesPerBoundaryReadBackAsWritten) {
  const model::TransferLatency latency({{Seconds(0.002), Seconds(0.002)}, {Seconds(0.064), Seconds(0.07)}});
  const PipelineConstants written{"1f1b", 8, {Watts(70), latency, false}, Watts(1), latency};
  const auto read = parse_pipeline_constants(format_pipeline_constants(written), "c.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->costs.transfer_latency, latency);
  EXPECT_EQ(read->transfer_latency_stddev, latency);
}

TEST(PipelineConstants, OtherLinksReadBackAsWritten) {
  PipelineConstants written{"1f1b", 8, {Watts(70), Seconds(0.002), false}, Watts(1), Seconds(0)};
  written.other_links = {
      {Seconds(0.004), true},
      {model::TransferLatency({{Seconds(0.002), Seconds(0.003)}, {Seconds(0.064), Seconds(0.064)}}), false}};
  const auto read = parse_pipeline_constants(format_pipeline_constants(written), "c.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->other_links, written.other_links);
}

TEST(PipelineConstants, SerialTransfersReadBackAsWritten) {
  const PipelineConstants written{"1f1b", 8, {Watts(70), Seconds(0.5), false, true}, Watts(1), Seconds(0)};
  const auto read = parse_pipeline_constants(format_pipeline_constants(written), "c.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->costs.serial_transfers);
  EXPECT_FALSE(read->costs.blocking_transfers);
}

TEST(PipelineConstants, MayOmitValuesWithADefault) {
  const auto read =
      parse_pipeline_constants(R"({"microbatches": 4, "blocking_power_w": 70, "transfer_latency_s": 0})", "c.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(read->schedule);
  EXPECT_FALSE(read->costs.blocking_transfers);
  EXPECT_FALSE(read->costs.serial_transfers);
}

TEST(PipelineConstants, ErrorsNameTheProblem) {
  const auto error = [](const char* text) {
    const auto read = parse_pipeline_constants(text, "c.json");
    return read ? "no error" : read.error().message;
  };
  EXPECT_THAT(error(R"({"microbatches": 4, "blocking_power_w": 70})"), HasSubstr("transfer_latency_s"));
  EXPECT_THAT(error(R"({"microbatches": 0, "blocking_power_w": 70, "transfer_latency_s": 0})"),
              HasSubstr("$.microbatches: found 0; expected an integer >= 1"));
  EXPECT_THAT(error(R"({"microbatches": 1, "blocking_power_w": -70, "transfer_latency_s": 0})"),
              HasSubstr("$.blocking_power_w: found -70; expected a number >= 0"));
  EXPECT_THAT(error(R"({"microbatches": 1, "blocking_power_w": 70, "transfer_latency_s": 0, "schedule": "2f2b"})"),
              HasSubstr("expected one of gpipe, 1f1b"));
  EXPECT_THAT(error(R"({"microbatches": 1, "blocking_power_w": 70, "transfer_latency_s": 0, "blocking": true})"),
              HasSubstr("blocking"));
  EXPECT_THAT(error(R"({"microbatches": 1, "blocking_power_w": 70, "transfer_latency_s": 0, "blocking_transfers": 1})"),
              HasSubstr("expected true or false"));
  EXPECT_THAT(error(R"({"microbatches": 1, "blocking_power_w": 70, "transfer_latency_s": [0, -1]})"),
              HasSubstr("$.transfer_latency_s: found"));
  const std::string start = R"({"microbatches": 1, "blocking_power_w": 70, "transfer_latency_s": 0, "other_links": )";
  EXPECT_THAT(error((start + "3}").c_str()), HasSubstr("$.other_links: found 3; expected"));
  EXPECT_THAT(error((start + R"([{"transfer_latency_s": -1, "blocking_transfers": true}]})").c_str()),
              HasSubstr("$.other_links[0].transfer_latency_s: found -1; expected numbers >= 0"));
  EXPECT_THAT(error((start + R"([{"transfer_latency_s": 1}]})").c_str()), HasSubstr("blocking_transfers"));
  EXPECT_THAT(error("[]"), HasSubstr("c.json"));
}

}  // namespace
}  // namespace perseus::formats
