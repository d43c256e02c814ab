// The past of a domain and the hours ahead: minutes or hours as the server recorded them, or what the page has seen since it was
// opened, and the forecast for as long again.
import { element } from '../dom.js';
import { getJson } from './api.js';
import { updateDomains } from './domain-choice.js';
import { createRefresher } from './refresher.js';
import { createSiteChart } from './site-chart.js';

const spans = [
  { name: '10 minutes', length_s: 600, live: true, hours: 1, ahead_s: 300 },
  { name: 'hour', length_s: 3600, step: 'minute', step_s: 60, hours: 1, ahead_s: 3600 },
  { name: 'day', length_s: 86_400, step: 'minute', step_s: 60, hours: 24, ahead_s: 86_400 },
  { name: 'month', length_s: 30 * 86_400, step: 'hour', step_s: 3600, hours: 168, ahead_s: 7 * 86_400 },
];
const spacing_ms = 5000;
const follow_ms = 30_000;
const liveStep_s = 10; // a longer gap between two looks is a gap in the line

/** Returns { show(power), close() }. */
export function createSiteHistory(parent) {
  let span = spans[1];
  let domain = '';
  let chart = null;
  let now_s = Date.now() / 1000;
  const seen = []; // what the page has seen: { start_s, domains: Map }
  const domains = element('select', { id: 'site-domain', 'aria-label': 'Domain', onchange: () => choose(span, domains.value) });
  const choice = element('fieldset', { class: 'switch' }, element('legend', { class: 'visually-hidden', text: 'Time shown' }),
    ...spans.map((one) => element('label', {}, element('input', { type: 'radio', name: 'site-span', value: one.name, checked: one === span,
      onchange: () => choose(one, domain) }), one.name)));
  const legend = element('ul', { class: 'legend' }, ...[['site-limit', 'limit; dashed: announced'], ['counted-line', 'counted: the most that jobs may draw'],
    ['planned', 'planned; ahead: expected'], ['measured', 'reported, or metered'], ['without', 'without limits']].map(([mark, text]) =>
    element('li', {}, element('i', { class: `mark ${mark}` }), text)));
  const holder = element('div', { hidden: true });
  const status = element('p', { class: 'empty-line', role: 'status', text: 'Loading the history …' });
  const note = element('p', { class: 'note', hidden: true });
  parent.append(element('section', { id: 'site-history', 'aria-labelledby': 'site-history-title' },
    element('div', { class: 'heading' }, element('h3', { id: 'site-history-title', text: 'Power over time' }), domains, choice), legend, holder, note, status));

  let refresher = makeRefresher();
  function makeRefresher() {
    const wanted = { span, domain };
    return createRefresher((signal) => load(wanted, signal), (loaded) => draw(loaded, wanted.span), (error) => {
      if (!chart) say(`The server did not send the history: ${error.message}`);
    }, spacing_ms);
  }
  async function load({ span: { live, step, length_s, hours }, domain: name }, signal) {
    const forecast = getJson(`/v1/site/forecast?hours=${hours}&domain=${encodeURIComponent(name)}`, signal).catch((error) => {
      if (error.name === 'AbortError') throw error;
      return { entries: [] }; // it is not worth the history
    });
    const query = `step=${step}&domain=${encodeURIComponent(name)}&from=${Math.max(0, Math.floor(now_s - length_s))}`;
    const past = live ? [] : (await getJson(`/v1/site/proof?${query}`, signal)).entries;
    const { entries, until_s } = await forecast;
    return { past, ahead: entries, until_s };
  }
  function choose(nextSpan, nextDomain) {
    span = nextSpan;
    domain = nextDomain;
    refresher.close();
    refresher = makeRefresher();
    refresher.ask();
  }
  function say(text) {
    legend.hidden = holder.hidden = note.hidden = true;
    status.hidden = false;
    if (status.textContent !== text) status.textContent = text;
  }
  let ahead = [];
  let ends_s = 0;
  let past = [];
  let isEmpty = false;
  function draw(loaded, { live }) {
    ({ past, ahead } = loaded);
    ends_s = loaded.until_s ?? now_s;
    isEmpty = !live && past.length === 0;
    if (isEmpty) {
      chart?.dispose();
      chart = null;
      return say('Nothing is recorded here: a domain is recorded while it has a limit, by the server that grants.');
    }
    drawNow();
  }
  function drawNow() {
    const shown = span.live ? seen.map(({ start_s, of }) => ({ ...of.get(domain), start_s })).filter(({ counted_w: w }) => w != null) : past;
    if (shown.length === 0) return;
    legend.hidden = holder.hidden = note.hidden = false;
    status.hidden = true;
    chart ??= createSiteChart(holder);
    const until_s = Math.min(ends_s, now_s + span.ahead_s);
    const held = ahead.findLastIndex(({ start_s }) => start_s <= now_s);
    const future = ahead.slice(Math.max(0, held)).filter(({ start_s }) => start_s < until_s).map((entry, k) => (k === 0 ? { ...entry, start_s: Math.max(entry.start_s, now_s) } : entry));
    chart.show({ past: shown, step_s: span.step_s ?? liveStep_s, ahead: future, until_s }, now_s - span.length_s, now_s);
    const text = span.live ? 'As this page has seen it since it was opened, every 2 s. '
      : 'Means over the readings of the server that grants, one every 5 s. ';
    const expected = 'Ahead: the announced limits, and what the jobs of now would draw under them.';
    if (note.textContent !== text + expected) note.textContent = text + expected;
  }

  const timer = setInterval(() => !document.hidden && domain && refresher.ask(), follow_ms);
  return {
    show(power) {
      const began = domain === '';
      now_s = power.now_s;
      seen.push({ start_s: now_s, of: new Map(power.domains.map((one) => [one.name, one])) });
      while (seen[0].start_s < now_s - 600) seen.shift();
      if (updateDomains(domains, power.domains)) {
        domain = domains.value;
        domains.hidden = domains.options.length < 2;
        if (began || !chart) choose(span, domain);
      }
      if (span.live) drawNow();
      else if (isEmpty) refresher.ask(); // the first readings
    },
    close() {
      clearInterval(timer);
      refresher.close();
      chart?.dispose();
    },
  };
}
