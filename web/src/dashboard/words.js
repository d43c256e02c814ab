// States, times and amounts as text for display.
import { percent } from '../format.js';

const states = {
  registered: ['registered', 'waiting'],
  profiling: ['profiling', 'busy'],
  characterizing: ['characterizing', 'busy'],
  deployed: ['plan in force', 'good'],
  finished: ['finished', 'over'],
  expired: ['expired', 'over'],
  failed: ['failed', 'bad'],
  silent: ['no rank calls', 'bad'],
};
/** Returns [text, kind] of a state; kind is waiting, busy, good, over or bad. */
export const stateWords = (state) => states[state] ?? [String(state ?? 'unknown'), 'waiting'];
/** The same of a job: a plan in force without a frontier is maximum clock. */
export const jobState = ({ state, maximum_clock: highest }) => (state === 'deployed' && highest ? ['maximum clock', 'waiting'] : stateWords(state));
export const isOver = (state) => stateWords(state)[1] === 'over';

/** Marks an estimate; what is measured has no mark. */
export const estimate = (text, estimated = true) => (estimated ? `${text} est.` : text);

/** Marks a saving that would be: by a model, where clocks were not measured, otherwise an estimate from a profile. */
export const would = (text, modeled) => (modeled ? `${text} modeled` : estimate(text));

/** A saving that would be, with its error bar: "14.0 % (±0.3)". */
export const possibleText = ({ saving_pct, saving_stddev_pct }) =>
  percent(saving_pct) + (saving_stddev_pct > 0 ? ` (±${saving_stddev_pct.toPrecision(2)})` : '');

/** Words of a filter, and whether a job has them all. */
export const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
export const matchesWords = (job, words) => words.every((word) =>
  `${job.name ?? ''} ${job.id} ${jobState(job)[0]}`.toLowerCase().includes(word));

export const count = (n, one, many = `${one}s`) => `${Number(n).toLocaleString('en')} ${n === 1 ? one : many}`;

/** The lowest and the highest of some clocks: "1,200-1,410 MHz"; '' if they are not known. */
export function clockRange(least_mhz, most_mhz) {
  if (!(most_mhz > 0)) return '';
  const most = `${most_mhz.toLocaleString('en')} MHz`;
  return least_mhz < most_mhz ? `${least_mhz.toLocaleString('en')}-${most}` : most;
}

const day_s = 86_400;
export function clockTime(at_s, now_s = Date.now() / 1000) {
  const date = new Date(at_s * 1000);
  const time = date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
  return Math.abs(now_s - at_s) < day_s / 2 ? time : `${date.toLocaleDateString([], { day: 'numeric', month: 'short' })}, ${time}`;
}

/** Formats a duration: "12 s", "3 min", "2 h", "5 days". */
export function duration(s) {
  const span = Math.max(0, Math.round(s));
  if (span < 90) return `${span} s`;
  if (span < 90 * 60) return `${Math.round(span / 60)} min`;
  if (span < 2 * day_s) return `${Math.round(span / 3600)} h`;
  return `${Math.round(span / day_s)} days`;
}

function scaled(value, steps) {
  const [, size, unit] = steps.find(([from]) => Math.abs(value) >= from) ?? steps.at(-1);
  return `${(value / size).toLocaleString('en', { maximumSignificantDigits: 4 })} ${unit}`;
}
/** Formats an energy, from J to GJ. */
export const energy = (j) => scaled(j, [[1e9, 1e9, 'GJ'], [1e6, 1e6, 'MJ'], [1e5, 1e3, 'kJ'], [0, 1, 'J']]);
export const kilowattHours = (j) => scaled(j / 3.6e6, [[1e4, 1e3, 'MWh'], [1e-2, 1, 'kWh'], [0, 1e-3, 'Wh']]);
export const kilowatts = (w) => scaled(w, [[1e6, 1e6, 'MW'], [1e2, 1e3, 'kW'], [0, 1, 'W']]);
export const carbon = (g) => scaled(g, [[1e6, 1e6, 't CO₂'], [1e3, 1e3, 'kg CO₂'], [0, 1, 'g CO₂']]);
export function money(amount, currency) {
  try {
    return new Intl.NumberFormat([], { style: 'currency', currency }).format(amount);
  } catch {
    return `${amount.toLocaleString([], { maximumFractionDigits: 2 })} ${currency ?? ''}`.trim(); // the currency is not an ISO code
  }
}
