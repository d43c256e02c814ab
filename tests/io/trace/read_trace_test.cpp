#include "io/trace/read_trace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>

#include "io/trace/event_splitter.h"
#include "tests/support/scratch_folder.h"

namespace perseus::trace {
namespace {

using ::testing::HasSubstr;

Result<TraceSpans> parsed(const std::string& text) { return parse_trace({{"t.json", text}}, {}); }

constexpr const char* kForward =
    R"({"name":"forward-compute","ph":"X","pid":1,"tid":7,"ts":10.5,"dur":2.25,"args":{"step":3,"model_chunk":0,"mb_id":5}})";
constexpr const char* kThread =
    R"({"name":"thread_name","pid":1,"tid":7,"ph":"M","args":{"name":"PP rank 2, TP rank 1, compute"}})";

TEST(ReadTrace, ReadsListsAndObjects) {
  const std::string events = std::string(kForward) + ",\n" + kThread;
  for (const std::string& text : {"[" + events + "]", "[" + events,
                                  "{\"a\": [1, {\"b\": \"]}\"}], \"traceEvents\": [" + events + "], \"c\": 1}"}) {
    const auto timeline = parsed(text);
    ASSERT_TRUE(timeline.ok()) << timeline.error().message;
    ASSERT_EQ(timeline->spans.size(), 1U);
    const Span& span = timeline->spans.front();
    EXPECT_EQ(span.kind, SpanKind::forward);
    EXPECT_EQ(span.step, 3);
    EXPECT_EQ(span.microbatch, 5);
    EXPECT_EQ(span.chunk, 0);
    EXPECT_DOUBLE_EQ(span.start_s, 10.5e-6);
    EXPECT_FLOAT_EQ(span.duration_s, 2.25e-6F);
    const ThreadPlace& place = timeline->threads[span.thread];
    EXPECT_EQ(place.data, 1);
    EXPECT_EQ(place.rank, 2);
    EXPECT_EQ(place.tensor, 1);
    EXPECT_EQ(timeline->names, "shared");
  }
}

TEST(ReadTrace, CutsEventsAnywhere) {
  const std::string text =
      "{\"x\": {\"y\": \"a\\\"}\"}, \"traceEvents\": [" + std::string(kForward) + ", {\"z\": {}}]}";
  for (std::size_t size = 1; size < 20; ++size) {
    EventSplitter splitter;
    std::vector<std::string> found;
    for (std::size_t at = 0; at < text.size(); at += size) {
      const auto visit = [&](std::string_view key, std::string_view object) -> Status {
        found.push_back(std::string(key) + "=" + std::string(object));
        return Ok{};
      };
      ASSERT_TRUE(splitter.feed(text.substr(at, size), visit).ok());
    }
    EXPECT_TRUE(splitter.finish().ok());
    EXPECT_THAT(found, ::testing::ElementsAre("x={\"y\": \"a\\\"}\"}", "=" + std::string(kForward), "={\"z\": {}}"));
  }
}

TEST(ReadTrace, ReadsGzipAndPlainFiles) {
  const testing::ScratchFolder scratch;
  const std::string text = "[" + std::string(kForward) + "]", packed = scratch.path("t.json.gz");
  const gzFile file = gzopen(packed.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  for (const std::string& path : {packed, scratch.file("t.json", text)}) {
    const auto timeline = read_trace({path}, {});
    ASSERT_TRUE(timeline.ok()) << timeline.error().message;
    EXPECT_EQ(timeline->spans.size(), 1U);
  }
  EXPECT_EQ(read_trace({scratch.path("none")}, {}).error().code, ErrorCode::not_found);
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) / 2);
  EXPECT_EQ(read_trace({packed}, {}).error().message, packed + ": broken gzip file: unexpected end of file");
}

TEST(ReadTrace, PairsBeginsAndEnds) {
  const auto timeline = parsed(
      R"([{"ph":"B","name":"Forward 0","pid":1,"tid":1,"ts":1},{"ph":"B","name":"aten::mm","pid":1,"tid":1,"ts":2},
          {"ph":"E","pid":1,"tid":1,"ts":3},{"ph":"E","name":"Forward 0","pid":1,"tid":1,"ts":5}])");
  ASSERT_TRUE(timeline.ok()) << timeline.error().message;
  ASSERT_EQ(timeline->spans.size(), 1U);
  EXPECT_FLOAT_EQ(timeline->spans.front().duration_s, 4e-6F);
  EXPECT_EQ(timeline->names, "torch");
}

