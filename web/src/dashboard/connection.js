// Shows the state of the connection to the server, and offers a retry or the token dialog when it is lost.
import { element } from '../dom.js';
import { clockTime } from './words.js';

/** line: a short text; banner: the error, with a button. Returns { live(), lost(error, retryAt_ms),
    refused(message) }. */
export function createConnectionSign(line, banner, { onRetry, onToken }) {
  let timer = 0;
  let heard_s = null; // time of the server's last response
  const text = element('span');
  const wait = element('span', { 'aria-hidden': 'true' }); // countdown; screen readers must not read it every second
  const retry = element('button', { type: 'button', text: 'Try now', onclick: onRetry });
  const unlock = element('button', { type: 'button', text: 'Enter token', onclick: onToken });
  banner.append(text, wait, retry, unlock);

  function set(kind, words) {
    clearInterval(timer);
    document.documentElement.dataset.connection = kind;
    line.className = kind;
    if (line.textContent !== words) line.textContent = words;
    banner.hidden = kind === 'live' || kind === 'connecting';
    retry.hidden = kind !== 'lost';
    unlock.hidden = kind !== 'refused';
    wait.textContent = '';
  }
  set('connecting', 'connecting');
  return {
    live() {
      heard_s = Date.now() / 1000;
      set('live', 'live');
    },
    lost(error, retryAt_ms) {
      if (document.documentElement.dataset.connection === 'live') heard_s = Date.now() / 1000;
      set('lost', 'not connected');
      const stale = heard_s === null ? '' : ` What you see is from ${clockTime(heard_s)}.`;
      const words = `${error.message}.${stale}`;
      if (text.textContent !== words) text.textContent = words;
      const tick = () => {
        const left = Math.ceil((retryAt_ms - Date.now()) / 1000);
        wait.textContent = left > 0 ? `Trying again in ${left} s.` : 'Trying again.';
      };
      tick();
      timer = setInterval(tick, 1000);
    },
    /** message: why the server refuses the token; empty: there is none. */
    refused(message) {
      set('refused', 'token needed');
      text.textContent = message ? `The server refuses the token: ${message}.`.replace('..', '.') : 'The server requires a token.';
    },
  };
}
