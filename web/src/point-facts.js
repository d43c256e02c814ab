// Facts about one point of a frontier, as a list of names and values.
import { element } from './dom.js';
import { change, joules, percent, seconds, watts } from './format.js';

/** The point of least energy: slower ones pay only while the pipeline waits for a straggler. */
export function leastEnergyPoint({ energy_j }) {
  return energy_j.reduce((least, energy, p) => (energy < energy_j[least] ? p : least), 0);
}

export function pointFacts({ points, summary }, p) {
  const energy = points.energy_j[p];
  const max = summary.all_max;
  const fact = (name, value, note) => element('div', {}, element('dt', { text: name }),
    element('dd', {}, value, note ? element('small', { text: note }) : ''));
  return [
    fact('chosen point', String(p), `of ${points.time_s.length}, 0 is the slowest`),
    fact('time', seconds(points.time_s[p]), `${change((100 * (points.time_s[p] - max.time_s)) / max.time_s)} against maximum clock`),
    fact('energy', joules(energy), `${change((100 * (energy - max.energy_j)) / max.energy_j)} against maximum clock` +
      (p < leastEnergyPoint(points) ? '; pays only while waiting' : '')),
    fact('gap to the bound', percent((100 * (energy - points.bound_j[p])) / points.bound_j[p])),
    fact('mean power', watts(energy / points.time_s[p])),
  ];
}
