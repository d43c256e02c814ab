// The domains of a site as a tree: limit, what counts, what is granted, planned, reported and metered, with a bar each. Only the visible rows
// exist as elements.
import { element } from '../dom.js';
import { createVirtualRows } from '../virtual-rows.js';
import { isOver, pricePerKilowatt, slower, treeOf } from './site-data.js';
import { kilowatts } from './words.js';

const rowHeight = 34; // as in page.css
const mostPrinted = 2000;
const watts = (w) => (w == null ? '' : kilowatts(w));

/** What is known of a domain beside its limit: [class, name, watts], in the order of the bar's parts. */
const parts = (domain) => [
  ['counted', 'counted', domain.counted_w],
  ['reported', 'reported', domain.reported_w],
];
const ticks = (domain) => [
  ['granted', 'granted', domain.granted_w],
  ['limit', 'limit', domain.limit_w],
];

function bar(domain, most) {
  const place = (w) => `${((100 * Math.min(w, most)) / most).toFixed(2)}%`;
  const known = ([, , w]) => w != null;
  return element('div', { class: `power-bar${isOver(domain) ? ' over' : ''}`, 'aria-hidden': 'true' },
    ...parts(domain).filter(known).map(([kind, , w]) => element('i', { class: kind, style: `width:${place(w)}` })),
    ...ticks(domain).filter(known).map(([kind, , w]) => element('b', { class: kind, style: `left:${place(w)}` })));
}

/** Returns { show(power), close() }. */
export function createSiteDomains(parent) {
  const heads = [['Domain', 'text-cell'], ['Power', 'bar-cell'], ['Limit', ''], ['Counted', ''], ['Granted', 'wide'], ['Reported', 'wide'], ['Metered', 'wide metered-cell'],
    ['Guard', 'roomy guard-cell'], ['Rate', 'wide rate-cell'], ['% per kW', 'roomy']];
  const body = element('tbody');
  const table = element('table', { 'aria-label': 'Domains' }, element('thead', {}, element('tr', {},
    ...heads.map(([text, kind]) => element('th', { scope: 'col', class: kind, text })))), body);
  const scroller = element('div', { class: 'table domain-table', tabindex: '0', role: 'region', 'aria-label': 'Domains of the site' }, table);
  const legend = element('ul', { class: 'legend' }, ...[['reported', 'reported by ranks that measure'], ['counted', 'counted: the most that jobs may draw now'],
    ['granted', 'granted'], ['limit', 'limit for accelerators']].map(([mark, text]) => element('li', {}, element('i', { class: `mark power-${mark}` }), text)));
  parent.append(legend, scroller);
  const state = { tree: [], most: 1, power: null };
  const rows = createVirtualRows(scroller, body, rowHeight, { count: () => state.tree.length, row });

  function row(k) {
    const { most, power } = state;
    const domain = state.tree[k];
    const { metered_w: metered, metered_limit_w: limit } = domain;
    const price = pricePerKilowatt(domain, power);
    const cells = [
      ['', `${watts(domain.limit_w) || 'none'}`],
      [isOver(domain) ? 'bad-cell' : '', watts(domain.counted_w)],
      ['wide', watts(domain.granted_w)],
      ['wide', watts(domain.reported_w)],
      ['wide', metered != null ? watts(metered) : limit != null ? `limit ${watts(limit)}` : '', metered != null && limit != null ? ` of ${watts(limit)}` : ''],
      ['roomy guard-cell', watts(domain.guard_w)],
      ['wide', domain.rate_lost == null ? '' : slower(domain.rate_lost)],
      ['roomy', domain.missing_w > 0 ? `lacks ${watts(domain.missing_w)}` : price > 0 ? price.toPrecision(2) : ''],
    ];
    return element('tr', { 'data-domain': domain.name, 'aria-rowindex': String(k + 2) }, element('th', { scope: 'row', class: 'text-cell',
      style: `padding-left:${14 + 18 * domain.depth}px`, title: domain.name, text: domain.name }), element('td', { class: 'bar-cell' }, bar(domain, most)), ...cells.map(([kind, text, more]) => element('td', { class: kind }, text,
      ...(more ? [element('span', { class: 'roomy', text: more })] : []))));
  }
  const print = () => rows.drawAll(mostPrinted);
  const after = () => rows.draw();
  addEventListener('beforeprint', print);
  addEventListener('afterprint', after);
  return {
    show(power) {
      const unchanged = state.power?.domains === power.domains && state.power.jobs === power.jobs;
      state.power = power;
      if (unchanged) return;
      state.tree = treeOf(power.domains);
      state.most = 1.05 * Math.max(1, ...state.tree.flatMap((domain) => [...parts(domain), ...ticks(domain)].map(([, , w]) => w ?? 0)));
      table.classList.toggle('no-guard', state.tree.every(({ guard_w: guard }) => guard == null));
      table.setAttribute('aria-rowcount', String(state.tree.length + 1));
      rows.draw();
    },
    close() {
      rows.close();
      removeEventListener('beforeprint', print);
      removeEventListener('afterprint', after);
    },
  };
}