TEST(ReadTrace, CountsBeginsAndEndsThatAreAlone) {
  const auto timeline = parsed(
      R"([{"ph":"E","name":"Forward 7","pid":1,"tid":1,"ts":0},
          {"ph":"B","name":"Forward 0","pid":1,"tid":1,"ts":1},{"ph":"B","name":"lost","pid":1,"tid":1,"ts":2},
          {"ph":"E","name":"elsewhere","pid":1,"tid":1,"ts":3},{"ph":"E","name":"Forward 0","pid":1,"tid":1,"ts":5},
          {"ph":"B","name":"Forward 1","pid":1,"tid":1,"ts":6}])");
  ASSERT_TRUE(timeline.ok()) << timeline.error().message;
  ASSERT_EQ(timeline->spans.size(), 1U);
  EXPECT_FLOAT_EQ(timeline->spans.front().duration_s, 4e-6F);
  EXPECT_EQ(timeline->unpaired_events, 4);
}

TEST(ReadTrace, PlacesRanksByArgumentsAndNamesAPlaceThatNeverOccurs) {
  const std::string events =
      R"([{"ph":"X","name":"f","pid":"host","tid":1,"ts":1,"dur":1,"args":{"pp":0,"it":2,"size":1048576}},
          {"ph":"X","name":"f","pid":"host","tid":1,"ts":2,"dur":1,"args":{"pp":3,"it":2}}])";
  const auto read = [&](const std::string& places) {
    return parse_trace(
        {{"t.json", events}},
        parse_trace_names("[places]\n" + places + "\n[events]\nforward = [\"f\"]\nbackward = [\"b\"]", "n.toml")
            .value());
  };
  const auto timeline = read("rank = \"args.pp\"\nstep = \"args.it\"\nbytes = \"args.size\"");
  ASSERT_TRUE(timeline.ok()) << timeline.error().message;
  EXPECT_EQ(timeline->threads[timeline->spans[0].thread].rank, 0);
  EXPECT_EQ(timeline->threads[timeline->spans[1].thread].rank, 3);
  EXPECT_EQ(timeline->spans[0].bytes, 1048576);
  EXPECT_EQ(timeline->spans[1].bytes, -1);
  const std::pair<const char*, const char*> cases[] = {
      {"step = \"args.iteration\"", "n.toml: [places] step: no event of t.json has a whole number at 'args.iteration'"},
      {"data = \"pid\"", "n.toml: [places] data: no event of t.json has a whole number at 'pid'"},
      {"thread = \"rank {rank}\"", "n.toml: [places] thread: no thread of t.json is named like 'rank {rank}'"},
  };
  for (const auto& [places, message] : cases) {
    const auto missing = read(places);
    ASSERT_FALSE(missing.ok()) << places;
    EXPECT_EQ(missing.error().message, message);
  }
}

/// Of events that no mapping names, recorders write anything.
TEST(ReadTrace, ReadsPastOtherEvents) {
  const auto timeline = parsed("[" + std::string(kForward) +
                               R"(,{"ph":"X","name":"other","ts":3,"dur":-1,"args":{"step":"x"}},
                                   {"ph":"X","name":"other","ts":NaN,"dur":Infinity},{"ph":"X","name":"other"},
                                   {"ph":"B","name":"other","ts":null},{"ph":"E","name":"other","ts":NaN},
                                   {"ph":"B","name":"other","ts":5},{"ph":"E","ts":2},
                                   {"ph":"B","name":"other"},{"ph":"E"},{"ph":"E","name":"nothing","ts":"x"},
                                   {"ph":"i","name":"other","ts":"x"},{"ph":"X","name":null,"cat":7},{"ph":"b","id":1,"name":"other"},
                                   {"ph":"X","name":"forward-compute","pid":1,"tid":7,"ts":20,"dur":1,
                                    "args":{"step":null,"mb_id":-1}}])");
  ASSERT_TRUE(timeline.ok()) << timeline.error().message;
  ASSERT_EQ(timeline->spans.size(), 2U);
  EXPECT_EQ(timeline->unpaired_events, 1);
  EXPECT_EQ(timeline->spans[1].step, -1);
  EXPECT_EQ(timeline->spans[1].microbatch, -1);
}

