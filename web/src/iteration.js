// One iteration: its computations, their selectable clocks, and their dependencies, from the JSON that
// src/io/report/report_data.h describes.

/** Returns incoming dependencies: those of computation i are before[first[i]] .. before[first[i + 1] - 1], with latencies. */
function incoming(count, rank, sent) {
  const lastOnRank = new Map();
  const first = new Uint32Array(count + 1);
  const before = new Uint32Array(count + sent.after_step.length);
  const latency = new Float64Array(before.length);
  let at = 0;
  let next = 0;
  let after = sent.after_step[0] ?? -1;
  for (let i = 0; i < count; ++i) {
    first[i] = at;
    if (lastOnRank.has(rank[i])) before[at++] = lastOnRank.get(rank[i]); // order of the rank itself, no latency
    lastOnRank.set(rank[i], i);
    for (; next < sent.after_step.length && after === i; after += sent.after_step[++next] ?? 0) {
      latency[at] = sent.latencies_s[sent.latency[next] ?? 0];
      before[at++] = i - sent.before_back[next];
    }
  }
  first[count] = at;
  return { first, before, latency };
}

/** Returns [before, after, latency] of the transfers above three times the median latency, as src/io/report/timeline.h. */
function slowTransfers(count, rank, { first, before, latency }) {
  const transfers = [];
  for (let i = 0; i < count; ++i) {
    for (let k = first[i]; k < first[i + 1]; ++k) {
      if (rank[before[k]] !== rank[i]) transfers.push([before[k], i, latency[k]]);
    }
  }
  const sorted = Float64Array.from(transfers, (t) => t[2]).sort();
  const median = sorted[(sorted.length - 1) >> 1];
  return transfers.filter((t) => t[2] > 3 * median);
}

export function readIteration(data) {
  const { type, rank, microbatch } = data.computations;
  const count = type.length;
  const order = [...type.keys()].sort((a, b) => type[a] - type[b] || a - b); // the order in which plans are sent
  const dependencies = incoming(count, rank, data.dependencies);
  return {
    count,
    type,
    rank,
    microbatch,
    types: data.types,
    ranks: data.accelerators.length,
    waiting: data.accelerators.map((n) => n * data.blocking_power_w),
    incoming: dependencies,
    slow: slowTransfers(count, rank, dependencies),
    order,
    switchLatency: data.switch_latency_s ?? 0,
  };
}

/** Decodes the option of every computation from run lengths. */
export function readPlan(iteration, runs) {
  const plan = new Uint16Array(iteration.count);
  let at = 0;
  for (let k = 0; k < runs.length; k += 2) {
    for (let n = runs[k]; n > 0; --n) plan[iteration.order[at++]] = runs[k + 1];
  }
  return plan;
}

/** Returns the plan with every computation at its highest clock. */
export const allMaximumClock = (iteration) => new Uint16Array(iteration.count);
