// Alerts: what the server has raised, as a banner above the jobs and as a page.
import { element } from '../dom.js';
import { jobLink } from './job-list.js';
import { loadPagesIfAny } from './list-pages.js';
import { clockTime, count, duration, wordsOf } from './words.js';

const mostShown = 500;
const kinds = {
  profiling_stuck: 'profiling is stuck',
  no_permission: 'no permission to set clocks',
  plan_not_kept: 'plan not kept',
  over_power: 'over the power cap',
  site_over_limit: 'site over its limit',
  watts_missing: 'watts missing',
  limits_unread: 'limits cannot be read',
  job_silent: 'no rank calls',
};
const kindWords = (kind) => kinds[kind] ?? String(kind).replaceAll('_', ' ');

/** Loads all raised alerts, and those resolved last; a server of an earlier version has none. */
export async function loadAlerts(signal) {
  const loaded = { alerts: [], resolved: [] };
  await loadPagesIfAny('/v1/alerts', ({ alerts, resolved = [] }) => {
    loaded.alerts.push(...alerts);
    loaded.resolved.push(...resolved);
  }, signal);
  return loaded;
}

/** The line above the page: of all jobs, or of the one with that id. Returns { show(alerts, id) }. */
export function createAlertBanner(banner) {
  let shown = '';
  return {
    show(alerts, id) {
      const chosen = id === null ? alerts : alerts.filter(({ job }) => job === id);
      const byKind = Object.groupBy?.(chosen, ({ alert }) => alert) ?? {};
      const words = id === null
        ? [`${count(chosen.length, 'alert')}: ${Object.entries(byKind).map(([kind, list]) => `${kindWords(kind)} ${list.length}`).join(', ')}`]
        : chosen.map(({ alert, text }) => `${kindWords(alert)}: ${text}`);
      const wanted = JSON.stringify([id, words, chosen.length]);
      if (wanted === shown) return;
      shown = wanted;
      banner.hidden = chosen.length === 0;
      banner.replaceChildren(...words.map((text) => element('span', { text })), element('a', { href: '#/alerts', text: 'All alerts' }));
    },
  };
}

/** Returns { show({ alerts, resolved }), fail(error), close() }. */
export function createAlertsView(parent) {
  let loaded = null;
  const summary = element('p', { class: 'list-summary', role: 'status' });
  const kind = element('select', { id: 'alert-kind', onchange: draw }, element('option', { value: '', text: 'all' }),
    ...Object.entries(kinds).map(([value, text]) => element('option', { value, text })));
  const words = element('input', { type: 'search', id: 'alert-words', oninput: draw });
  const field = (control, label) => element('div', {}, element('label', { for: control.id, text: label }), control);
  const raised = element('ol', { class: 'alert-list', 'aria-label': 'Raised alerts, the last one first' });
  const none = element('p', { class: 'empty-line', text: 'Loading the alerts …' });
  const resolved = element('ol', { class: 'alert-list', 'aria-label': 'Resolved alerts, the last one first' });
  const past = element('details', { class: 'ranks', hidden: true }, element('summary', { text: 'Resolved' }), resolved);
  const root = element('article', { 'aria-labelledby': 'alerts-title', class: 'cluster' },
    element('div', { class: 'heading' }, element('h2', { id: 'alerts-title', text: 'Alerts' }), summary),
    element('div', { class: 'facets', role: 'group', 'aria-label': 'Choose alerts' }, field(words, 'Job or words'), field(kind, 'Kind')), raised, none, past,
    element('p', { class: 'note', text: 'The server raises an alert when its condition has lasted, and resolves it when the condition has been gone as long.' }));
  parent.replaceChildren(root);
  document.title = 'Alerts - Perseus';

  const item = ({ alert, job, name, domain, text, since_s, resolved_at_s }) => element('li', { 'data-alert': alert, 'data-job': job ?? `site/${domain}` },
    element('span', { class: resolved_at_s ? 'state over' : 'state bad', text: kindWords(alert) }),
    job ? element('a', { href: jobLink(job), text: name || job }) : element('a', { href: '#/site', text: domain }), element('span', { class: 'alert-text', text }),
    element('time', { datetime: new Date(since_s * 1000).toISOString(), text: resolved_at_s ? `resolved ${clockTime(resolved_at_s)}`
      : `for ${duration(Date.now() / 1000 - since_s)}`, title: `since ${clockTime(since_s)}` }));

  function draw() {
    if (loaded === null) return;
    const wanted = wordsOf(words.value);
    const matches = (one) => (!kind.value || one.alert === kind.value) && wanted.every((word) =>
      `${one.name ?? ''} ${one.job ?? ''} ${one.domain ?? ''} ${kindWords(one.alert)} ${one.text}`.toLowerCase().includes(word));
    const found = loaded.alerts.filter(matches);
    const old = loaded.resolved.filter(matches);
    keepingFocus(raised, () => raised.replaceChildren(...found.slice(0, mostShown).map(item)));
    keepingFocus(resolved, () => resolved.replaceChildren(...old.map(item)));
    past.hidden = old.length === 0;
    none.hidden = found.length > 0 && found.length <= mostShown;
    none.textContent = found.length > mostShown ? `${count(found.length - mostShown, 'alert')} more: a filter shows them.`
      : loaded.alerts.length > 0 ? 'No alert matches.' : 'No alerts: nothing needs you.';
    const text = loaded.alerts.length === 0 ? '' : found.length === loaded.alerts.length ? count(found.length, 'alert')
      : `${found.length} of ${count(loaded.alerts.length, 'alert')}`;
    if (summary.textContent !== text) summary.textContent = text;
  }
  /** The link that had the focus has it again, though the list is new. */
  function keepingFocus(list, change) {
    const focused = list.contains(document.activeElement) ? document.activeElement.closest('li') : null;
    change();
    if (!focused) return;
    [...list.children].find((li) => li.dataset.job === focused.dataset.job && li.dataset.alert === focused.dataset.alert)?.querySelector('a')
      .focus({ preventScroll: true });
  }

  return {
    show(all) {
      loaded = all;
      draw();
    },
    fail(error) {
      if (loaded === null) none.textContent = `The server did not send the alerts: ${error.message}`;
    },
    close: () => root.remove(),
  };
}
