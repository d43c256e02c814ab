// The readers accept the examples in docs/formats.md.
#include <gtest/gtest.h>

#include "io/formats/action_table.h"
#include "io/formats/dag_json.h"
#include "io/formats/file.h"
#include "io/formats/memory_csv.h"
#include "io/formats/pipeline_constants.h"
#include "io/formats/profile_csv.h"
#include "io/formats/run_trace_csv.h"

namespace perseus::formats {
namespace {

/// The first indented block after a heading, or a later one.
std::string example(const std::string& heading, int which = 0) {
  const auto text = read_file(std::string(PERSEUS_SOURCE_DIR) + "/docs/formats.md");
  EXPECT_TRUE(text) << text.error().message;
  std::size_t at = text->find("\n    ", text->find("\n## " + heading + "\n"));
  for (; which > 0; --which) at = text->find("\n    ", text->find("\n\n", at));
  std::string block;
  for (++at; text->compare(at, 4, "    ") == 0;) {
    const std::size_t end = text->find('\n', at);
    block += text->substr(at + 4, end - at - 3);
    at = end + 1;
  }
  return block;
}

TEST(FormatExamples, CanBeRead) {
  const auto profile = parse_profile_csv(example("Profile"), "profile");
  EXPECT_TRUE(profile) << profile.error().message;
  const auto table = parse_action_table(example("Action table"), "table");
  EXPECT_TRUE(table) << table.error().message;
  const auto dag = parse_dag_json(example("DAG of computations"), "dag");
  EXPECT_TRUE(dag) << dag.error().message;
  const auto constants = parse_pipeline_constants(example("Constants of a pipeline"), "constants");
  EXPECT_TRUE(constants) << constants.error().message;
  const auto memory = parse_memory_csv(example("Memory of stages"), "memory");
  EXPECT_TRUE(memory) << memory.error().message;
}

// The page shows single rows of traces: the reader accepts them and reports only the missing rest.
TEST(FormatExamples, OfTracesHaveGoodRows) {
  const std::string ops = example("Traces of runs");
  const std::string iterations = example("Traces of runs", 1);
  ASSERT_TRUE(ops.starts_with("plan,stage,op,")) << ops;
  ASSERT_TRUE(iterations.starts_with("plan,kind,stage,")) << iterations;
  const auto trace = parse_run_trace({ops, "ops"}, {iterations, "iterations"});
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->plans[0].iteration_time, Seconds(6.953)) << "the row of the pipeline as a whole counts";
}

}  // namespace
}  // namespace perseus::formats
