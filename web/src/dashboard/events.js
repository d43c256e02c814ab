// Events of all jobs, as a page: what happened on the cluster, and who did it.
import { element } from '../dom.js';
import { jobLink } from './job-list.js';
import { loadPagesIfAny } from './list-pages.js';
import { clockTime, count, wordsOf } from './words.js';

const mostShown = 500;
const kindWords = (kind) => String(kind).replaceAll('_', ' ');

/** Loads the last events of all jobs; a server of an earlier version has none. */
export async function loadEvents(signal) {
  const events = [];
  await loadPagesIfAny('/v1/events/recent', (page) => events.push(...page.events), signal);
  return events;
}

/** Who caused an event, as elements behind its text; nothing for the server, for what is not known, and where the text names the rank. */
export function authorOf({ by, text = '' }) {
  const said = !by || by === 'server' || (by.startsWith('rank ') && text.startsWith(by));
  return said ? [] : [element('span', { class: 'dim', text: ` by ${by}` })];
}

/** Returns { show(events), fail(error), close() }. */
export function createEventsView(parent) {
  let loaded = null;
  const summary = element('p', { class: 'list-summary', role: 'status' });
  const kind = element('select', { id: 'event-kind', onchange: draw }, element('option', { value: '', text: 'all' }));
  const by = element('select', { id: 'event-by', onchange: draw }, element('option', { value: '', text: 'all' }));
  const words = element('input', { type: 'search', id: 'event-words', oninput: draw });
  const field = (control, label) => element('div', {}, element('label', { for: control.id, text: label }), control);
  const list = element('ol', { class: 'alert-list event-list', 'aria-label': 'Events of all jobs, the last one first' });
  const none = element('p', { class: 'empty-line', text: 'Loading the events …' });
  const root = element('article', { 'aria-labelledby': 'events-title', class: 'cluster' },
    element('div', { class: 'heading' }, element('h2', { id: 'events-title', text: 'Events' }), summary),
    element('div', { class: 'facets', role: 'group', 'aria-label': 'Choose events' }, field(words, 'Job or words'), field(kind, 'Kind'), field(by, 'By')), list, none,
    element('p', { class: 'note', text: 'The last 2,000 events of all jobs, without those that ranks cause again and again; each job’s page has its own.' }));
  parent.replaceChildren(root);
  document.title = 'Events - Perseus';

  const item = ({ job, name, sequence, kind: what, at_s, text, by: author }) => element('li', { 'data-event': what, 'data-key': `${job} ${sequence}` },
    element('time', { datetime: new Date(at_s * 1000).toISOString(), text: clockTime(at_s) }),
    element('a', { href: jobLink(job), text: name || job }), element('span', { class: 'alert-text', text }),
    element('span', { class: 'by', text: author ?? '' }));
  /** The choices are those of the events loaded; the chosen one stays. */
  function offer(select, values, wordsOfValue) {
    const chosen = select.value;
    const all = [...new Set([...values, chosen])].filter((value) => value).sort();
    if (all.join('\n') === [...select.options].slice(1).map(({ value }) => value).join('\n')) return;
    select.replaceChildren(select.options[0], ...all.map((value) => element('option', { value, text: wordsOfValue(value) })));
    select.value = chosen;
  }

  function draw() {
    if (loaded === null) return;
    const wanted = wordsOf(words.value);
    const found = loaded.filter((one) => (!kind.value || one.kind === kind.value) && (!by.value || one.by === by.value) && wanted.every((word) =>
      `${one.name ?? ''} ${one.job} ${kindWords(one.kind)} ${one.text} ${one.by ?? ''}`.toLowerCase().includes(word)));
    const focused = list.contains(document.activeElement) ? document.activeElement.closest('li').dataset.key : null;
    list.replaceChildren(...found.slice(0, mostShown).map(item));
    if (focused !== null) [...list.children].find((li) => li.dataset.key === focused)?.querySelector('a').focus({ preventScroll: true });
    none.hidden = found.length > 0 && found.length <= mostShown;
    none.textContent = found.length > mostShown ? `${count(found.length - mostShown, 'event')} more: a filter shows them.`
      : loaded.length > 0 ? 'No event matches.' : 'No events yet.';
    const text = loaded.length === 0 ? '' : found.length === loaded.length ? count(found.length, 'event') : `${found.length} of ${count(loaded.length, 'event')}`;
    if (summary.textContent !== text) summary.textContent = text;
  }

  return {
    show(events) {
      loaded = events;
      offer(kind, events.map((one) => one.kind), kindWords);
      offer(by, events.map((one) => one.by ?? ''), (value) => value);
      draw();
    },
    fail(error) {
      if (loaded === null) none.textContent = `The server did not send the events: ${error.message}`;
    },
    close: () => root.remove(),
  };
}
