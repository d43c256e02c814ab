// Savings of the plan in force against everything at maximum clock: now, per day, and so far; as energy, cost and carbon.
import { element } from '../dom.js';
import { percent, seconds, change } from '../format.js';
import { createFactors, figure } from './factors.js';
import { count, energy, estimate, kilowattHours, possibleText, would } from './words.js';

/** Makes the figures at the top of a job. Returns { show(job) }. */
export function createSavings(parent) {
  let job = null;
  const figures = element('dl', { class: 'figures', id: 'figures' });
  const factors = createFactors(draw);
  parent.append(figures, factors.form);

  /** Returns cost and carbon of saved energy, such as "€3.10, 4.7 kg CO₂"; empty without factors. */
  const worth = (j) => [factors.cost(j), factors.emissions(j)].filter(Boolean).join(', ');

  /** Describes the measured energy of an iteration under the plan in force. */
  function measuredNow({ measured, measured_all_max: highest }) {
    if (!measured || !highest) return '';
    const saved = highest.energy_j - measured.energy_j;
    return `measured: ${percent((100 * saved) / highest.energy_j)}, ${energy(saved)} of ${energy(highest.energy_j)}`;
  }

  /** Describes which part of the sum is estimated, and why. */
  function estimatedPart(total) {
    const iterations = total.estimated_iterations ?? 0;
    if (iterations === 0) return total.measured && 'all of it measured by the GPUs’ energy counters';
    const why = 'estimated from the profile, because no energies can be compared';
    if (iterations >= total.iterations) return `all of it ${why}`;
    return `${energy(total.estimated_saved_j)} in ${count(iterations, 'iteration')} of it ${why}`;
  }

  function draw() {
    const { plan, savings } = job;
    factors.use(savings?.factors);
    const now = savings?.per_iteration;
    const waits = savings?.waits_not_counted; // of a paced job
    const without = waits && `not counted: waits of pacing, ${energy(waits.energy_j)} est. in ${seconds(waits.wait_s)} an iteration`;
    const made = [];
    if (savings?.possible) {
      made.push(figure('Would save', would(possibleText(savings.possible), savings.possible.modeled),
        savings.possible.modeled ? 'if all ranks set their clocks, by a model of the GPU: measure before relying on it'
          : 'if all ranks set their clocks',
        savings.none_because ?? ''));
    }
    if (now) {
      const saved = now.all_max_energy_j - now.energy_j;
      const perDay = (saved / Math.max(now.time_s, waits?.period_s ?? 0)) * 86_400;
      made.push(
        figure('Plan saves', estimate(percent((100 * saved) / now.all_max_energy_j)),
          `against everything at maximum clock${job.facts?.power ? `, power ${job.facts.power}` : ''}`,
          `${energy(saved)} of ${energy(now.all_max_energy_j)} an iteration, estimated from the profile`, measuredNow(savings), without),
        figure('Plan saves in a day', estimate(kilowattHours(perDay)), energy(perDay), worth(perDay), without),
        figure('Iteration', estimate(seconds(now.time_s)), now.all_max_time_s > 0 &&
          `${change((100 * (now.time_s - now.all_max_time_s)) / now.all_max_time_s)} against maximum clock`,
          `${energy(now.energy_j)}, ${(now.energy_j / now.time_s / 1000).toLocaleString('en', { maximumSignificantDigits: 3 })} kW`));
    }
    const total = savings?.total;
    if (total) {
      made.push(figure('Saved so far', estimate(kilowattHours(total.saved_j), total.estimated_iterations > 0),
        `${energy(total.saved_j)} in ${count(total.iterations, 'iteration')}` +
        (total.all_max_energy_j > 0 ? `, ${percent((100 * total.saved_j) / total.all_max_energy_j)}` : ''), worth(total.saved_j),
        estimatedPart(total), waits && 'waits of pacing are not counted'));
    } else if (savings?.no_total_because) {
      made.push(figure('Saved so far', 'no reports', 'the ranks report no iterations, so nothing is counted'));
    }
    if (plan?.t_opt_s > 0) {
      made.push(figure('Planned for, T_opt', seconds(plan.t_opt_s), plan.reason ?? ''));
    }
    figures.replaceChildren(...made);
    figures.hidden = made.length === 0;
    factors.form.hidden = !now && !total;
  }
  return {
    show(shown) {
      job = shown;
      draw();
    },
  };
}
