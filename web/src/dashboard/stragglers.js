// Stragglers of a job, in force or pending, and its policies.
import { element } from '../dom.js';
import { clockTime, duration } from './words.js';

/** Returns { show(job, clockAhead_s), close() }; clockAhead_s: how far the server's clock is ahead of the browser's. */
export function createStragglers(parent) {
  const list = element('ul', { class: 'cards', id: 'straggler-list', 'aria-label': 'Stragglers' });
  const none = element('p', { class: 'empty-line' });
  const policies = element('ul', { class: 'cards', id: 'policy-list', 'aria-label': 'Policies' });
  parent.append(list, none, policies);
  let waiting = []; // [element, at_s] of the pending ones
  let ahead_s = 0;

  function tick() {
    const now = Date.now() / 1000 + ahead_s;
    for (const [text, at_s] of waiting) {
      text.textContent = at_s > now ? `takes effect in ${duration(at_s - now)}` : 'takes effect now';
    }
  }
  const timer = setInterval(tick, 1000);

  function card({ id, target, pipeline, degree, state, at_s, origin }) {
    const when = element('span', { class: 'when' });
    if (state === 'pending') waiting.push([when, at_s]);
    else when.textContent = at_s > 0 ? `in force since ${clockTime(at_s)}` : 'in force';
    return element('li', { class: `card ${state === 'pending' ? 'pending' : 'in-force'}`, 'data-straggler': id },
      element('b', { text: target ?? `pipeline ${pipeline}` }),
      element('span', { class: 'degree', text: `${Number(degree).toLocaleString('en', { maximumFractionDigits: 3 })}× slower` }),
      when, ...(origin === 'detected' ? [element('span', { class: 'dim', text: 'found from iteration times' })] : []));
  }

  return {
    show(job, clockAhead_s) {
      ahead_s = clockAhead_s;
      waiting = [];
      list.replaceChildren(...(job.stragglers ?? []).map(card));
      list.hidden = list.children.length === 0;
      none.hidden = !list.hidden;
      none.textContent = job.plan ? 'No straggler: every pipeline runs at its own speed.' : 'No straggler.';
      policies.replaceChildren(...(job.policies ?? []).map(({ kind, text }) => element('li', { class: 'card policy' },
        element('b', { text: 'policy' }), element('span', { text: text ?? kind }))));
      policies.hidden = policies.children.length === 0;
      tick();
    },
    close: () => clearInterval(timer),
  };
}
