// Hosts of all live jobs, as a page: a row for each job on a host, with the clocks that its plan wants and that are set, what has
// gone wrong with them, and the last call. Sortable; only the visible rows exist as elements.
import { element } from '../dom.js';
import { createVirtualRows } from '../virtual-rows.js';
import { getJson } from './api.js';
import { jobLink } from './job-list.js';
import { clockRange, clockTime, count, wordsOf } from './words.js';

const pageHosts = 5000;
const mostHosts = 50_000;
const rowHeight = 40;
const mostPrinted = 2000;
const number = (value) => (value == null ? '' : value.toLocaleString('en'));
const reports = ({ reporting }) => (reporting > 0 ? null : 'no reports');

/** Whether an operator should look: ranks without the right to set clocks, failed or late clocks, throttling. */
const hasTrouble = (row) => [row.without_control, row.clocks_failed, row.clocks_late, row.throttled_iterations].some((value) => value > 0);

// key, heading, value to sort by, text, class
const columns = [
  ['host', 'Host', (row) => row.host ?? '', (row) => row.host ?? 'not known', 'job-cell'],
  ['job', 'Job', (row) => row.job_name || row.job, (row) => row.job_name || row.job, 'text-cell'],
  ['ranks', 'Ranks', (row) => row.ranks, (row) => number(row.ranks), 'wide'],
  ['control', 'No control', (row) => row.without_control ?? 0, (row) => (row.without_control > 0 ? number(row.without_control) : ''), 'trouble'],
  ['wanted', 'Wanted', (row) => row.wanted_most_mhz, (row) => clockRange(row.wanted_least_mhz, row.wanted_most_mhz), 'wide clock-cell'],
  ['set', 'Set', (row) => row.set_most_mhz, (row) => reports(row) ?? clockRange(row.set_least_mhz, row.set_most_mhz), 'wide clock-cell'],
  ['failed', 'Failed', (row) => row.clocks_failed, (row) => number(row.clocks_failed), 'trouble'],
  ['late', 'Late', (row) => row.clocks_late, (row) => number(row.clocks_late), 'wide'],
  ['throttled', 'Throttled', (row) => row.throttled_iterations, (row) => number(row.throttled_iterations), ''],
  ['seen', 'Last call', (row) => row.last_heard_s, (row) => (row.last_heard_s > 0 ? clockTime(row.last_heard_s) : 'none'), 'wide'],
];
const ascending = new Set(['host', 'job', 'seen']); // at the first click

/** Loads the hosts of all live jobs, at most `mostHosts`; a server of an earlier version has none. */
export async function loadHosts(signal) {
  const hosts = [];
  try {
    for (let after = null; hosts.length < mostHosts;) {
      const page = await getJson(`/v1/hosts?limit=${pageHosts}${after === null ? '' : `&after=${encodeURIComponent(after)}`}`, signal);
      hosts.push(...page.hosts);
      if (!page.next) return { hosts, isWhole: true };
      after = page.next;
    }
  } catch (error) {
    if (!error.isGone) throw error;
  }
  return { hosts, isWhole: hosts.length < mostHosts };
}

