// The plan for a straggler, and what it saves while the others wait for it. The rule is that of src/io/report/summary.cpp; a
// test compares the two.

/** Returns the slowest point with time <= deadline; the fastest if there is none. */
export function pointFor({ points: { time_s } }, deadline_s) {
  let low = 0;
  let high = time_s.length; // times fall
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time_s[middle] > deadline_s) low = middle + 1;
    else high = middle;
  }
  return Math.min(low, time_s.length - 1);
}

/** frontier: { points, summary, waiting_w } (src/io/report/report_data.h); deadline_s: T', the straggler's iteration time. */
export function stragglerChoice(frontier, deadline_s) {
  const { points, summary, waiting_w } = frontier;
  const energyAt = (effective_j, own_s) => effective_j + waiting_w * Math.max(own_s, deadline_s);
  const point = pointFor(frontier, deadline_s);
  const energy_j = energyAt(points.effective_energy_j[point], points.time_s[point]);
  const all_max_energy_j = energyAt(summary.all_max.effective_energy_j, summary.all_max.time_s);
  return { deadline_s, point, t_opt_s: Math.min(summary.t_star_s, deadline_s), energy_j, all_max_energy_j,
    saving_pct: all_max_energy_j === energy_j ? 0 : (100 * (all_max_energy_j - energy_j)) / all_max_energy_j };
}
