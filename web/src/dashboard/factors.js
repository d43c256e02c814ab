// Price and emissions of a kWh: the reader's own, kept in this browser, or else the server's settings.
import { element } from '../dom.js';
import { carbon, money } from './words.js';

const ownKey = 'perseus-factors';
const fields = [
  ['price_per_kwh', 'Price per kWh', { type: 'number', min: 0, step: 'any', inputmode: 'decimal' }],
  ['currency', 'Currency', { type: 'text', maxlength: 3, size: 4, placeholder: 'EUR' }],
  ['carbon_g_per_kwh', 'Carbon, g CO₂ per kWh', { type: 'number', min: 0, step: 'any', inputmode: 'decimal' }],
];

function ownFactors() {
  try {
    return JSON.parse(localStorage.getItem(ownKey)) ?? {};
  } catch {
    return {};
  }
}

/** Makes the fields. Calls onChange() when the reader changes one. Returns { form, use(servers), cost(j), emissions(j) }. */
export function createFactors(onChange) {
  let servers = {};
  const inputs = Object.fromEntries(fields.map(([key, , attributes]) => [key, element('input', { id: `factor-${key}`,
    ...attributes, oninput: keep })]));
  const form = element('details', { class: 'factors' }, element('summary', { text: 'Price and carbon' }),
    element('div', { class: 'factor-fields' }, ...fields.map(([key, label]) =>
      element('div', {}, element('label', { for: `factor-${key}`, text: label }), inputs[key]))),
    element('p', { class: 'note', text: 'Kept in this browser. An empty field uses the setting of the server, if there is one.' }));
  const own = ownFactors();
  for (const [key] of fields) inputs[key].value = own[key] ?? '';

  function keep() {
    const given = Object.fromEntries(fields.map(([key]) => [key, inputs[key].value.trim()]).filter(([, value]) => value !== ''));
    try {
      localStorage.setItem(ownKey, JSON.stringify(given));
    } catch {
      // the browser stores nothing: the values last until the page is closed
    }
    onChange();
  }
  const factor = (key) => Number(inputs[key].value || servers[key] || 0);

  return {
    form,
    use(given) {
      servers = given ?? {};
      for (const [key] of fields) inputs[key].placeholder = servers[key] ?? (key === 'currency' ? 'EUR' : '');
    },
    /** Returns the cost of an energy as text; empty without a price. */
    cost(j) {
      const price = factor('price_per_kwh');
      return price > 0 ? money((j / 3.6e6) * price, (inputs.currency.value || servers.currency || 'EUR').toUpperCase()) : '';
    },
    /** Returns the emissions for an energy as text; empty without emissions of a kWh. */
    emissions(j) {
      const g = factor('carbon_g_per_kwh');
      return g > 0 ? carbon((j / 3.6e6) * g) : '';
    },
  };
}

/** A figure with notes below it; empty notes are left out. */
export const figure = (name, value, ...notes) => element('div', { class: 'figure' }, element('dt', { text: name }),
  element('dd', {}, value, ...notes.filter(Boolean).map((note) => element('small', { text: note }))));
