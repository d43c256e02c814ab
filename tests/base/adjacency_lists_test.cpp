#include "base/adjacency_lists.h"

#include <gmock/gmock.h>

#include <utility>

namespace perseus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

AdjacencyLists<int> successors(int num_nodes, const std::vector<std::pair<int, int>>& edges) {
  return {num_nodes, static_cast<int>(edges.size()), [&](int e) { return edges[e].first; },
          [&](int e) { return edges[e].second; }};
}

TEST(AdjacencyLists, KeepsTheOrderOfTheEdges) {
  const AdjacencyLists<int> lists = successors(4, {{2, 0}, {0, 3}, {2, 3}, {0, 1}, {0, 3}});
  EXPECT_EQ(lists.num_nodes(), 4);
  EXPECT_THAT(lists.of(0), ElementsAre(3, 1, 3));
  EXPECT_THAT(lists.of(1), IsEmpty());
  EXPECT_THAT(lists.of(2), ElementsAre(0, 3));
  EXPECT_THAT(lists.of(3), IsEmpty());
}

TEST(AdjacencyLists, MayBeEmpty) {
  EXPECT_EQ(AdjacencyLists<int>().num_nodes(), 0);
  EXPECT_EQ(successors(0, {}).num_nodes(), 0);
  EXPECT_THAT(successors(1, {}).of(0), IsEmpty());
}

}  // namespace
}  // namespace perseus
