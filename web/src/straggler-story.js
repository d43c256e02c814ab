// A straggler with the iteration time T' that the reader sets: the plan for it, and what this plan saves while it waits.
import { element } from './dom.js';
import { joules, percent, seconds } from './format.js';
import { stragglerChoice } from './straggler.js';

const steps = 400; // of the slider

/**
 * frontier: as in straggler.js, with summary.straggler where the report was made for one. fastest_s: T without a straggler;
 * slowest_s: the end of the slider. Calls onChange(choice): the plan for T', or null without a straggler.
 * Returns { set(deadline_s), range }.
 */
export function createStragglerStory(parent, frontier, { fastest_s, slowest_s }, onChange) {
  const given = frontier.summary.straggler?.deadline_s;
  const least = Math.min(fastest_s, given ?? Infinity);
  const most = Math.max(slowest_s, given ?? 0);
  const slider = element('input', { type: 'range', min: 0, max: steps, step: 1, id: 'straggler-time', 'aria-describedby': 'straggler-facts',
    oninput: () => set(least + ((most - least) * Number(slider.value)) / steps) });
  const shown = element('output', { for: 'straggler-time' });
  const facts = element('dl', { class: 'facts wide-facts', id: 'straggler-facts', 'aria-live': 'polite' });
  parent.append(
    element('div', { class: 'picker' }, element('label', { for: 'straggler-time', text: 'T′' }), slider, shown), facts,
    element('p', { class: 'note', text: 'T′ is the iteration time of the slowest pipeline, which sets the pace of the job. The others ' +
      'wait for it, so their plans may be slower at no cost in time. Drag T′ here or in the chart above.' }));

  const fact = (name, value, note) => element('div', {}, element('dt', { text: name }), element('dd', {}, value, element('small', { text: note })));
  function factsOf(choice) {
    const { point, t_opt_s, deadline_s, energy_j, all_max_energy_j, saving_pct } = choice;
    const why = t_opt_s < deadline_s ? `T_opt = T* = ${seconds(t_opt_s)}: slower plans save nothing more` : 'T_opt = T′: no plan may be slower';
    return [
      fact('plan for the straggler', `point ${point}`, `${seconds(frontier.points.time_s[point])} an iteration; ${why}`),
      fact('saved while waiting', percent(saving_pct), 'against everything at maximum clock, which waits as long'),
      fact('energy until the straggler is done', joules(energy_j), `everything at maximum clock: ${joules(all_max_energy_j)}`),
    ];
  }

  function set(deadline_s) {
    const at_s = Math.min(most, Math.max(least, deadline_s));
    const none = at_s <= fastest_s && at_s !== given;
    const choice = none ? null : stragglerChoice(frontier, at_s);
    slider.value = String(Math.round((steps * (at_s - least)) / (most - least || 1)));
    shown.textContent = none ? 'no straggler' : seconds(at_s);
    slider.setAttribute('aria-valuetext', none ? 'no straggler' : `T′ ${seconds(at_s)}, point ${choice.point}, ${percent(choice.saving_pct)} saved`);
    facts.replaceChildren(...(none ? [fact('no straggler', 'default plan', 'all pipelines are equally fast')] : factsOf(choice)));
    onChange(choice, at_s);
  }
  return { set, range: [least, most] };
}
