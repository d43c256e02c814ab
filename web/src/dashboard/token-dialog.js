// Dialog for the token that the server requires. The page keeps the token until the tab is closed, and sends it only to the
// server.
import { element } from '../dom.js';
import { token } from './api.js';

/** Returns { open() }; calls onChange() when the token changes. */
export function createTokenDialog(dialog, onChange) {
  const input = element('input', { type: 'password', id: 'token-input', autocomplete: 'off', spellcheck: 'false' });
  const form = element('form', { method: 'dialog' },
    element('h2', { id: 'token-title', text: 'Access token' }),
    element('p', { class: 'note', text: 'A read-only token is enough. It is kept in this tab until you close it, ' +
      'and sent only to this server.' }),
    element('label', { for: 'token-input', text: 'Token' }), input,
    element('div', { class: 'dialog-buttons' },
      element('button', { type: 'button', text: 'Cancel', onclick: () => dialog.close() }),
      element('button', { type: 'button', text: 'Remove token', onclick: () => use('') }),
      element('button', { type: 'submit', class: 'primary', text: 'Use' })));
  dialog.append(form);
  function use(text) {
    token.set(text);
    dialog.close();
    onChange();
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    use(input.value.trim());
  });
  return {
    open() {
      if (dialog.open) return;
      input.value = token.get();
      dialog.showModal();
      input.select();
    },
  };
}
