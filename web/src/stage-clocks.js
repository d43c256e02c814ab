// Clocks of a plan by stage and instruction: lowest, mean and highest, each with a bar on one common scale.
import { element } from './dom.js';
import { megahertz } from './format.js';

/** Returns [{ stage, instruction, count, lowest, mean, highest }] in the order of stages; `plan` as readPlan() returns it. */
export function stageClocks(iteration, plan) {
  const { count, type, types } = iteration;
  const rows = types.map(({ stage, instruction }) => ({ stage, instruction, count: 0, lowest: Infinity, mean: 0, highest: 0 }));
  for (let i = 0; i < count; ++i) {
    const row = rows[type[i]];
    const clock = types[type[i]].clock_mhz[plan[i]];
    row.lowest = Math.min(row.lowest, clock);
    row.highest = Math.max(row.highest, clock);
    row.mean += (clock - row.mean) / ++row.count;
  }
  return rows.filter((row) => row.count > 0).sort((a, b) => a.stage - b.stage); // a stable sort: instructions keep their order
}

/** Makes the table. Returns { show(plan) }. */
export function createStageClocks(parent, iteration) {
  const all = iteration.types.flatMap(({ clock_mhz }) => clock_mhz).filter((clock) => clock > 0);
  const [low, high] = all.reduce(([a, b], clock) => [Math.min(a, clock), Math.max(b, clock)], [Infinity, 0]);
  const body = element('tbody');
  parent.append(
    element('div', { class: 'table stage-clocks', tabindex: '0', role: 'region', 'aria-label': 'Clocks per stage and instruction' },
      element('table', {}, element('thead', {}, element('tr', {}, ...['stage', 'instruction', 'lowest, MHz', 'mean', 'highest'].map((text) =>
        element('th', { scope: 'col', text })), element('th', { scope: 'col', class: 'bar-cell' }, `${low} MHz`, element('span', { text: `${high} MHz` })))), body)),
    element('p', { class: 'note', text: 'Of the chosen plan, over all microbatches. The bar spans from the lowest to the highest clock; the mark is the ' +
      'mean. Stages that others wait for run at high clocks; the rest slows down.' }));

  const share = (clock) => (high > low ? (100 * (clock - low)) / (high - low) : 100);
  function bar({ lowest, mean, highest }) {
    const [from, to] = [share(lowest), share(highest)];
    return element('td', { class: 'bar-cell' }, element('div', { class: 'clock-bar', 'aria-hidden': 'true' },
      element('i', { style: `left:${from}%;width:${to - from}%` }), element('b', { style: `left:${share(mean)}%` })));
  }
  return {
    show(plan) {
      body.replaceChildren(...stageClocks(iteration, plan).map((row) => {
        const { stage, instruction, lowest, mean, highest } = row;
        const fixed = highest === 0;
        return element('tr', {}, element('th', { scope: 'row', text: stage < 0 ? 'all' : String(stage) }),
          element('td', { text: instruction.replaceAll('_', ' ') }),
          ...(fixed ? ['', '', ''].map((_, k) => element('td', { text: k === 1 ? megahertz(0) : '' }))
            : [lowest, Math.round(mean), highest].map((clock) => element('td', { text: String(clock) }))),
          fixed ? element('td', { class: 'bar-cell' }) : bar(row));
      }));
    },
  };
}
