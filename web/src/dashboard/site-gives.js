// Who gives watts up: tiers, and jobs by watts below their fastest plan, with their rate. Only the visible rows exist as elements.
import { element } from '../dom.js';
import { createVirtualRows } from '../virtual-rows.js';
import { jobLink } from './job-list.js';
import { gives, isUnconfirmed, rate, slower, tierName, tiersOf } from './site-data.js';
import { count, kilowatts } from './words.js';

const rowHeight = 40;
const mostPrinted = 2000;
const watts = (w) => (w == null ? '' : kilowatts(w));
const states = { granted: 'granted', unlimited: 'no limit applies', fixed: 'not controlled', silent: 'no rank calls' };

/** How a job stands to its grant, in words. */
export const grantWords = (job) => (isUnconfirmed(job) ? 'not confirmed yet' : states[job.state] ?? String(job.state));

// key, heading, value to sort by, text, class
const columns = [
  ['name', 'Job', (job) => job.name || job.job, (job) => job.name || job.job, 'job-cell'],
  ['domain', 'Domain', (job) => job.domain, (job) => job.domain, 'text-cell wide'],
  ['gives', 'Gives', gives, (job) => watts(gives(job)), ''],
  ['rate', 'Rate', (job) => job.rate ?? -1, (job) => rate(job.rate), ''],
  ['lost', 'By limits', (job) => job.rate_lost ?? -1, (job) => (job.rate_lost == null ? '' : slower(job.rate_lost)), 'wide'],
  ['least', 'Least rate', (job) => job.least_rate, (job) => (job.least_rate > 0 ? rate(job.least_rate) : ''), 'wide'],
  ['priority', 'Priority', (job) => job.priority ?? 1, (job) => String(job.priority ?? 1), 'roomy'],
  ['planned', 'Planned', (job) => job.planned_w ?? 0, (job) => watts(job.planned_w), 'wide'],
  ['granted', 'Granted', (job) => job.granted_w ?? -1, (job) => watts(job.granted_w), 'wide'],
  ['state', 'State', grantWords, grantWords, 'text-cell'],
];
const ascending = new Set(['name', 'domain', 'state', 'rate']); // at the first click

/** Returns { show(power), close() }. */
export function createSiteGives(parent) {
  const state = { jobs: [], sort: 'gives', down: true };
  const tiers = element('ul', { class: 'cards', 'aria-label': 'Tiers' });
  const heads = new Map(columns.map(([key, name, , , kind]) => [key, element('th', { scope: 'col', class: kind },
    element('button', { type: 'button', text: name, onclick: () => sortBy(key) }))]));
  const body = element('tbody');
  const table = element('table', { 'aria-label': 'Jobs of the site' }, element('thead', {}, element('tr', {}, ...heads.values())), body);
  const scroller = element('div', { class: 'table cluster-table gives-table', tabindex: '0', role: 'region', 'aria-label': 'Jobs by watts given up' }, table);
  const none = element('p', { class: 'empty-line', text: 'No job runs.' });
  parent.append(tiers, scroller, none);
  const rows = createVirtualRows(scroller, body, rowHeight, { count: () => state.jobs.length, row });

  function row(k) {
    const job = state.jobs[k];
    return element('tr', { 'aria-rowindex': String(k + 2), 'data-job': job.job, title: job.reason },
      ...columns.map(([key, , , text, kind]) => (key === 'name'
        ? element('th', { scope: 'row', class: kind }, element('a', { href: jobLink(job.job), text: text(job) }))
        : element('td', { class: key === 'state' && (isUnconfirmed(job) || job.state === 'fixed') ? `${kind} bad-cell` : kind, text: text(job) }))));
  }
  function draw() {
    const [, , valueOf] = columns.find(([key]) => key === state.sort);
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (state.down ? -1 : 1);
    state.jobs.sort((a, b) => order(valueOf(a), valueOf(b)) || (a.job < b.job ? -1 : 1));
    for (const [key, head] of heads) head.ariaSort = key === state.sort ? (state.down ? 'descending' : 'ascending') : null;
    table.setAttribute('aria-rowcount', String(state.jobs.length + 1));
    scroller.hidden = state.jobs.length === 0;
    none.hidden = state.jobs.length > 0;
    rows.draw();
  }
  function sortBy(key) {
    state.down = state.sort === key ? !state.down : !ascending.has(key);
    state.sort = key;
    scroller.scrollTop = 0;
    draw();
  }
  let shown = null;
  const print = () => rows.drawAll(mostPrinted);
  addEventListener('beforeprint', print);
  addEventListener('afterprint', draw);
  return {
    show({ jobs }) {
      if (jobs === shown) return;
      shown = jobs;
      state.jobs = [...jobs];
      tiers.replaceChildren(...tiersOf(jobs).map((tier) => element('li', { class: 'card' }, element('b', { text: tierName(tier.least_rate) }),
        element('span', { text: count(tier.jobs, 'job') }), element('span', { text: `gives ${kilowatts(tier.gives_w)}` }),
        element('span', { class: 'dim', text: slower(tier.rate_lost) }))));
      draw();
    },
    close() {
      rows.close();
      removeEventListener('beforeprint', print);
      removeEventListener('afterprint', draw);
    },
  };
}
