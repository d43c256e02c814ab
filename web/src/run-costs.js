// Energy, cost and carbon of the chosen plan over a day and a year, for as many GPUs as the reader enters.
import { carbon, energy, kilowattHours, money } from './dashboard/words.js';
import { element } from './dom.js';

const hours = { day: 24, year: 8760 };
const fields = [
  ['gpus', 'GPUs', { type: 'number', min: 1, step: 1, inputmode: 'numeric' }],
  ['price', 'Price per kWh', { type: 'number', min: 0, step: 'any', inputmode: 'decimal' }],
  ['currency', 'Currency', { type: 'text', maxlength: 3, size: 4, placeholder: 'EUR' }],
  ['carbon', 'Carbon, g CO₂ per kWh', { type: 'number', min: 0, step: 'any', inputmode: 'decimal' }],
];

/** Makes the section; data: the report's. Returns { choose(point) }. */
export function createRunCosts(parent, { accelerators, points, summary }) {
  const gpus = accelerators.reduce((a, b) => a + b, 0); // of one pipeline
  const inputs = Object.fromEntries(fields.map(([key, , attributes]) =>
    [key, element('input', { id: `run-${key}`, ...attributes, oninput: draw })]));
  inputs.gpus.value = String(gpus);
  const rows = element('tbody');
  let point = 0;
  parent.append(
    element('div', { class: 'factor-fields' }, ...fields.map(([key, label]) =>
      element('div', {}, element('label', { for: `run-${key}`, text: label }), inputs[key]))),
    element('table', { class: 'costs' },
      element('thead', {}, element('tr', {}, ...['period', 'chosen plan', 'everything at maximum clock', 'saved'].map((text) =>
        element('th', { scope: 'col', text })))), rows),
    element('p', { class: 'note', text: `Assumed: every ${gpus} GPUs are a pipeline like this one; iterations follow ` +
      'each other without a pause; the column of maximum clock runs the same number of iterations. It is the energy of the GPUs alone, ' +
      'as predicted from the profile. Cost and carbon appear when you enter their factors.' }));

  function worth(j) {
    const [price, carbon_g] = [Number(inputs.price.value), Number(inputs.carbon.value)];
    return [price > 0 && money((j / 3.6e6) * price, (inputs.currency.value || 'EUR').toUpperCase()),
      carbon_g > 0 && carbon((j / 3.6e6) * carbon_g)].filter(Boolean).join(', ');
  }

  function draw() {
    const pipelines = Math.max(0, Number(inputs.gpus.value)) / gpus;
    const cell = (j) => element('td', {}, kilowattHours(j), element('small', { text: worth(j) || energy(j) }));
    rows.replaceChildren(...Object.entries(hours).map(([name, length]) => {
      const iterations = (pipelines * length * 3600) / points.time_s[point];
      const [plan, highest] = [points.energy_j[point] * iterations, summary.all_max.energy_j * iterations];
      return element('tr', {}, element('th', { scope: 'row', text: `a ${name}` }), cell(plan), cell(highest), cell(highest - plan));
    }));
  }
  return {
    choose(chosen) {
      point = chosen;
      draw();
    },
  };
}
