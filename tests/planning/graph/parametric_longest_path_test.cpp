#include "planning/graph/parametric_longest_path.h"

#include <gtest/gtest.h>

#include <vector>

namespace perseus::graph {
namespace {

struct Piece {
  Integer deadline, flow_value;
  bool operator==(const Piece&) const = default;
};

std::vector<Piece> sweep(ParametricLongestPath& path, Integer target, bool* reached = nullptr) {
  std::vector<Piece> pieces;
  const bool ok = path.lower_deadline(target, [&](Integer deadline, Integer flow) {
    pieces.push_back({deadline, flow});
  });
  if (reached) *reached = ok;
  return pieces;
}

// From node 0 to the last one.
ParametricNetwork network_of(int num_nodes) {
  ParametricNetwork network;
  network.num_nodes = num_nodes;
  network.sink = num_nodes - 1;
  return network;
}

int add(ParametricNetwork& network, int from, int to, std::vector<Integer> lengths, std::vector<Integer> thresholds) {
  return network.add_arc(from, to, lengths, thresholds);
}

TEST(ParametricLongestPath, OneArcFollowsItsOwnCurve) {
  ParametricNetwork network = network_of(2);
  const int arc = add(network, 0, 1, {10, 7, 5}, {0, 2, 6});
  ParametricLongestPath path(network);
  EXPECT_EQ(path.deadline(), 10);
  bool reached = true;
  EXPECT_EQ(sweep(path, 0, &reached), (std::vector<Piece>{{7, 2}, {5, 6}}));
  EXPECT_FALSE(reached);
  EXPECT_EQ(path.deadline(), 5);
  EXPECT_EQ(path.flow(arc), 6);
}

TEST(ParametricLongestPath, ArcsInSeriesAreShortenedCheapestFirst) {
  ParametricNetwork network = network_of(3);
  add(network, 0, 1, {10, 8}, {0, 5});
  add(network, 1, 2, {10, 9}, {0, 3});
  ParametricLongestPath path(network);
  EXPECT_EQ(sweep(path, 0), (std::vector<Piece>{{19, 3}, {17, 5}}));
}

TEST(ParametricLongestPath, ParallelArcsAreShortenedTogether) {
  // Both paths have length 10; below that a unit costs 5 + 3. The second path cannot go below 8.
  ParametricNetwork network = network_of(2);
  add(network, 0, 1, {10, 6}, {0, 5});
  add(network, 0, 1, {10, 8}, {0, 3});
  ParametricLongestPath path(network);
  bool reached = true;
  EXPECT_EQ(sweep(path, 0, &reached), (std::vector<Piece>{{8, 8}}));
  EXPECT_FALSE(reached);
}

TEST(ParametricLongestPath, LengthensShortenedArcsAgainWhereThatPays) {
  // Fulkerson's bridge: two paths of two arcs with an arc across. Shortening both outer arcs of the long middle path
  // lets the bridge relax, which is an arc crossed backwards by the minimum cut.
  ParametricNetwork network = network_of(4);
  add(network, 0, 1, {8, 2}, {0, 4});                     // a
  const int across = add(network, 1, 2, {6, 1}, {0, 3});  // bridge
  add(network, 2, 3, {8, 2}, {0, 4});                     // b
  network.add_arc(0, 2, 9);
  network.add_arc(1, 3, 9);
  ParametricLongestPath path(network);
  EXPECT_EQ(path.deadline(), 22);
  // First the bridge alone (price 3) until the paths around it are as long. Then a and b (8), while the bridge relaxes
  // (-3), until the bridge has its first length again; then there is no refund any more.
  EXPECT_EQ(sweep(path, 13), (std::vector<Piece>{{17, 3}, {13, 5}}));
  EXPECT_EQ(path.flow(across), 3);
  EXPECT_EQ(path.time(2) - path.time(1), 5);
  EXPECT_EQ(sweep(path, 0), (std::vector<Piece>{{12, 5}, {11, 8}}));
  EXPECT_EQ(path.flow(across), 0);
}

TEST(ParametricLongestPath, StopsAtAnyDeadlineAndGoesOnFromThere) {
  ParametricNetwork network = network_of(2);
  const int arc = add(network, 0, 1, {10, 4}, {0, 2});
  ParametricLongestPath path(network);
  bool reached = false;
  EXPECT_EQ(sweep(path, 9, &reached), (std::vector<Piece>{{9, 2}}));
  EXPECT_TRUE(reached);
  EXPECT_EQ(path.time(1), 9);
  EXPECT_EQ(path.flow(arc), 2);
  EXPECT_EQ(path.position(arc).longer, 0);
  EXPECT_EQ(path.position(arc).shorter, 1);
  EXPECT_TRUE(sweep(path, 9).empty());
  EXPECT_EQ(sweep(path, 4), (std::vector<Piece>{{4, 2}}));
}

TEST(ParametricLongestPathDeathTest, ACycleIsAProgrammersMistake) {
  ParametricNetwork network = network_of(4);
  network.add_arc(0, 1, 1);
  network.add_arc(1, 2, 1);
  network.add_arc(2, 1, 1);
  network.add_arc(2, 3, 1);
  EXPECT_DEATH(ParametricLongestPath path(network), "cycle");
}

}  // namespace
}  // namespace perseus::graph
