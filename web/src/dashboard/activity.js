// Activity of a job: the events of its log, newest first.
import { element } from '../dom.js';
import { jobPath } from './api.js';
import { authorOf } from './events.js';
import { createRefresher } from './refresher.js';
import { readEvents } from './stream.js';
import { clockTime, count } from './words.js';

const mostKept = 200;
const alike = new Set(['rank_registered', 'rank_measured', 'job_seen', 'iterations_counted', 'result_reported', 'window_handed_out']); // one line for many

/** Calls onNews(text) for each event that arrives while the page is open. Returns { show(job), close() }. */
export function createActivity(parent, id, onNews) {
  const list = element('ol', { class: 'activity', reversed: true, 'aria-label': 'Activity, newest first' });
  const none = element('p', { class: 'empty-line', text: 'No events yet.' });
  const more = element('button', { type: 'button', hidden: true, text: 'Show all', onclick: () => {
    list.classList.add('all');
    more.hidden = true;
  } });
  parent.append(list, none, more);
  let history = true; // the first events read are past ones
  let seen = 0;
  let last = 0; // sequence of the log's end, as far as we know
  let failures = 0;
  let timer = 0;
  let newest = { kind: null, times: 0 }; // the line at the top

  const refresher = createRefresher(async (signal) => (seen < last ? readEvents(jobPath(id, '/events'), seen, last, signal) : []),
    (events) => {
      failures = 0;
      events.filter((event) => event.sequence > seen).forEach(add);
      history = false;
      more.hidden = list.children.length <= 12 || list.classList.contains('all'); // as in dashboard.css
    },
    () => {
      clearTimeout(timer);
      timer = setTimeout(refresher.ask, Math.min(60_000, 1000 * 2 ** failures++)); // other parts report that the server is gone
    });

  function add({ sequence, at_s, kind, text, by }) {
    seen = sequence;
    none.hidden = true;
    const words = text || String(kind).replaceAll('_', ' ');
    const again = alike.has(kind) && kind === newest.kind;
    newest = { kind, times: again ? newest.times + 1 : 1 };
    if (again) list.firstChild.remove();
    list.prepend(element('li', {}, element('time', { datetime: new Date(at_s * 1000).toISOString(), text: clockTime(at_s) }),
      element('span', { text: words }, ...authorOf({ by, text: words }), ...(again ? [element('span', { class: 'dim', text: ` and ${count(newest.times - 1, 'time')} the like` })] : []))));
    while (list.children.length > mostKept) list.lastChild.remove();
    if (!history) onNews(words);
  }
  return {
    show({ sequence }) {
      last = Math.max(last, sequence ?? 0);
      if (seen < last) refresher.ask();
    },
    close() {
      clearTimeout(timer);
      refresher.close();
    },
  };
}
