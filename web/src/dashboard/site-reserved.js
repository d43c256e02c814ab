// Watts reserved for admitted jobs that have not started: which job, where, how much, whether it may start, and until when.
import { element } from '../dom.js';
import { count, duration, kilowatts } from './words.js';

const ready = (one) => (one.ready ? 'may start' : 'waits for other jobs');

/** Returns { show(power) }; the section is there only while watts are reserved. */
export function createSiteReserved(section) {
  const heads = [['Job', 'job-cell'], ['Domain', 'text-cell'], ['Accelerators', 'wide'], ['Power', ''], ['State', 'text-cell'], ['Expires in', 'wide'],
    ['Token', 'text-cell roomy']];
  const body = element('tbody');
  const table = element('table', { 'aria-label': 'Reservations' }, element('thead', {}, element('tr', {},
    ...heads.map(([text, kind]) => element('th', { scope: 'col', class: kind, text })))), body);
  const note = element('p', { class: 'note' });
  section.append(note, element('div', { class: 'table reserved-table', tabindex: '0', role: 'region', 'aria-label': 'Reserved watts' }, table));

  return {
    show({ reservations = [], domains, now_s: now }) {
      section.hidden = reservations.length === 0;
      if (section.hidden) return;
      const site = domains[0] ?? {};
      note.textContent = `${count(reservations.length, 'job')} admitted and not started: ${kilowatts(site.reserved_w ?? 0)} beside ` +
        `${kilowatts(site.counted_w ?? 0)} that running jobs count as.`;
      body.replaceChildren(...reservations.map((one) => element('tr', { 'data-reserved': one.job },
        element('th', { scope: 'row', class: 'job-cell', text: one.job }),
        ...[['text-cell', one.domain], ['wide', String(one.accelerators)], ['', kilowatts(one.power_w)], ['text-cell', ready(one)],
          ['wide', now == null ? '' : duration(Math.max(0, one.expires_s - now))], ['text-cell roomy', (one.by ?? '').slice(0, 8)]]
          .map(([kind, text]) => element('td', { class: kind, text })))));
    },
  };
}
