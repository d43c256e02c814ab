// An expert's switch: shows effective energy and T* in the frontier chart and the table of points.
import { element } from './dom.js';

const why = 'Effective energy leaves out what the accelerators would draw anyway while they wait: it is what a plan can still ' +
  'influence. It is least at T*; slower plans save nothing more.';

/**
 * Returns { root, note, effective() }: the switch, and the sentence that explains it, shown while the switch is on. Elements
 * of the class `expert` within `page` are shown only then. Calls onChange(effective).
 */
export function createEnergySwitch(page, onChange) {
  const note = element('p', { class: 'note', hidden: true, text: why });
  const choice = (text, value, checked) => element('label', { title: value === 'effective' && why },
    element('input', { type: 'radio', name: 'energy', value, checked, onchange: change }), text);
  const root = element('fieldset', { class: 'switch' }, element('legend', { class: 'visually-hidden', text: 'Energy axis' }),
    choice('total energy', 'total', true), choice('effective energy (expert)', 'effective', false));
  const effective = () => root.querySelector(':checked').value === 'effective';
  function change() {
    note.hidden = !effective();
    page.toggleAttribute('data-expert', effective());
    onChange(effective());
  }
  return { root, note, effective };
}
