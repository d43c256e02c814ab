// Dark or light, as the system's setting unless the user chose; and the style sheet's colors for canvases.
const query = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set();
let chosen = null; // 'dark', 'light', or null: the system's

const systemTheme = () => (query.matches ? 'dark' : 'light');
export const currentTheme = () => chosen ?? systemTheme();

/** Calls `redraw` after every change; returns a function that ends that. */
export function onThemeChange(redraw) {
  listeners.add(redraw);
  return () => listeners.delete(redraw);
}
const announce = () => listeners.forEach((redraw) => redraw());
query.addEventListener('change', announce);

/** The page's rules for dark, found once: their condition becomes what was chosen. */
let darkRule;
export function chooseTheme(theme) {
  darkRule ??= [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
    .find((rule) => rule.conditionText?.includes('prefers-color-scheme'));
  chosen = theme === systemTheme() ? null : theme; // back to following the system
  if (darkRule) darkRule.media.mediaText = { dark: 'all', light: 'not all' }[chosen] ?? query.media;
  document.documentElement.style.colorScheme = chosen ?? '';
  announce();
  return chosen;
}

export const pageFont = () => getComputedStyle(document.body).fontFamily;

/** The custom property `--name` of the page. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
