// Table of all points, of which only the visible rows exist as elements; also as a CSV file. Print has all of a short table; of
// a long one every n-th point, the fastest and the chosen one.
import { element } from './dom.js';
import { change, joules, percent, seconds, watts } from './format.js';
import { createVirtualRows } from './virtual-rows.js';

const rowHeight = 34;
const mostPrinted = 60;

const columns = [
  ['point', (f, p) => String(p), (f, p) => p],
  ['time', (f, p) => seconds(f.points.time_s[p]), (f, p) => f.points.time_s[p], 'time_s'],
  ['energy', (f, p) => joules(f.points.energy_j[p]), (f, p) => f.points.energy_j[p], 'energy_j'],
  ['against max', (f, p) => change(against(f, p)), (f, p) => against(f, p).toFixed(4), 'against_max_pct'],
  ['effective', (f, p) => joules(f.points.effective_energy_j[p]), (f, p) => f.points.effective_energy_j[p],
    'effective_energy_j', 'wide expert'],
  ['bound', (f, p) => joules(f.points.bound_j[p]), (f, p) => f.points.bound_j[p], 'bound_j', 'wide'],
  ['gap', (f, p) => percent(gap(f, p)), (f, p) => gap(f, p).toFixed(4), 'gap_pct'],
  ['mean power', (f, p) => watts(power(f, p)), (f, p) => power(f, p).toFixed(3), 'average_power_w', 'wide'],
];
const against = (f, p) => (100 * (f.points.energy_j[p] - f.summary.all_max.energy_j)) / f.summary.all_max.energy_j;
const gap = (f, p) => (100 * (f.points.energy_j[p] - f.points.bound_j[p])) / f.points.bound_j[p];
const power = (f, p) => f.points.energy_j[p] / f.points.time_s[p];

export function pointsCsv(frontier) {
  const lines = [columns.map(([name, , , key]) => key ?? name).join(',')];
  frontier.points.time_s.forEach((_, p) => lines.push(columns.map(([, , value]) => value(frontier, p)).join(',')));
  return `${lines.join('\n')}\n`;
}

/** The points to print, and the distance between those printed regardless of the choice. */
export function printedPoints(count, chosen) {
  const step = Math.ceil(count / mostPrinted);
  const points = new Set([chosen]);
  for (let p = count - 1; p >= 0; p -= step) points.add(p);
  return { step, points: [...points].sort((a, b) => a - b) };
}

/** Returns { choose(point) }. */
export function createPointsTable(parent, frontier, onChoose) {
  const count = frontier.points.time_s.length;
  const state = { chosen: count - 1 };
  const head = element('tr', {}, ...columns.map(([name, , , , kind]) => element('th', { scope: 'col', class: kind, text: name })));
  const body = element('tbody');
  const table = element('table', { 'aria-rowcount': count + 1 }, element('thead', {}, head), body);
  const scroller = element('div', { class: 'table', tabindex: '0', role: 'region',
    'aria-label': 'Points of the frontier. Arrow keys choose one.' }, table);
  const printedNote = element('p', { class: 'note', hidden: true });
  parent.append(scroller, printedNote);

  function row(p) {
    const cells = columns.map(([, text, , , kind], k) =>
      k === 0
        ? element('th', { scope: 'row' }, element('button', { type: 'button', tabindex: '-1', 'data-point': p, text: text(frontier, p),
            'aria-label': `Choose point ${p}` }))
        : element('td', { class: kind, text: text(frontier, p) }));
    return element('tr', { 'aria-rowindex': p + 2, 'data-point': p, 'aria-current': p === state.chosen && 'true' }, ...cells);
  }
  const rows = createVirtualRows(scroller, body, rowHeight, { count: () => count, row });

  body.addEventListener('click', (event) => {
    const point = event.target.closest('[data-point]')?.dataset.point;
    if (point !== undefined) onChoose(Number(point));
  });
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -count, End: count };
  scroller.addEventListener('keydown', (event) => {
    if (!(event.key in steps)) return;
    event.preventDefault();
    onChoose(Math.min(count - 1, Math.max(0, state.chosen + steps[event.key])));
  });
  addEventListener('beforeprint', () => {
    const { step, points } = printedPoints(count, state.chosen);
    rows.drawOnly(points);
    printedNote.hidden = step === 1;
    printedNote.textContent = `${points.length} of ${count} points: one in ${step} from the fastest, ${count - 1}, on, and the chosen one, ${state.chosen}. ` +
      'The CSV file has all of them.';
  });
  addEventListener('afterprint', () => {
    printedNote.hidden = true;
    rows.draw();
  });
  rows.draw();
  return {
    choose(point) {
      state.chosen = point;
      rows.show(point);
      rows.draw();
    },
  };
}
