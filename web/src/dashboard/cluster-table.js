// Table of the cluster's jobs: sortable, grouped, one element per visible row. Arrow keys, Page Up, Page Down, Home and End
// move over the rows; Enter opens a job, or opens and closes a group.
import { element } from '../dom.js';
import { percent, seconds } from '../format.js';
import { createVirtualRows } from '../virtual-rows.js';
import { againstPlan, isSilent, totalsOf } from './cluster-figures.js';
import { jobLink } from './job-list.js';
import { count, duration, estimate, isOver, jobState, kilowattHours, kilowatts, would } from './words.js';

const rowHeight = 40;
const mostPrinted = 2000;
const quiet = 'no reports';

// key, heading, value to sort by, text of a job, class; text of a group's sums
const columns = [
  ['name', 'Job', (job) => (job.name || job.id).toLowerCase(), (job) => job.name || job.id, 'job-cell'],
  ['state', 'State', (job) => jobState(job)[0], (job) => jobState(job)[0], 'text-cell'],
  ['gpu', 'GPU', (job) => job.accelerator, (job) => job.accelerator ?? '', 'text-cell wide'],
  ['ranks', 'Ranks', (job) => job.ranks, (job) => ranksOf(job), 'wide', (sum) => sum.ranks.toLocaleString('en')],
  ['iteration', 'Iteration', (job) => job.iteration_time_s, (job) => (job.iteration_time_s > 0 ? seconds(job.iteration_time_s) : ''), 'wide'],
  ['power', 'Power', (job) => job.power_w, (job) => (isSilent(job) ? quiet
    : job.power_w == null ? '' : estimate(kilowatts(job.power_w), !job.power_measured)), 'sum-cell wide',
    (sum) => (sum.powered > 0 ? estimate(kilowatts(sum.power_w), sum.estimated > 0) : '')],
  ['against', 'Against plan', (job) => (isCompared(job) ? job.power_w / job.planned_power_w : null), (job) => (isSilent(job) ? quiet
    : isCompared(job) ? againstPlan(totalsOf([job])) : ''), 'sum-cell roomy', againstPlan],
  ['plan', 'Plan saves', (job) => job.saved_pct, (job) => (job.possible_saving_pct != null
    ? `would: ${would(percent(job.possible_saving_pct), job.possible_saving_modeled)}` : job.saved_pct == null ? '' : estimate(percent(job.saved_pct))), 'sum-cell wide'],
  ['saved', 'Saved', (job) => (isSilent(job) && !job.saved_j ? null : job.saved_j), (job) => (isSilent(job) && !job.saved_j ? quiet
    : job.saved_j ? estimate(kilowattHours(job.saved_j), job.estimated_saved_j > 0) : ''), 'sum-cell',
    (sum) => (sum.saved_j ? estimate(kilowattHours(sum.saved_j), sum.estimated_j > 0) : '')],
  ['stragglers', 'Stragglers', (job) => job.stragglers ?? 0, (job) => (job.stragglers > 0 ? String(job.stragglers) : ''), 'straggler-cell wide',
    (sum) => (sum.stragglers > 0 ? String(sum.stragglers) : '')],
  ['age', 'Age', (job, now_s) => now_s - job.created_at_s, (job, now_s) => (job.created_at_s > 0 ? duration(now_s - job.created_at_s) : ''), ''],
];
const isCompared = (job) => !isOver(job.state) && Boolean(job.power_measured) && job.planned_power_w > 0;
const ranksOf = (job) => (!(job.ranks > 0) ? '' : job.ranks_registered < job.ranks && !isOver(job.state)
  ? `${job.ranks_registered ?? 0} of ${job.ranks.toLocaleString('en')}` : job.ranks.toLocaleString('en'));
const textColumns = new Set(['name', 'state', 'gpu', 'age']); // ascending at the first click

