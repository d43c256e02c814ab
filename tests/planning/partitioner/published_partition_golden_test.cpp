// The paper's table of minimum-imbalance partitions: the algorithm agrees with every row that is consistent in itself,
// and the first-principles latencies with most of them. bench/partition_report prints the rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "io/formats/csv.h"
#include "io/formats/file.h"
#include "io/formats/number.h"
#include "planning/partitioner/balance.h"
#include "planning/partitioner/gpu_model.h"
#include "planning/partitioner/model_zoo.h"
#include "tests/support/shared_data.h"

namespace perseus::partitioner {
namespace {

struct PublishedRow {
  std::string gpu, model, size;
  int stages = 0;
  double ratio = 0;
  Partition partition;

  [[nodiscard]] std::string zoo_name() const {
    if (model == "Wide-ResNet50") return "wide-resnet50";
    if (model == "Wide-ResNet101") return "wide-resnet101";
    return (model == "GPT-3" ? "gpt3" : model) + "-" + size;
  }
  [[nodiscard]] bool is_uniform() const { return model != "T5" && !model.starts_with("Wide"); }
};

Partition partition_in(std::string_view text) {
  Partition partition;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    partition.boundaries.push_back(formats::number_in<int>(text.substr(0, end)).value_or(-1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return partition;
}

std::vector<PublishedRow> read_rows(const std::string& path) {
  const auto text = formats::read_file(path);
  if (!text) return {};
  std::vector<PublishedRow> rows;
  formats::CsvReader csv(*text, path);
  for (bool header = true; *csv.next(); header = false) {
    const auto& f = csv.fields();
    if (header || csv.blank()) continue;
    for (const int k : {0, 1}) {
      rows.push_back({std::string(f[0]), std::string(f[1]), std::string(f[2]), k == 0 ? 4 : 8,
                      formats::number_in<double>(f[3 + k]).value_or(0), partition_in(f[5 + k])});
    }
  }
  return rows;
}

class PublishedPartition : public ::testing::Test {
 protected:
  void SetUp() override {
    PERSEUS_NEEDS_SHARED_DATA(data);
    const auto path = data.parent_path() / "paper" / "partition.csv";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
    rows = read_rows(path.string());
    ASSERT_EQ(rows.size(), 64);
  }
  std::vector<PublishedRow> rows;
};

/// With layers of one second: whether some head time makes the row a best partition with the printed ratio.
bool some_head_explains(const PublishedRow& row) {
  std::vector<Seconds> layers(row.partition.boundaries.back(), Seconds(1));
  for (int hundredths = 1; hundredths <= 500; ++hundredths) {
    layers.back() = Seconds(hundredths / 100.0);
    const auto best = balance_layers(layers, row.partition.num_stages());
    const double ratio = imbalance_ratio(layers, *best);
    if (imbalance_ratio(layers, row.partition) < ratio + 1e-9 && std::abs(ratio - row.ratio) < 0.00501) return true;
  }
  return false;
}

TEST_F(PublishedPartition, EveryConsistentRowIsABestPartition) {
  for (const PublishedRow& row : rows) {
    if (!row.is_uniform()) continue;
    // Two rows claim 8 stages and list 6, whose ratio would be 1.20 and not the printed 1.25.
    const bool six_stages = row.partition.num_stages() != row.stages;
    EXPECT_EQ(six_stages, row.gpu == "A100-PCIe" && row.model == "Bloom" && row.size != "176B" && row.stages == 8);
    EXPECT_EQ(some_head_explains(row), !six_stages) << row.gpu << " " << row.zoo_name() << " " << row.stages;
  }
}

TEST_F(PublishedPartition, FirstPrinciplesAgreeWithMost) {
  int as_good = 0;
  int both = 0;
  for (const PublishedRow& row : rows) {
    const GpuModel gpu = *gpu_named(row.gpu);
    Workload workload = zoo_entry(row.zoo_name())->workload;
    workload.embedding = false;
    if (row.model.starts_with("Wide") && row.gpu == "A100-PCIe") workload.microbatch_size = 64;
    const auto layers =
        model::forward_latencies(layers_on(*zoo_layers(row.zoo_name(), workload), gpu, workload.precision));
    ASSERT_EQ(static_cast<int>(layers.size()), row.partition.boundaries.back());
    const auto ours = balance_layers(layers, row.stages);
    const double ratio = imbalance_ratio(layers, *ours);
    const bool same =
        row.partition.num_stages() == row.stages && std::abs(imbalance_ratio(layers, row.partition) - ratio) < 1e-9;
    as_good += same;
    both += same && std::abs(ratio - row.ratio) < 0.01;
  }
  EXPECT_GE(as_good, 46);
  EXPECT_GE(both, 30);
}

}  // namespace
}  // namespace perseus::partitioner