TEST(ReadTrace, MatchesTorchFilesByTheirRanksAndSteps) {
  const auto file = [](int rank) {
    return fmt::format(
        R"({{"schemaVersion":1,"distributedInfo":{{"backend":"gloo","rank":{},"world_size":2}},"traceEvents":[
        {{"ph":"X","cat":"user_annotation","name":"ProfilerStep#7","pid":9,"tid":9,"ts":100,"dur":50}},
        {{"ph":"X","cat":"user_annotation","name":"Forward 4","pid":9,"tid":9,"ts":110,"dur":20}},
        {{"ph":"X","cat":"gpu_user_annotation","name":"Forward 4","pid":0,"tid":7,"ts":115,"dur":18}},
        {{"ph":"X","cat":"user_annotation","name":"Forward 5","pid":9,"tid":9,"ts":10,"dur":20}}]}})",
        rank);
  };
  const auto timeline = parse_trace({{"a", file(1)}, {"b", file(0)}}, {});
  ASSERT_TRUE(timeline.ok()) << timeline.error().message;
  EXPECT_EQ(timeline->world_size, 2);
  ASSERT_EQ(timeline->spans.size(), 2U);  // of the GPU, and within the step
  EXPECT_FLOAT_EQ(timeline->spans[0].duration_s, 18e-6F);
  EXPECT_EQ(timeline->spans[0].step, 7);
  EXPECT_EQ(timeline->spans[0].microbatch, 4);
  EXPECT_EQ(timeline->threads[timeline->spans[0].thread].global, 1);
  EXPECT_EQ(timeline->threads[timeline->spans[1].thread].global, 0);
}

/// As Kineto repeats a range on each stream of its device; the second waits for another rank on NCCL's stream.
std::string of_streams(const std::string& kernels) {
  return R"({"deviceProperties":[{"id":0,"name":"NVIDIA A100-SXM4-80GB"},{"id":1,"name":"NVIDIA A100-SXM4-80GB"}],
      "distributedInfo":{"rank":0},"traceEvents":[)" +
         kernels + R"(
      {"ph":"X","cat":"gpu_user_annotation","name":"0F0","pid":0,"tid":20,"ts":90,"dur":30},
      {"ph":"X","cat":"gpu_user_annotation","name":"0F0","pid":0,"tid":7,"ts":100,"dur":10},
      {"ph":"X","cat":"gpu_user_annotation","name":"0F1","pid":0,"tid":7,"ts":120,"dur":10},
      {"ph":"X","cat":"gpu_user_annotation","name":"0F1","pid":0,"tid":20,"ts":100,"dur":19},
      {"ph":"X","cat":"gpu_user_annotation","name":"0B0","pid":0,"tid":20,"ts":140,"dur":5}]})";
}

TEST(ReadTrace, ReadsARangeOnSeveralStreamsOnceOnTheOneThatComputes) {
  const std::string nccl =
      R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv","pid":0,"tid":20,"ts":90,"dur":60},)";
  const auto gemm = [](int stream, const char* dur) {
    return fmt::format(R"({{"ph":"X","cat":"kernel","name":"sm90_gemm","pid":0,"tid":{},"ts":90,"dur":{}}},)", stream,
                       dur);
  };
  const std::array on_7{100.0, 120.0, 140.0}, on_20{90.0, 100.0, 140.0};
  for (const auto& [kernels, starts_us] :
       {std::pair(std::string(), on_7), std::pair(nccl, on_7), std::pair(gemm(20, "60"), on_20),
        std::pair(gemm(20, "NaN"), on_7), std::pair(gemm(20, "Infinity"), on_7), std::pair(gemm(20, "1e17"), on_7),
        std::pair(gemm(7, "-60"), on_7)}) {
    const auto timeline = parsed(of_streams(kernels));
    ASSERT_TRUE(timeline.ok()) << timeline.error().message;
    ASSERT_EQ(timeline->spans.size(), 3U) << kernels;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(timeline->spans[i].start_s, 1e-6 * starts_us[i], 1e-12) << kernels;
  }
}