function compare(a, b) {
  if (a == null || b == null) return (a == null) - (b == null); // nothing known comes last
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Returns { show(jobs, groupOf), close() }; groupOf: the function from a job to its group, or null. */
export function createClusterTable(parent) {
  const state = { jobs: [], groupOf: null, sort: null, down: false, items: [], closed: new Set(), at: null, now_s: 0 };
  const heads = new Map(columns.map(([key, name, , , kind]) => {
    const button = element('button', { type: 'button', text: name, onclick: () => sortBy(key) });
    return [key, element('th', { scope: 'col', class: kind }, button)];
  }));
  const body = element('tbody');
  const table = element('table', { id: 'cluster-table', 'aria-label': 'Jobs' },
    element('thead', {}, element('tr', {}, ...heads.values())), body);
  const scroller = element('div', { class: 'table cluster-table', tabindex: '0', role: 'region', 'aria-label': 'Jobs of the cluster' }, table);
  const unprinted = element('p', { class: 'note', hidden: true });
  parent.append(scroller, unprinted);
  let made = new Map(); // the rows drawn last, by key
  let kept = new Map();
  const rows = createVirtualRows(scroller, body, rowHeight, { count: () => state.items.length, row, placed });

  const keyOf = ({ job, group }) => (job ? job.id : `group ${group}`);

  function row(k) {
    const item = state.items[k];
    const key = keyOf(item);
    const one = made.get(key) ?? newRow(item);
    kept.set(key, one);
    one.tr.setAttribute('aria-rowindex', String(k + 2));
    if (item.job) fillJob(one, item.job);
    else fillGroup(one, item);
    one.focus.tabIndex = key === state.at ? 0 : -1;
    return one.tr;
  }
  function newRow({ job, group }) {
    const focus = job ? element('a', { href: jobLink(job.id) })
      : element('button', { type: 'button', onclick: () => toggle(group) });
    const cells = columns.map(([, , , , kind], k) => (k === 0 ? element('th', { scope: 'row', class: kind }, focus) : element('td', { class: kind })));
    return { tr: element('tr', { class: job ? '' : 'group', 'data-job': job?.id }, ...cells), focus, cells, job: null, shown: '' };
  }
  function fillJob(one, job) {
    const shown = columns.map(([, , , text]) => text(job, state.now_s));
    if (one.job === job && one.shown === shown.at(-1)) return;
    one.job = job;
    one.shown = shown.at(-1);
    one.focus.textContent = one.focus.title = shown[0];
    for (let k = 1; k < columns.length; ++k) {
      one.cells[k].textContent = shown[k];
      one.cells[k].classList.toggle('quiet', shown[k] === quiet);
    }
    one.cells[1].replaceChildren(element('span', { class: `state ${jobState(job)[1]}`, text: shown[1] }));
    one.tr.toggleAttribute('data-over', isOver(job.state));
  }
  function fillGroup(one, { group, sum }) {
    one.focus.textContent = `${group}, ${count(sum.jobs, 'job')}`;
    one.focus.ariaExpanded = String(!state.closed.has(group));
    columns.forEach(([, , , , , text], k) => {
      if (k > 0) one.cells[k].textContent = text?.(sum) ?? '';
    });
  }

  function draw(place = rows.draw) {
    state.now_s = Date.now() / 1000;
    table.setAttribute('aria-rowcount', String(state.items.length + 1));
    place();
  }
  /** Keeps the elements for the next time; one of them is the table's stop of the Tab key. */
  function placed() {
    made = kept;
    kept = new Map();
    const stops = [...made.values()].map(({ focus }) => focus);
    if (stops.length > 0 && !stops.some((stop) => stop.tabIndex === 0)) stops[0].tabIndex = 0;
  }

  function arrange() {
    const { jobs, groupOf, sort, down } = state;
    const [, , valueOf] = columns.find(([key]) => key === sort) ?? [];
    const now_s = Date.now() / 1000;
    const sorted = (list) => {
      if (!valueOf) return list; // as the server sends them: newest first
      const keyed = list.map((job) => [valueOf(job, now_s), job]);
      const sign = down ? -1 : 1;
      return keyed.sort(([a], [b]) => (a == null || b == null ? compare(a, b) : sign * compare(a, b))).map(([, job]) => job);
    };
    const asItems = (list) => sorted(list).map((job) => ({ job }));
    if (!groupOf) {
      state.items = asItems(jobs);
      return;
    }
    const groups = new Map();
    for (const job of jobs) {
      const group = groupOf(job);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(job);
    }
    state.items = [...groups].sort(([a], [b]) => compare(a, b)).flatMap(([group, list]) =>
      [{ group, sum: totalsOf(list) }, ...(state.closed.has(group) ? [] : asItems(list))]);
  }
  function redraw() {
    arrange();
    draw();
  }

  function sortBy(key) {
    const again = state.sort === key;
    state.down = again ? !state.down : !textColumns.has(key);
    state.sort = key;
    for (const [name, head] of heads) head.ariaSort = name === key ? (state.down ? 'descending' : 'ascending') : null;
    scroller.scrollTop = 0;
    redraw();
  }
  function toggle(group) {
    if (!state.closed.delete(group)) state.closed.add(group);
    redraw();
  }

  const page = () => Math.max(1, Math.floor(scroller.clientHeight / rowHeight) - 2);
  const steps = { ArrowDown: () => 1, ArrowUp: () => -1, PageDown: page, PageUp: () => -page(), Home: () => -Infinity, End: () => Infinity };
  body.addEventListener('keydown', (event) => {
    if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
    const at = state.items.findIndex((item) => keyOf(item) === state.at);
    if (at < 0) return;
    event.preventDefault();
    const to = Math.min(state.items.length - 1, Math.max(0, at + steps[event.key]()));
    rows.show(to);
    draw();
    made.get(keyOf(state.items[to]))?.focus.focus({ preventScroll: true });
  });
  body.addEventListener('focusin', ({ target }) => {
    const found = [...made].find(([, { focus }]) => focus === target);
    if (!found) return;
    state.at = found[0];
    for (const [key, { focus }] of made) focus.tabIndex = key === state.at ? 0 : -1;
  });
  body.addEventListener('click', (event) => {
    const link = event.target.closest('tr')?.querySelector('a');
    if (link && event.target.closest('a') === null) link.click();
  });

  const print = () => {
    draw(() => rows.drawAll(mostPrinted));
    unprinted.hidden = state.items.length <= mostPrinted;
    unprinted.textContent = `${count(state.items.length - mostPrinted, 'row')} more: a filter shows them.`;
  };
  const printed = () => {
    unprinted.hidden = true;
    draw();
  };
  addEventListener('beforeprint', print);
  addEventListener('afterprint', printed);

  return {
    show(jobs, groupOf) {
      Object.assign(state, { jobs, groupOf });
      redraw();
    },
    close() {
      rows.close();
      removeEventListener('beforeprint', print);
      removeEventListener('afterprint', printed);
    },
  };
}
