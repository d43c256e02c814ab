// Keyboard focus in a list that is one stop of the Tab key: arrows, Home and End move within it.

/** `items()` returns the focusable elements. Returns { refresh() }; call it after the elements changed. */
export function createRovingList(list, items) {
  const current = (all) => all.find((item) => item === document.activeElement) ??
    all.find((item) => item.tabIndex === 0) ?? all.find((item) => item.ariaCurrent === 'true') ?? all[0];
  function refresh(wanted) {
    const all = items();
    const one = wanted ?? current(all);
    for (const item of all) item.tabIndex = item === one ? 0 : -1;
  }
  const steps = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
  list.addEventListener('keydown', (event) => {
    if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
    const all = items();
    const at = all.indexOf(document.activeElement);
    if (at < 0) return;
    event.preventDefault();
    all[Math.min(all.length - 1, Math.max(0, at + steps[event.key]))].focus();
  });
  list.addEventListener('focusin', (event) => {
    if (items().includes(event.target)) refresh(event.target);
  });
  return { refresh: () => refresh() };
}