TEST(ReadTrace, NamesTheGpusOfItsFiles) {
  EXPECT_THAT(parsed(of_streams(""))->gpus, ::testing::ElementsAre("NVIDIA A100-SXM4-80GB"));
  EXPECT_TRUE(parsed("[" + std::string(kForward) + "]")->gpus.empty());
}

/// Megatron-LM's iterations where no recorder numbers them, beside parts of them that count as steps too.
TEST(ReadTrace, NumbersStepsInTheOrderOfTimeOrByPlainArguments) {
  const auto read = [](const std::string& args) {
    std::string text;
    for (int step = 0; step < 2; ++step) {
      text += fmt::format(
          R"({}{{"ph":"X","name":"megatron.train.iteration","pid":0,"tid":1,"ts":{},"dur":100,"args":{{{}}}}},
              {{"ph":"X","name":"megatron.train_step","pid":0,"tid":1,"ts":{},"dur":35}})",
          step == 0 ? "" : ",", 100 * step, args.empty() ? "" : fmt::format(R"("{}":{})", args, step + 5),
          100 * step + 60);  // after a slow loader
      for (int m = 0; m < 2; ++m)
        text += fmt::format(R"(,{{"ph":"X","name":"forward-compute","pid":0,"tid":1,"ts":{},"dur":5}})",
                            100 * step + 62 + 10 * m);
    }
    const auto timeline =
        parse_trace({{"t.json", "[" + text + "]"}}, *std::ranges::find(ready_names(), "megatron", &TraceNames::name));
    std::vector<int> steps;
    for (const Span& s : timeline.value().spans) steps.push_back(s.step);
    return steps;
  };
  EXPECT_THAT(read(""), ::testing::ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(read("iteration"), ::testing::ElementsAre(5, 5, 6, 6));
  EXPECT_THAT(read("step"), ::testing::ElementsAre(5, 5, 6, 6));
}

/// Threads of a device are ranks there, and a rank's steps are its own.
TEST(ReadTrace, TakesThreadsThatAMappingCallsRanksForNoStreams) {
  const auto names = parse_trace_names(R"(categories = ["gpu_user_annotation"]
[places]
rank = "tid"
[events]
step = ["step"]
forward = ["fwd {microbatch}"]
backward = ["bwd {microbatch}"]
)",
                                       "n");
  ASSERT_TRUE(names.ok()) << names.error().message;
  std::string text;
  for (int rank = 0; rank < 2; ++rank) {
    for (int step = 0; step < 2; ++step) {
      const int from = 100 * step + 30 * rank;
      for (const auto& [name, ts, dur] : {std::tuple("step", from, 60), std::tuple("fwd 0", from + 10, 40)})
        text +=
            fmt::format(R"({}{{"ph":"X","cat":"gpu_user_annotation","name":"{}","pid":0,"tid":{},"ts":{},"dur":{}}})",
                        text.empty() ? "" : ",", name, rank, ts, dur);
    }
  }
  std::vector<std::pair<int, int>> spans;
  const auto timeline = parse_trace({{"t.json", "[" + text + "]"}}, *names);
  for (const Span& s : timeline.value().spans) spans.emplace_back(timeline->threads[s.thread].rank, s.step);
  EXPECT_THAT(spans,
              ::testing::UnorderedElementsAre(std::pair(0, 0), std::pair(0, 1), std::pair(1, 0), std::pair(1, 1)));
}

TEST(ReadTrace, KeepsWholeStepsWithinItsMemory) {
  std::string text = "[";
  for (int i = 0; i < 400; ++i)
    text += fmt::format(
        "{}{{\"ph\":\"X\",\"name\":\"forward-compute\",\"pid\":0,\"tid\":0,\"ts\":{},\"dur\":1,\"args\":"
        "{{\"step\":{},\"mb_id\":{}}}}}",
        i == 0 ? "" : ",", 10 * i, i / 4, i % 4);
  const auto timeline = parse_trace({{"t", text + "]"}}, {}, 100);
  ASSERT_TRUE(timeline.ok());
  EXPECT_LT(timeline->spans.size(), 100U);
  EXPECT_GT(timeline->thinned, 1);
  EXPECT_EQ(timeline->spans.size() % 4, 0U);
  for (std::size_t i = 0; i < timeline->spans.size(); ++i) {
    EXPECT_EQ(timeline->spans[i].microbatch, i % 4);
    EXPECT_EQ(timeline->spans[i].step % timeline->thinned, 0);
  }
}

