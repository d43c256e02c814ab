// An event as it unfolds: a limit that has fallen while the page was open, or above which jobs still count.
import { element } from '../dom.js';
import { jobLink } from './job-list.js';
import { followers, isOver } from './site-data.js';
import { count, duration, kilowatts } from './words.js';

const shown_s = 600; // a fall stays on the page for this long
const mostNamed = 5;
const mostShown = 8; // domains

/** Notes falls of limits. Returns { take(power), of(domain) }: { at_s, before_w, followed_s } of the last fall, or null. */
export function createFalls() {
  const last = new Map(); // by domain
  const falls = new Map();
  return {
    take({ now_s, domains }) {
      for (const { name, limit_w: limit, ...domain } of domains) {
        const before = last.get(name);
        const known = falls.get(name);
        last.set(name, { limit });
        if (before && limit != null && (before.limit == null || limit < before.limit * (1 - 1e-9))) {
          const goesOn = known && known.followed_s === null; // a ramp is one fall
          falls.set(name, { at_s: goesOn ? known.at_s : now_s, before_w: goesOn ? known.before_w : before.limit ?? null, followed_s: null });
        }
        const fall = falls.get(name);
        if (fall && now_s - fall.at_s > shown_s && fall.followed_s !== null) falls.delete(name);
        else if (fall && fall.followed_s === null && !isOver({ limit_w: limit, ...domain })) fall.followed_s = now_s - fall.at_s;
      }
    },
    of: (name) => falls.get(name) ?? null,
  };
}

/** Watts that count above the limit. */
const excess = (domain) => (isOver(domain) ? domain.counted_w - domain.limit_w : 0);

/** Returns { show(power, falls) }. */
export function createSiteEvent(parent) {
  const cards = element('ul', { class: 'cards' });
  const root = element('section', { class: 'site-event', 'aria-labelledby': 'site-event-title', hidden: true },
    element('div', { class: 'heading' }, element('h3', { id: 'site-event-title', text: 'Limits that have changed' })), cards);
  const more = element('p', { class: 'note', hidden: true });
  root.append(more);
  parent.append(root);
  let before = '';

  function factsOf(domain, power, fall, { jobs, unconfirmed }) {
    const limit = domain.limit_w == null ? 'there is no limit' : `limit ${kilowatts(domain.limit_w)}`;
    const fell = fall ? `${fall.before_w === null ? limit : `${limit}, before ${kilowatts(fall.before_w)}`}; changed ${duration(power.now_s - fall.at_s)} ago` : limit;
    const follows = isOver(domain) ? `counted ${kilowatts(domain.counted_w)}: ${kilowatts(domain.counted_w - domain.limit_w)} above it`
      : `counted ${kilowatts(domain.counted_w)}: within it${fall?.followed_s != null ? ` after ${duration(fall.followed_s)}` : ''}`;
    const confirmed = unconfirmed.length === 0 ? `all ${count(jobs, 'job')} have confirmed`
      : `${count(unconfirmed.length, 'job')} of ${jobs.toLocaleString('en')} not confirmed yet: `;
    return { fell, follows, confirmed, unconfirmed };
  }
  return {
    show(power, falls) {
      const all = power.domains.map((domain) => ({ domain, fall: falls.of(domain.name) })).filter(({ domain, fall }) => fall || isOver(domain));
      root.hidden = all.length === 0;
      // Of many domains: those around the others first, then those that are above their limits.
      const shown = all.length <= mostShown ? all : [...all].sort((a, b) => (b.domain === power.domains[0]) - (a.domain === power.domains[0]) ||
        excess(b.domain) - excess(a.domain)).slice(0, mostShown);
      const rest = `And ${count(all.length - shown.length, 'domain')} more, ${all.filter(({ domain }) => isOver(domain)).length.toLocaleString('en')} of all above their limits.`;
      more.hidden = all.length === shown.length;
      if (!more.hidden && more.textContent !== rest) more.textContent = rest;
      const follow = shown.length > 0 ? followers(power) : null;
      const facts = shown.map(({ domain, fall }) => ({ domain, ...factsOf(domain, power, fall, follow.get(domain.name)) }));
      const wanted = JSON.stringify(facts.map(({ domain, unconfirmed, ...rest }) => [domain.name, isOver(domain), rest, unconfirmed.map(({ job }) => job)]));
      if (wanted === before) return;
      before = wanted;
      cards.replaceChildren(...facts.map(({ domain, fell, follows, confirmed, unconfirmed }) =>
        element('li', { class: `card${isOver(domain) ? ' over-limit' : ''}`, 'data-domain': domain.name }, element('b', { text: domain.name }),
          element('span', { text: fell }), element('span', { class: 'follows', text: follows }), element('span', { class: 'dim' }, confirmed,
            ...unconfirmed.slice(0, mostNamed).flatMap(({ job, name }, k) => [k > 0 ? ', ' : '', element('a', { href: jobLink(job), text: name || job })]),
            unconfirmed.length > mostNamed ? ' …' : ''))));
    },
  };
}
