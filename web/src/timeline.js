import { clockLine } from './clock-line.js';

// Computes when each computation runs under a plan (longest path), and one critical path, back from the end. The rules are
// those of src/io/report/timeline.cpp; clocks arrive late as in src/planning/checker/plan_run.h.

export function timelineOf(iteration, plan) {
  if (!iteration.switchLatency) return walk(iteration, plan, (i) => optionOf(iteration, plan, i), () => {});
  const { type, types, rank } = iteration;
  const clockOf = (i) => types[type[i]].clock_mhz[plan[i]];
  const orders = Array.from({ length: iteration.ranks }, () => []); // of the computations whose clocks are set
  for (let i = 0; i < iteration.count; ++i) if (clockOf(i) > 0) orders[rank[i]].push(i);
  const next = new Uint32Array(iteration.count);
  for (const order of orders) order.forEach((i, k) => { next[i] = order[(k + 1) % order.length]; });
  const lines = orders.map((order) => clockLine(order.length ? clockOf(order[0]) : 0, iteration.switchLatency));
  const run = (i, start) => (clockOf(i) > 0 ? lines[rank[i]].run(types[type[i]], start) : optionOf(iteration, plan, i));
  const ended = (i, end) => clockOf(i) > 0 && lines[rank[i]].request(clockOf(next[i]), end);
  const first = walk(iteration, plan, run, ended);
  lines.forEach((line) => line.restart(first.makespan));
  return walk(iteration, plan, run, ended);
}

function optionOf({ type, types }, plan, i) {
  const { time_s, energy_j } = types[type[i]];
  return { time: time_s[plan[i]], energy: energy_j[plan[i]] };
}

/** run(i, start) returns time and energy of a computation; ended(i, end) follows. */
function walk(iteration, plan, run, ended) {
  const { count, rank, incoming } = iteration;
  const { first, before, latency } = incoming;
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  const energyOf = new Float64Array(count);
  const power = new Float64Array(count);
  const decider = new Int32Array(count).fill(-1); // the predecessor whose end determines the start of a computation
  const rows = Array.from({ length: iteration.ranks }, () => []);
  let last = -1;
  let effective = 0;
  for (let i = 0; i < count; ++i) {
    for (let k = first[i]; k < first[i + 1]; ++k) {
      const ready = end[before[k]] + latency[k];
      const closer = ready === start[i] && (decider[i] < 0 || rank[before[k]] === rank[i]);
      if (ready > start[i] || closer) decider[i] = before[k];
      if (ready > start[i]) start[i] = ready;
    }
    const { time, energy } = run(i, start[i]);
    end[i] = start[i] + time;
    energyOf[i] = energy;
    power[i] = energy / time;
    effective += energy - iteration.waiting[rank[i]] * time;
    ended(i, end[i]);
    if (last < 0 || end[i] > end[last]) last = i;
    rows[rank[i]].push(i);
  }
  const makespan = last < 0 ? 0 : end[last];
  const critical = [];
  const onPath = new Uint8Array(count);
  for (let i = last; i >= 0; i = decider[i]) {
    critical.push(i);
    onPath[i] = 1;
  }
  const energy = effective + iteration.waiting.reduce((a, b) => a + b, 0) * makespan;
  return { iteration, plan, start, end, energyOf, power, rows, critical: critical.reverse(), onPath, makespan, energy };
}

/** Returns the computation on `rank` that runs at `time`, or the nearest one if `nearest`; -1 without one. */
export function computationAt(timeline, rank, time, nearest = false) {
  const row = timeline.rows[rank] ?? [];
  let low = 0;
  let high = row.length; // first bar that starts after `time`
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timeline.start[row[middle]] <= time) low = middle + 1;
    else high = middle;
  }
  const left = row[low - 1] ?? -1;
  if (left >= 0 && time < timeline.end[left]) return left;
  if (!nearest) return -1;
  const right = row[low] ?? -1;
  if (left < 0 || right < 0) return Math.max(left, right);
  return time - timeline.end[left] <= timeline.start[right] - time ? left : right;
}

/** Returns the range of power from that of a waiting rank to the highest of any bar. */
export function powerRange(timelines) {
  let high = 0;
  for (const t of timelines) for (const p of t.power) high = Math.max(high, p);
  const low = Math.min(...timelines.map((t) => Math.min(...t.iteration.waiting)));
  return { low, high: Math.max(low, high) };
}