/// Recorders that number no steps: the beginning of each file, also where clocks are an hour apart. All computations
/// count as long as all kernels.
TEST(ReadTrace, KeepsTheBeginningOfSpansWithoutStepsWithinItsMemory) {
  const auto file = [](int rank) {
    std::string text;
    for (int i = 0; i < 400; ++i)
      text += fmt::format(R"({}{{"ph":"X","name":"Forward {}","pid":0,"tid":0,"ts":{},"dur":1}},
                              {{"ph":"X","cat":"kernel","name":"sm90_gemm","pid":0,"tid":7,"ts":{},"dur":1}})",
                          i == 0 ? "" : ",", i % 4, 3.6e9 * rank + 10 * i, 3.6e9 * rank + 10 * i);
    return fmt::format(R"({{"distributedInfo":{{"rank":{}}},"traceEvents":[{}]}})", rank, text);
  };
  const auto timeline = parse_trace({{"a", file(0)}, {"b", file(1)}}, {}, 100);
  ASSERT_TRUE(timeline.ok()) << timeline.error().message;
  EXPECT_LT(timeline->spans.size(), 100U);
  std::array<int, 2> spans{};
  for (const Span& s : timeline->spans) {
    const int rank = timeline->threads[s.thread].global;
    EXPECT_LT(s.start_s - 3600 * rank, timeline->read_s + 1e-6);
    ++spans[static_cast<std::size_t>(rank)];
  }
  EXPECT_GT(spans[0], 20);
  EXPECT_EQ(spans[0], spans[1]);
  EXPECT_EQ(parse_trace({{"a", file(0)}}, {}, 1000)->read_s, 0);
}

