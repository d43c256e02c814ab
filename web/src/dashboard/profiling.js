// State of online profiling: the measurements, the ranks whose reports are missing, and the rejected values.
import { element } from '../dom.js';
import { count } from './words.js';

const mostNamed = 8; // ranks

function waitedFor(ranks) {
  const named = ranks.slice(0, mostNamed).join(', ') + (ranks.length > mostNamed ? ', …' : '');
  return `${count(ranks.length, 'rank')} (${named}) ${ranks.length === 1 ? 'has' : 'have'} yet to report.`;
}

/** Returns { show(job) }; hides the parent for a job that is not profiled online. */
export function createProfiling(parent) {
  const summary = element('p');
  const waiting = element('p', { class: 'note' });
  const reasons = element('ul', { class: 'rejections' });
  const rejectedLine = element('summary');
  const rejected = element('details', { class: 'rejected' }, rejectedLine, reasons);
  parent.append(summary, waiting, rejected);
  return {
    show({ profiling }) {
      parent.hidden = !profiling;
      if (!profiling) return;
      const facts = [count(profiling.windows ?? 0, 'window'), count(profiling.iterations ?? 0, 'iteration'),
        profiling.uncertainty_pct > 0 && `uncertainty ${profiling.uncertainty_pct.toFixed(2)} %`].filter(Boolean).join(', ');
      summary.textContent = `${profiling.over ? 'Over' : 'Under way'}: ${facts}.${profiling.text ? ` ${profiling.text}` : ''}`;
      waiting.hidden = !profiling.waiting_for?.length;
      if (!waiting.hidden) waiting.textContent = waitedFor(profiling.waiting_for);
      rejected.hidden = !(profiling.rejected > 0);
      rejectedLine.textContent = `${count(profiling.rejected ?? 0, 'value')} left out`;
      reasons.replaceChildren(...(profiling.rejections ?? []).map((text) => element('li', { text })));
    },
  };
}
