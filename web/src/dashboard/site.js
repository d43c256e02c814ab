// The site page: the power limits of a site, what its jobs draw under them, who gives how much, the hours ahead, and the proof.
import { element } from '../dom.js';
import { pricesWords, summaryOf } from './site-data.js';
import { createSiteDomains } from './site-domains.js';
import { createFalls, createSiteEvent } from './site-event.js';
import { createSiteGives } from './site-gives.js';
import { createSiteHistory } from './site-history.js';
import { createSiteProof } from './site-proof.js';
import { createSiteReserved } from './site-reserved.js';

/** Returns { show(loaded), fail(error), close() }: `loaded` as of createSiteLoader(). */
export function createSiteView(parent) {
  let parts = null;
  const falls = createFalls();
  const summary = element('p', { class: 'list-summary', role: 'status' });
  const none = element('p', { class: 'empty-line', text: 'Loading the site …' });
  const content = element('div', { hidden: true });
  const root = element('article', { 'aria-labelledby': 'site-title', class: 'cluster site' },
    element('div', { class: 'heading' }, element('h2', { id: 'site-title', text: 'Site' }), summary), none, content);
  parent.replaceChildren(root);
  document.title = 'Site - Perseus';

  function open() {
    const section = (id, title) => {
      const made = element('section', { id, 'aria-labelledby': `${id}-title` },
        element('div', { class: 'heading' }, element('h3', { id: `${id}-title`, text: title })));
      content.append(made);
      return made;
    };
    const event = createSiteEvent(content);
    const domains = createSiteDomains(section('site-domains', 'Power now against each limit'));
    const prices = element('ul', { class: 'note prices', 'aria-label': 'Prices' });
    document.getElementById('site-domains').append(prices);
    const reserved = createSiteReserved(section('site-reserved', 'Reserved for jobs that have not started'));
    const history = createSiteHistory(content);
    const givesPart = section('site-gives', 'Who gives how much');
    const given = createSiteGives(givesPart);
    givesPart.append(element('p', { class: 'note', text: 'Gives: power of the fastest plan less that of the plan in force. Rate: of full speed. ' +
      'A job that is not controlled gives nothing; its power does not follow grants.' }));
    const proof = createSiteProof(content);
    parts = [event, domains, reserved, history, given, proof];
    return { show(power) {
      falls.take(power);
      event.show(power, falls);
      domains.show(power);
      const words = pricesWords(power);
      if (words.join() !== [...prices.children].map(({ textContent }) => textContent).join()) {
        prices.replaceChildren(...words.map((text) => element('li', { text })));
      }
      reserved.show(power);
      history.show(power);
      given.show(power);
      proof.show(power);
    } };
  }
  let opened = null;
  function say(text) {
    content.hidden = true;
    none.hidden = false;
    none.textContent = text;
    summary.textContent = '';
  }
  return {
    show(loaded) {
      if (loaded.none) return say('This server keeps no power limits. Set some with: perseus site set FILE.toml');
      if (loaded.refused) return say('This token sees only some jobs: the site is shown to tokens that see all of them.');
      none.hidden = true;
      content.hidden = false;
      opened ??= open();
      const text = summaryOf(loaded);
      if (summary.textContent !== text) summary.textContent = text;
      opened.show(loaded);
    },
    fail(error) {
      if (content.hidden) none.textContent = `The server did not send the site: ${error.message}`;
    },
    close() {
      parts?.forEach((part) => part.close?.());
      root.remove();
    },
  };
}