TEST(ReadTrace, NamesEventValueAndWhatWasExpected) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "t.json: no event; expected a list of events or an object with traceEvents"},
      {"[]", "t.json: no event; expected a list of events"},
      {"x", "t.json: it begins with 'x'; expected a list of events"},
      {"[{\"ph\": \"X\"", "t.json: it ends within an event"},
      {R"([{"ph":"X","name":"forward-compute","ts":"soon","dur":1}])",
       "t.json: event 1 (forward-compute): ts \"soon\"; expected a number of microseconds"},
      {R"([{"ph":"X","name":"forward-compute","ts":NaN,"dur":1}])",
       "t.json: event 1 (forward-compute): ts NaN; expected a number of microseconds"},
      {R"([{"ph":"B","name":"forward-compute","ts":NaN}])",
       "t.json: event 1 (forward-compute): ts NaN; expected a number of microseconds"},
      {R"([{"ph":"B","name":"forward-compute","ts":1},{"ph":"E","name":"forward-compute","ts":NaN}])",
       "t.json: event 2 (forward-compute): ts NaN; expected a number of microseconds"},
      {R"([{"ph":"B","name":"forward-compute","ts":1},{"ph":"E","ts":null}])",
       "t.json: event 2: ts null; expected a number of microseconds"},
      {R"([{"ph":"B","name":"forward-compute","ts":1},{"ph":"E"}])", "t.json: event 2: no ts; expected a number of"},
      {R"([{"ph":"B","name":"forward-compute","ts":3},{"ph":"E","ts":1}])",
       "t.json: event 2: ts 1; expected an end after its begin, at most a day"},
      {R"([{"ph":"X","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":9},
           {"ph":"X","name":"forward_step","pid":1,"tid":1,"ts":1,"dur":1}])",
       "t.json: none of 2 events has a name of a computation; expected Forward {microbatch}, "},
      {R"([{"ph":"X","name":"ProfilerStep#1","pid":1,"tid":1,"ts":10,"dur":9},
           {"ph":"X","name":"Forward 0","pid":1,"tid":1,"ts":1,"dur":1}])",
       "t.json: no computation begins within a step; expected steps around computations"},
      {R"([{"ph":"X","name":"Forward 0","pid":"rank a","tid":1,"ts":1,"dur":1},
           {"ph":"X","name":"Forward 0","pid":"rank b","tid":1,"ts":1,"dur":1}])",
       "t.json: torch [places] global: no event of t.json has a whole number at 'pid'"},
      {R"([{"ph":"X","cat":"user_annotation","name":"Forward 0","pid":1,"tid":1,"ts":1,"dur":100},
           {"ph":"X","cat":"kernel","name":"sm90_gemm","pid":0,"tid":7,"ts":9,"dur":9000}])",
       "t.json: computations take 0.0001 s on the host, and kernels 0.009 s on the GPU: the host only launches them; "
       "expected ranges of the GPU (gpu_user_annotation), or CUDA_LAUNCH_BLOCKING=1"},
      {R"([{"ph":"X","name":"forward-compute","ts":1,"dur":-3}])",
       "t.json: event 1 (forward-compute): dur -3; expected a number of microseconds from 0"},
      {R"([{"ph":"X","name":"forward-compute","ts":1,"dur":1e18}])",
       "t.json: event 1 (forward-compute): dur 1e+18; expected a number of microseconds from 0 to 86400000000, a day"},
      {R"([{"ph":"X","name":"forward-compute","ts":1,"dur":1,"args":{"step":"x"}}])",
       "t.json: event 1 (forward-compute): args.step \"x\"; expected a whole number from 0"},
      {R"([{"ph":"X","name":"forward-compute","ts":1,"dur":1,"args":{"step":-5}}])",
       "t.json: event 1 (forward-compute): args.step -5; expected a whole number from 0"},
      {R"([{"ph":"X","name":"forward-compute","pid":"host-1","tid":0,"ts":1,"dur":1}])",
       "t.json: shared [places] data: no event of t.json has a whole number at 'pid'"},
      {R"([{"ph":"X","name":"forward-compute","pid":1,"tid":0,"ts":1,"dur":1},
           {"ph":"X","name":"forward-compute","pid":1,"tid":1,"ts":1,"dur":1}])",
       "t.json: shared [places] thread: no thread of t.json is named like 'PP rank {rank}, TP rank {tensor}, {}'"},
      {R"([{"ph":"X","name":"forward-compute","ts":1,"dur":1,"args":{"step":1,"mb_id":2.5}}])",
       "t.json: event 1 (forward-compute): args.mb_id 2.5; expected a whole number from 0"},
      {R"([{"ph":"X","name":"forward-compute","ts":1,"dur":1,"args":{"step":1,"mb_id":40000}}])",
       "t.json: event 1 (forward-compute): microbatch 40000; expected at most 32767"},
      {R"([{"ph":"X","name":"forward-compute","dur":3}])", "t.json: event 1 (forward-compute): no ts; expected"},
      {R"([{"ph":"X","name":"forward-compute","ts":3}])", "t.json: event 1 (forward-compute): no dur; expected"},
      {R"([{"ph":"E","name":"x","ts":3}])",
       "t.json: none of 1 events has a name of a computation, and 1 begin or end alone; expected"},
      {R"([{"ph":"X",, "name":"x"}])", "t.json: event 1"},
      {"\xff\xfe[ {", "t.json: it begins with the byte 0xff; expected a list of events or an object with traceEvents"},
      {"\n\x8d\x01{\x12", "t.json: it begins with the byte 0x8d; expected a list of events"},
      {R"([{"ph":"X","ts":3}]x)", "t.json: 'x' after its end; expected a list of events"},
      {R"([{"ph":"X","ts":3,"dur":1}])", "t.json: none of 1 events has a name of a computation"},
      {R"([{"ph":"X","name":"my_forward","ts":3,"dur":1}])", "t.json: none of 1 events has a name of a computation"},
  };
  for (const auto& [text, message] : cases) {
    const auto timeline = parsed(text);
    ASSERT_FALSE(timeline.ok()) << text;
    EXPECT_EQ(timeline.error().code, ErrorCode::invalid_input) << text;
    EXPECT_THAT(timeline.error().message, HasSubstr(message)) << text;
  }
}

TEST(TraceNames, MatchPatterns) {
  FieldValues fields = kNoFields;
  EXPECT_TRUE(matches("{stage}F{microbatch}", "12F3", fields));
  EXPECT_EQ(fields[static_cast<std::size_t>(SpanField::stage)], 12);
  EXPECT_EQ(fields[static_cast<std::size_t>(SpanField::microbatch)], 3);
  EXPECT_TRUE(matches("Optimizer.step#{}", "Optimizer.step#AdamW.step", fields));
  EXPECT_TRUE(matches("{} rank {rank}", "PP rank 4", fields));
  EXPECT_FALSE(matches("Forward {microbatch}", "Forward x", fields));
  EXPECT_FALSE(matches("Forward {microbatch}", "Forward 1 of 2", fields));
  EXPECT_FALSE(matches("Forward {microbatch", "Forward 1", fields));
}

