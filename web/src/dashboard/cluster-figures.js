// Figures of the cluster: energy, cost and emissions saved, power now against everything at maximum clock. What is measured
// and what is estimated are counted apart; a job whose ranks report no iterations has no power.
import { element } from '../dom.js';
import { change } from '../format.js';
import { createFactors, figure } from './factors.js';
import { count, estimate, isOver, kilowattHours, kilowatts } from './words.js';

export const hasPlan = (job) => job.state === 'deployed';
/** Whether the ranks of a job with a plan have reported no iterations. */
export const isSilent = (job) => hasPlan(job) && job.power_w == null;

/** How the measured power differs from that of the plans, of jobs that measure; empty without such jobs. */
export const againstPlan = ({ compared, measured_w: measured, planned_w: planned }) =>
  (compared > 0 ? change((100 * (measured - planned)) / planned) : '');

/** Sums of jobs; energies in J, power in W. measured_w and planned_w: of the jobs `compared`, which measure. */
export function totalsOf(jobs) {
  const sum = { jobs: jobs.length, live: 0, ranks: 0, stragglers: 0, silent: 0, saved_j: 0, estimated_j: 0,
    power_w: 0, all_max_w: 0, estimated_w: 0, powered: 0, estimated: 0, compared: 0, measured_w: 0, planned_w: 0 };
  for (const job of jobs) {
    sum.saved_j += job.saved_j ?? 0;
    sum.estimated_j += job.estimated_saved_j ?? 0;
    if (isOver(job.state)) continue;
    ++sum.live;
    sum.ranks += job.ranks ?? 0;
    sum.stragglers += job.stragglers ?? 0;
    if (isSilent(job)) ++sum.silent;
    if (job.power_w == null || job.all_max_power_w == null) continue;
    ++sum.powered;
    sum.power_w += job.power_w;
    sum.all_max_w += job.all_max_power_w;
    if (!job.power_measured) {
      ++sum.estimated;
      sum.estimated_w += job.power_w;
    } else if (job.planned_power_w > 0) {
      ++sum.compared;
      sum.measured_w += job.power_w;
      sum.planned_w += job.planned_power_w;
    }
  }
  return sum;
}

/** Returns { show(jobs, factors) }; calls onChange() when the reader changes price or carbon. */
export function createClusterFigures(parent, onChange) {
  const figures = element('dl', { class: 'figures', id: 'cluster-figures' });
  const factors = createFactors(onChange);
  parent.append(figures, factors.form);

  function power(sum) {
    const silent = sum.silent > 0 && `not counted: ${count(sum.silent, 'job')} without reports`;
    if (sum.powered === 0) return figure('Power now', 'not known', 'no job has reported iterations under a plan', silent);
    const from = sum.estimated === 0 ? `measured in ${count(sum.powered, 'job')}`
      : `${kilowatts(sum.estimated_w)} of it estimated from the profile, in ${count(sum.estimated, 'job')}`;
    return figure('Power now', kilowatts(sum.power_w),
      `${kilowatts(sum.all_max_w)} with everything at maximum clock: ${change((100 * (sum.power_w - sum.all_max_w)) / sum.all_max_w)}`,
      from, silent);
  }
  /** An estimated power is the plan's own, so there is nothing to compare. */
  function againstPlans(sum) {
    const { compared, measured_w: measured, planned_w: planned, silent, estimated } = sum;
    const left = [silent > 0 && `${count(silent, 'job')} without reports`, estimated > 0 && `${count(estimated, 'job')} without measured power`]
      .filter(Boolean).join(', ');
    return figure('Power against plan', againstPlan(sum) || 'not known', compared > 0
      ? `${kilowatts(measured)} measured, ${estimate(kilowatts(planned))} planned, in ${count(compared, 'job')}` : 'no job under a plan measures its power',
    left && `not counted: ${left}`);
  }
  function saved({ saved_j, estimated_j }) {
    return figure('Saved so far', kilowattHours(saved_j), `${kilowattHours(saved_j - estimated_j)} measured`,
      `${kilowattHours(estimated_j)} estimated from the profile`);
  }
  const worth = (name, text, { estimated_j }, estimated) =>
    text && figure(name, text, estimated_j !== 0 && `${estimated} of it from estimated energy`);

  return {
    show(jobs, servers) {
      const sum = totalsOf(jobs);
      factors.use(servers);
      figures.replaceChildren(...[
        saved(sum),
        worth('Cost saved', factors.cost(sum.saved_j), sum, factors.cost(sum.estimated_j)),
        worth('Emissions saved', factors.emissions(sum.saved_j), sum, factors.emissions(sum.estimated_j)),
        power(sum),
        againstPlans(sum),
        figure('Live jobs', sum.live.toLocaleString('en'), count(sum.ranks, 'rank'), count(sum.stragglers, 'straggler')),
      ].filter(Boolean));
    },
  };
}
