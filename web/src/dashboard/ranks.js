// Ranks of a job: place, host, GPU, the right to set clocks, clocks wanted and set, failures, last call. The page loads them when the reader opens the part.
import { element } from '../dom.js';
import { getJson, jobPath } from './api.js';
import { clockRange, clockTime, count } from './words.js';

const rights = { advice: 'advice only', none: 'cannot set clocks' };
const rightOf = ({ control, control_reason }) => (control ? (rights[control] ?? control) + (control_reason ? `: ${control_reason}` : '') : 'sets clocks');
const setOf = ({ set_mhz }) => (set_mhz == null ? 'no reports' : set_mhz > 0 ? clockRange(set_mhz, set_mhz) : 'none');
const columns = [
  ['Rank', ({ rank }) => String(rank), ''],
  ['Pipeline, stage, tensor', ({ dp_rank, pp_rank, tp_rank }) => `${dp_rank}, ${pp_rank}, ${tp_rank}`, 'wide'],
  ['Host', ({ host }) => host ?? 'not known', 'text-cell'],
  ['GPU', ({ accelerator }) => accelerator ?? 'not known', 'text-cell wide'],
  ['Clocks', rightOf, 'text-cell'],
  ['Wanted', ({ wanted_least_mhz, wanted_most_mhz }) => clockRange(wanted_least_mhz, wanted_most_mhz), ''],
  ['Set', setOf, ''],
  ['Failed, late, throttled', (rank) => (rank.clocks_failed == null ? '' : [rank.clocks_failed, rank.clocks_late, rank.throttled_iterations]
    .map((value) => (value ?? 0).toLocaleString('en')).join(', ')), 'wide'],
  ['Last call', ({ last_heard_s, waiting }) => (waiting ? 'waits for a plan' : last_heard_s > 0 ? clockTime(last_heard_s) : 'none since the server started'), 'text-cell'],
];

/** Returns { close() }. */
export function createRanks(parent, id) {
  const controller = new AbortController();
  let next = null;
  let loading = false;
  const body = element('tbody');
  const table = element('table', {}, element('thead', {}, element('tr', {}, ...columns.map(([name, , kind]) =>
    element('th', { scope: 'col', class: kind, text: name })))), body);
  const scroller = element('div', { class: 'table ranks-table', tabindex: '0', role: 'region', 'aria-label': 'Ranks' }, table);
  const status = element('p', { class: 'note', role: 'status' });
  const more = element('button', { type: 'button', text: 'More ranks', hidden: true, onclick: () => load(next) });
  const again = element('button', { type: 'button', text: 'Load again', onclick: () => {
    body.replaceChildren();
    load(null);
  } });
  const details = element('details', { class: 'ranks', ontoggle: () => details.open && body.children.length === 0 && load(null) },
    element('summary', { text: 'Hosts, GPUs, rights, clocks and last calls' }), status, scroller, element('div', { class: 'shortcuts' }, more, again));
  parent.append(details);

  async function load(after) {
    if (loading) return;
    loading = true;
    try {
      const page = await getJson(jobPath(id, `/ranks${after === null ? '' : `?after=${after}`}`), controller.signal);
      body.append(...page.ranks.map((rank) => element('tr', {}, ...columns.map(([, text, kind], k) =>
        element(k === 0 ? 'th' : 'td', { class: kind, ...(k === 0 && { scope: 'row' }), text: text(rank) })))));
      next = page.next ?? null;
      more.hidden = next === null;
      status.textContent = `${count(body.children.length, 'registered rank')}, as of ${clockTime(Date.now() / 1000)}.`;
    } catch (error) {
      if (!controller.signal.aborted) status.textContent = `The server did not send the ranks: ${error.message}`;
    }
    loading = false;
  }
  return { close: () => controller.abort() };
}
