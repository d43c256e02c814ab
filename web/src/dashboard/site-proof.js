// The proof for the utility: limit, baseline, plan and measurement of every minute, as a table and as CSV.
import { download } from '../download.js';
import { element } from '../dom.js';
import { createVirtualRows } from '../virtual-rows.js';
import { getJson, request } from './api.js';
import { updateDomains } from './domain-choice.js';
import { stepTime } from './history-chart.js';
import { createRefresher } from './refresher.js';
import { slower } from './site-data.js';
import { count, kilowatts } from './words.js';

const rowHeight = 34;
const mostPrinted = 2000;
const steps = { minute: 60, hour: 3600, day: 86_400 };
const default_s = 3600;
const mostOfAll = 8; // domains whose proof is shown together at first
const watts = (w) => (w == null ? '' : kilowatts(w));

// heading, text, class
const columns = [
  ['Domain', (entry) => entry.domain, 'text-cell'],
  ['Limit', (entry) => watts(entry.limit_w) || 'none', ''],
  ['Baseline', (entry) => watts(entry.baseline_w), ''],
  ['Planned', (entry) => watts(entry.planned_w), 'wide'],
  ['Counted', (entry) => watts(entry.counted_w), 'roomy'],
  ['Reported', (entry) => watts(entry.reported_w), ''],
  ['Metered limit', (entry) => watts(entry.metered_limit_w), 'wide'],
  ['Metered', (entry) => watts(entry.metered_w), 'wide'],
  ['Over', (entry) => (entry.over_s > 0 ? `${entry.over_s.toLocaleString('en')} s` : ''), 'bad-cell wide'],
  ['Rate', (entry) => (entry.rate_lost == null ? '' : slower(entry.rate_lost)), 'wide'],
];

/** Text of a time for an input of type datetime-local, and back; ''/NaN: none. */
const inputText = (s) => new Date(1000 * s - 60_000 * new Date(1000 * s).getTimezoneOffset()).toISOString().slice(0, 16);
const inputTime = (text) => new Date(text).getTime() / 1000;

/** Returns { show(power), close() }. */
export function createSiteProof(parent) {
  let entries = [];
  let loadedOnce = false;
  const chosen = () => ({ from_s: inputTime(from.value), until_s: inputTime(until.value), step: step.value });
  const changed = () => refresher.ask();
  const from = element('input', { type: 'datetime-local', id: 'proof-from', onchange: changed });
  const until = element('input', { type: 'datetime-local', id: 'proof-until', onchange: changed });
  const domain = element('select', { id: 'proof-domain', onchange: changed });
  const step = element('select', { id: 'proof-step', onchange: changed }, ...Object.keys(steps).map((name) => element('option', { value: name, text: name })));
  const field = (control, label) => element('div', {}, element('label', { for: control.id, text: label }), control);
  const button = element('button', { type: 'button', text: 'Download CSV', onclick: save });
  const body = element('tbody');
  const table = element('table', { 'aria-label': 'Proof' }, element('thead', {}, element('tr', {}, element('th', { scope: 'col', text: 'Start', class: 'time-cell' }),
    ...columns.map(([text, , kind]) => element('th', { scope: 'col', class: kind, text })))), body);
  const scroller = element('div', { class: 'table proof-table', tabindex: '0', role: 'region', 'aria-label': 'Proof by step and domain', hidden: true }, table);
  const status = element('p', { class: 'empty-line', role: 'status', text: 'Loading the proof …' });
  parent.append(element('section', { id: 'site-proof', 'aria-labelledby': 'site-proof-title' },
    element('div', { class: 'heading' }, element('h3', { id: 'site-proof-title', text: 'Proof' }), button),
    element('div', { class: 'facets', role: 'group', 'aria-label': 'Time of the proof' }, field(from, 'From'), field(until, 'Until (empty: now)'), field(step, 'Step'),
      field(domain, 'Domain')), scroller, status,
    element('p', { class: 'note', text: 'Means over readings of the server that grants. Baseline: what the jobs would draw without limits, their fastest plans. ' +
      'Reported: of jobs whose ranks measure energy. Minutes are kept for a day, hours for a year. The CSV has all figures, and the rate lost by tier.' })));
  const rows = createVirtualRows(scroller, body, rowHeight, { count: () => entries.length, row });

  function target() {
    const { from_s, until_s, step: name } = chosen();
    const begin_s = Number.isNaN(from_s) ? Math.floor(Date.now() / 1000) - default_s : from_s;
    return `/v1/site/proof?step=${name}&from=${begin_s}${Number.isNaN(until_s) ? '' : `&until=${until_s}`}${domain.value && `&domain=${encodeURIComponent(domain.value)}`}`;
  }
  const refresher = createRefresher((signal) => getJson(target(), signal), (proof) => {
    entries = proof.entries;
    loadedOnce = true;
    scroller.hidden = entries.length === 0;
    status.hidden = entries.length > 0 && proof.next_s == null;
    status.textContent = entries.length === 0 ? 'Nothing is recorded in this time.' : `Only the first ${count(entries.length, 'row')}: choose a shorter time, a longer step or a domain.`;
    table.setAttribute('aria-rowcount', String(entries.length + 1));
    rows.draw();
  }, (error) => {
    if (!loadedOnce || !error.isUnreachable) status.textContent = `The server did not send the proof: ${error.message}`;
    status.hidden = false;
  }, 1000);

  function row(k) {
    const entry = entries[entries.length - 1 - k]; // the last one first
    return element('tr', { 'aria-rowindex': String(k + 2) }, element('th', { scope: 'row', class: 'time-cell', text: stepTime(entry.start_s, steps[step.value]) }),
      ...columns.map(([, text, kind]) => element('td', { class: kind, text: text(entry) })));
  }
  async function save() {
    try {
      const answer = await request(target(), { headers: { accept: 'text/csv' } });
      download('site_proof.csv', 'text/csv', await answer.text());
    } catch (error) {
      status.hidden = false;
      status.textContent = `The server did not send the proof: ${error.message}`;
    }
  }
  const print = () => rows.drawAll(mostPrinted);
  const after = () => rows.draw();
  addEventListener('beforeprint', print);
  addEventListener('afterprint', after);
  const timer = setInterval(() => !document.hidden && refresher.ask(), 60_000);
  return {
    show({ domains }) {
      const first = domain.options.length === 0;
      if (updateDomains(domain, domains, [element('option', { value: '', text: 'all' })]) && first && domains.length > mostOfAll) domain.value = domains[0].name;
      if (loadedOnce) return;
      if (!from.value) from.value = inputText(Math.floor(Date.now() / 1000) - default_s);
      refresher.ask();
    },
    close() {
      clearInterval(timer);
      refresher.close();
      rows.close();
      removeEventListener('beforeprint', print);
      removeEventListener('afterprint', after);
    },
  };
}
