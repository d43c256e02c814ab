// History of the cluster: mean power of all jobs as their ranks measured it, against what their plans say.
import { getJson } from './api.js';
import { against, stepTime } from './history-chart.js';
import { createHistoryPart } from './history.js';
import { count, estimate, kilowattHours, kilowatts } from './words.js';

// An iteration counts for the minute in which it ends, so that the power of a single minute says little.
const lengths_s = { hour: 300, day: 900, month: 3600, year: 86_400 };

/** Steps of that length from the server's; the last one ends with end_s and is left out until half of it is over. */
export function clusterSteps(buckets, step_s, end_s) {
  const steps = new Map();
  for (const bucket of buckets) {
    const start_s = bucket.start_s - (bucket.start_s % step_s);
    const sum = steps.get(start_s) ?? { start_s, iterations: 0, compared_iterations: 0, energy_j: 0, planned_energy_j: 0 };
    for (const member of ['iterations', 'compared_iterations', 'energy_j', 'planned_energy_j']) sum[member] += bucket[member] ?? 0;
    steps.set(start_s, sum);
  }
  return [...steps.values()].filter(({ start_s }) => end_s - start_s >= step_s / 2).map((sum) => {
    const power = (j) => (sum.compared_iterations > 0 ? j / Math.min(step_s, end_s - sum.start_s) : null);
    return { ...sum, power_w: power(sum.energy_j), planned_power_w: power(sum.planned_energy_j) };
  });
}

function facts(step, step_s) {
  const { iterations, compared_iterations: compared, power_w: measured, planned_power_w: planned } = step;
  const some = compared > 0;
  return [
    stepTime(step.start_s, step_s),
    ['iterations', count(iterations, 'iteration') + (compared < iterations ? `, ${compared.toLocaleString('en')} compared` : '')],
    ['measured', some ? kilowatts(measured) + against(measured, planned) : 'nothing to compare'],
    ...(some ? [['planned', estimate(kilowatts(planned))]] : []),
  ];
}

function summary(steps) {
  const sum = (member) => steps.reduce((total, step) => total + step[member], 0);
  const [iterations, compared, measured_j, planned_j] = ['iterations', 'compared_iterations', 'energy_j', 'planned_energy_j'].map(sum);
  return `${count(compared, 'iteration')} compared: ${kilowattHours(measured_j)} measured, ${estimate(kilowattHours(planned_j))} planned` +
    `${against(measured_j, planned_j)}.` +
    (compared < iterations ? ` Not counted: ${count(iterations - compared, 'iteration')} without measured energy or without a plan.` : '') +
    ' Jobs without reports are not counted. Steps without reports are gaps.';
}

/** refused(): called where the server has no such history for this reader. Returns { show({ now_s }), close() }. */
export const createClusterHistory = (parent, headingLine, refused) => createHistoryPart(parent, headingLine, {
  panels: [{ name: 'power [W]', measured: 'power_w', planned: 'planned_power_w' }],
  legend: [['measured', 'measured, mean power of the compared iterations'], ['planned', 'planned for the same iterations, est.']],
  facts,
  async load({ name, step, length_s }, now_s, signal) {
    const step_s = lengths_s[name];
    const end_s = Math.floor(now_s / 60) * 60; // servers write a minute once it is over
    const from_s = Math.max(0, Math.floor((now_s - length_s) / step_s) * step_s);
    const { buckets } = await getJson(`/v1/history?step=${step}&from=${from_s}`, signal);
    return { step_s, buckets: clusterSteps(buckets, step_s, end_s) };
  },
  nothing: (name) => `No reports: no job has reported iterations in this ${name}. A step appears when half of it is over.`,
  summary,
  /** A server of an earlier version has no such history, and a token of one team sees only some jobs. */
  fail(error) {
    if (error.isGone || error.status === 403) refused();
    return error.isGone || error.status === 403;
  },
});
