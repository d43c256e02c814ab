// History of a job or of the cluster: what was measured against the plan, over an hour, a day, a month or a year. It follows
// the time.
import { element } from '../dom.js';
import { getJson, jobPath } from './api.js';
import { createHistoryChart, factsOf, planChanges } from './history-chart.js';
import { createRefresher } from './refresher.js';
import { count } from './words.js';

const hour_s = 3600;
const day_s = 24 * hour_s;
const spans = [
  { name: 'hour', step: 'minute', length_s: hour_s },
  { name: 'day', step: 'minute', length_s: day_s },
  { name: 'month', step: 'hour', length_s: 30 * day_s },
  { name: 'year', step: 'day', length_s: 365 * day_s },
];
const spacing_ms = 10_000; // a minute has few new figures
const follow_ms = 30_000;

const changed = [['changed', 'the plan changed'], ['straggled', 'a straggler was in force']];

/** Of a job. Returns { show(job), close() }. */
export const createHistory = (parent, headingLine, id) => createHistoryPart(parent, headingLine, {
  panels: [
    { name: 'time [s]', measured: 'iteration_time_s', planned: 'planned_time_s' },
    { name: 'energy [J]', measured: 'iteration_energy_j', planned: 'planned_energy_j' },
  ],
  legend: [['measured', 'measured, mean of an iteration'], ['planned', 'planned'], ...changed],
  facts: factsOf,
  /** The last page of the span is as long as the server allows; a span has fewer steps than that. */
  load: ({ step, length_s }, now_s, signal) => getJson(jobPath(id, `/history?step=${step}&from=${Math.max(0, Math.floor(now_s - length_s))}`), signal),
  nothing: (name) => `No reports: no iteration that all ranks report was measured in this ${name}.`,
  summary(buckets) {
    const sum = (member) => buckets.reduce((total, bucket) => total + (bucket[member] ?? 0), 0);
    const iterations = sum('iterations');
    const unmeasured = iterations - sum('energy_iterations');
    const changes = planChanges(buckets).length;
    return `${count(iterations, 'iteration')}` +
      (unmeasured > 0 ? `, ${unmeasured === iterations ? 'none' : `${count(iterations - unmeasured, 'one', 'ones')}`} with measured energy` : '') +
      (changes > 0 ? `, ${count(changes, 'change')} of the plan` : '') +
      (sum('straggler_iterations') > 0 ? `, ${count(sum('straggler_iterations'), 'iteration')} with a straggler in force` : '') +
      '. Steps without reports are gaps.';
  },
});

/**
 * kind: { panels, facts } of the chart; legend: [mark, text]; load(span, now_s, signal) loads { buckets, step_s };
 * nothing(name of the span) and summary(buckets): sentences. Returns { show({ now_s }), close() }.
 */
export function createHistoryPart(parent, headingLine, kind) {
  let span = spans[1];
  let chart = null;
  let now_s = Date.now() / 1000;
  const choice = element('fieldset', { class: 'switch' }, element('legend', { class: 'visually-hidden', text: 'Time shown' }),
    ...spans.map((one) => element('label', {}, element('input', { type: 'radio', name: 'history', value: one.name, checked: one === span,
      onchange: () => choose(one) }), one.name)));
  headingLine.append(choice);
  const legend = element('ul', { class: 'legend', hidden: true },
    ...kind.legend.map(([mark, text]) => element('li', {}, element('i', { class: `mark ${mark}` }), text)));
  const holder = element('div', { hidden: true });
  const status = element('p', { class: 'empty-line', role: 'status', text: 'Loading the history …' });
  const summary = element('p', { class: 'note', hidden: true });
  parent.append(legend, holder, summary, status);

  let refresher = makeRefresher();
  function makeRefresher() {
    const wanted = span;
    return createRefresher((signal) => kind.load(wanted, now_s, signal), (history) => draw(history, wanted), (error) => {
      if (kind.fail?.(error)) return;
      if (!chart) say(`The server did not send the history: ${error.message}`);
    }, spacing_ms);
  }
  function choose(one) {
    span = one;
    refresher.close();
    refresher = makeRefresher();
    refresher.ask();
  }
  function say(text) {
    legend.hidden = holder.hidden = summary.hidden = true;
    status.hidden = false;
    if (status.textContent !== text) status.textContent = text;
  }
  function draw(history, { name, length_s }) {
    const { buckets } = history;
    if (buckets.length === 0) {
      chart?.dispose();
      chart = null;
      return say(kind.nothing(name));
    }
    legend.hidden = holder.hidden = summary.hidden = false;
    status.hidden = true;
    chart ??= createHistoryChart(holder, kind);
    chart.show(history, now_s - length_s, now_s);
    summary.textContent = kind.summary(buckets);
  }

  const timer = setInterval(() => {
    if (document.hidden) return;
    now_s += follow_ms / 1000;
    refresher.ask();
  }, follow_ms);
  return {
    show(job) {
      now_s = job.now_s ?? Date.now() / 1000;
      refresher.ask();
    },
    close() {
      clearInterval(timer);
      refresher.close();
      chart?.dispose();
    },
  };
}