/** Returns { show({ hosts, isWhole }), fail(error), close() }. */
export function createHostsView(parent) {
  const state = { loaded: null, rows: [], sort: 'host', down: false };
  const summary = element('p', { class: 'list-summary', role: 'status' });
  const words = element('input', { type: 'search', id: 'host-words', oninput: draw });
  const trouble = element('select', { id: 'host-trouble', onchange: draw }, element('option', { value: '', text: 'all' }),
    element('option', { value: 'trouble', text: 'with trouble' }));
  const field = (control, label) => element('div', {}, element('label', { for: control.id, text: label }), control);
  const heads = new Map(columns.map(([key, name, , , kind]) => [key, element('th', { scope: 'col', class: kind },
    element('button', { type: 'button', text: name, onclick: () => sortBy(key) }))]));
  const body = element('tbody');
  const table = element('table', { 'aria-label': 'Hosts' }, element('thead', {}, element('tr', {}, ...heads.values())), body);
  const scroller = element('div', { class: 'table cluster-table host-table', tabindex: '0', role: 'region', 'aria-label': 'Hosts of all jobs' }, table);
  const none = element('p', { class: 'empty-line', text: 'Loading the hosts …' });
  const root = element('article', { 'aria-labelledby': 'hosts-title', class: 'cluster' },
    element('div', { class: 'heading' }, element('h2', { id: 'hosts-title', text: 'Hosts' }), summary),
    element('div', { class: 'facets', role: 'group', 'aria-label': 'Choose hosts' }, field(words, 'Host or job'), field(trouble, 'Show')), scroller, none,
    element('p', { class: 'note', text: 'Wanted: lowest and highest clock of the plan in force. Set: the last clocks that the GPUs accepted. Failed and late ' +
      'clock changes and throttled iterations count from the start of each rank’s process, as it reports them about every 30 s.' }));
  parent.replaceChildren(root);
  document.title = 'Hosts - Perseus';
  const rows = createVirtualRows(scroller, body, rowHeight, { count: () => state.rows.length, row });

  function row(k) {
    const one = state.rows[k];
    const shown = columns.map(([, , , text]) => text(one));
    return element('tr', { 'aria-rowindex': String(k + 2), 'data-host': one.host ?? '', title: one.control_reason },
      element('th', { scope: 'row', class: 'job-cell', text: shown[0], title: shown[0] }),
      element('td', { class: 'text-cell' }, element('a', { href: jobLink(one.job), text: shown[1] })),
      ...columns.slice(2).map(([, , , , kind], n) => element('td', { class: shown[n + 2] === 'no reports' ? `${kind} quiet` : kind, text: shown[n + 2] })));
  }

  function compare(a, b) {
    if (a == null || b == null) return (a == null) - (b == null); // nothing known comes last
    const order = a < b ? -1 : a > b ? 1 : 0;
    return state.down ? -order : order;
  }
  function draw() {
    if (state.loaded === null) return;
    const { hosts, isWhole } = state.loaded;
    const wanted = wordsOf(words.value);
    const [, , valueOf] = columns.find(([key]) => key === state.sort);
    state.rows = hosts.filter((one) => (!trouble.value || hasTrouble(one)) &&
      wanted.every((word) => `${one.host ?? ''} ${one.job_name ?? ''} ${one.job}`.toLowerCase().includes(word)))
      .sort((a, b) => compare(valueOf(a), valueOf(b)));
    for (const [key, head] of heads) head.ariaSort = key === state.sort ? (state.down ? 'descending' : 'ascending') : null;
    table.setAttribute('aria-rowcount', String(state.rows.length + 1));
    scroller.hidden = state.rows.length === 0;
    rows.draw();
    none.hidden = state.rows.length > 0 && isWhole;
    none.textContent = hosts.length === 0 ? 'No live job has registered ranks.' : state.rows.length === 0 ? 'No host matches.'
      : `Only the first ${number(hosts.length)} are loaded: perseus host list prints all.`;
    const text = hosts.length === 0 ? '' : state.rows.length === hosts.length ? count(hosts.length, 'row') : `${number(state.rows.length)} of ${count(hosts.length, 'row')}`;
    if (summary.textContent !== text) summary.textContent = text;
  }
  function sortBy(key) {
    state.down = state.sort === key ? !state.down : !ascending.has(key);
    state.sort = key;
    scroller.scrollTop = 0;
    draw();
  }
  const print = () => rows.drawAll(mostPrinted);
  addEventListener('beforeprint', print);
  addEventListener('afterprint', draw);

  return {
    show(loaded) {
      state.loaded = loaded;
      draw();
    },
    fail(error) {
      if (state.loaded === null) none.textContent = `The server did not send the hosts: ${error.message}`;
    },
    close() {
      rows.close();
      removeEventListener('beforeprint', print);
      removeEventListener('afterprint', draw);
      root.remove();
    },
  };
}
