// One iteration: its computations, their clocks to choose from, and what must precede what. Built from the JSON that
// src/io/report/report_data.h describes.

/** Incoming dependencies of computation i: before[first[i]] .. before[first[i + 1] - 1], with their latencies. */
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
    if (lastOnRank.has(rank[i])) before[at++] = lastOnRank.get(rank[i]); // a rank's own order, no latency
    lastOnRank.set(rank[i], i);
    for (; next < sent.after_step.length && after === i; after += sent.after_step[++next] ?? 0) {
      latency[at] = sent.latencies_s[sent.latency[next] ?? 0];
      before[at++] = i - sent.before_back[next];
    }
  }
  first[count] = at;
  return { first, before, latency };
}

export function readIteration(data) {
  const { type, rank, microbatch } = data.computations;
  const count = type.length;
  const order = [...type.keys()].sort((a, b) => type[a] - type[b] || a - b); // how plans are sent
  return {
    count,
    type,
    rank,
    microbatch,
    types: data.types,
    ranks: data.accelerators.length,
    waiting: data.accelerators.map((n) => n * data.blocking_power_w),
    incoming: incoming(count, rank, data.dependencies),
    order,
  };
}

/** The option of every computation, from run lengths. */
export function readPlan(iteration, runs) {
  const plan = new Uint16Array(iteration.count);
  let at = 0;
  for (let k = 0; k < runs.length; k += 2) {
    for (let n = runs[k]; n > 0; --n) plan[iteration.order[at++]] = runs[k + 1];
  }
  return plan;
}

/** Every computation at its highest clock. */
export const allMaximumClock = (iteration) => new Uint16Array(iteration.count);