/// As the sources of PyTorch 2.6, of its later versions (PP:) and of Megatron-LM 0.20 write them.
TEST(TraceNames, KnowTheNamesOfPublicRecorders) {
  const struct {
    const char* mapping;
    const char* name;
    SpanKind kind;
  } cases[] = {
      {"torch", "Forward 3", SpanKind::forward},
      {"torch", "PP:1F3", SpanKind::forward},
      {"torch", "PP:12B0", SpanKind::backward},
      {"torch", "PP:0I2", SpanKind::input_gradient},
      {"torch", "PP:0W2", SpanKind::weight_gradient},
      {"megatron", "megatron.microbatch.forward", SpanKind::forward},
      {"megatron", "backward-compute", SpanKind::backward},
      {"megatron", "megatron.p2p.recv_forward", SpanKind::forward_receive},
      {"megatron", "megatron.core.pipeline_parallel.p2p_communication.P2PCommunicator.send_backward",
       SpanKind::backward_send},
      {"megatron", "megatron.train.iteration", SpanKind::step},
      {"megatron", "ProfilerStep#4", SpanKind::step},
  };
  for (const auto& [mapping, name, kind] : cases) {
    const auto names = std::find_if(ready_names().begin(), ready_names().end(),
                                    [m = mapping](const TraceNames& n) { return n.name == m; });
    ASSERT_NE(names, ready_names().end());
    std::optional<SpanKind> found;
    for (const auto& [pattern, of] : names->events) {
      FieldValues fields = kNoFields;
      if (!found && matches(pattern, name, fields)) found = of;
    }
    EXPECT_EQ(found, kind) << name;
  }
}

TEST(TraceNames, NameLineKeyAndValue) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"x = 1", "n.toml:1: unknown key 'x'; allowed: categories, places, events"},
      {"", "[events]"},
      {"[places]\ndata = \"here\"\n[events]\nforward = [\"f\"]", "n.toml:2: [places] data: 'here'; allowed: \"pid\""},
      {"[events]\nbackwards = [\"b\"]", "n.toml:2: [events] unknown key 'backwards'; allowed: forward, backward"},
      {"[events]\nforward = 3", "n.toml:2: [events] forward"},
      {"[places]\nstep = \"args.\"\n[events]\nforward = [\"f\"]\nbackward = [\"b\"]",
       "n.toml:2: [places] step: 'args.'; allowed: \"pid\""},
      {"[events]\nforward = [\"F\", \"F {mb}\"]\nbackward = [\"b\"]",
       "n.toml:2: [events] forward: 'F {mb}': unknown place {mb}; allowed: {data}, {rank}"},
      {"[events]\nforward = [\"F {microbatch\"]\nbackward = [\"b\"]",
       "n.toml:2: [events] forward: 'F {microbatch': no } after '{microbatch'; allowed: {} and"},
      {"[places]\nthread = \"PP {pp}\"\n[events]\nforward = [\"f\"]\nbackward = [\"b\"]",
       "n.toml:2: [places] thread: 'PP {pp}': unknown place {pp}; allowed: {data}"},
      {"[events]\nforward = [\"f\"]", "n.toml:1: [events] backward: is missing; allowed: at least one pattern"},
      {"[events]\nbackward = [\"f\"]", "n.toml:1: [events] forward: is missing; allowed: at least one pattern"},
      {"[events]\nforward = [\"f\"]\nbackward = [\"f\"]",
       "n.toml:3: [events] backward: 'f' is also in forward; allowed: each pattern once"},
  };
  for (const auto& [text, message] : cases) {
    const auto names = parse_trace_names(text, "n.toml");
    ASSERT_FALSE(names.ok()) << text;
    EXPECT_THAT(names.error().message, HasSubstr(message)) << text;
  }
  for (const TraceNames& ready : ready_names()) EXPECT_FALSE(ready.events.empty()) << ready.name;
}

}  // namespace
}  // namespace perseus::trace
