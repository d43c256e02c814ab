#include "io/report/columns.h"

#include <algorithm>

namespace perseus::report {

std::vector<std::vector<TimelineColumn>> columns_of(const model::ComputationDag& dag, const Timeline& timeline,
                                                    Seconds span, int columns) {
  std::vector<std::vector<TimelineColumn>> rows(dag.num_ranks(), std::vector<TimelineColumn>(columns));
  if (!(span > Seconds(0))) return rows;
  for (std::size_t i = 0; i < timeline.bars.size(); ++i) {
    const TimelineBar& bar = timeline.bars[i];
    std::vector<TimelineColumn>& row = rows[dag.computations[i].rank];
    const double from = bar.start / span * columns;
    const double to = bar.end / span * columns;
    for (int c = static_cast<int>(from); c < columns && c < to; ++c) {
      const double share = std::min<double>(to, c + 1) - std::max<double>(from, c);
      row[c].busy += share;
      row[c].power += bar.power * share;  // weighted sum, divided below
      row[c].critical |= bar.critical;
    }
  }
  for (auto& row : rows)
    for (TimelineColumn& column : row)
      if (column.busy > 0) column.power = column.power / column.busy;
  return rows;
}

}  // namespace perseus::report
