// Dark or light theme: the system's setting unless the user chooses one. Also the style sheet's colors for canvases.
const query = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set();
let chosen = null; // 'dark', 'light', or null: the system's

const systemTheme = () => (query.matches ? 'dark' : 'light');
export const currentTheme = () => chosen ?? systemTheme();

/** Calls `redraw` after every change of the theme; returns a function that stops these calls. */
export function onThemeChange(redraw) {
  listeners.add(redraw);
  return () => listeners.delete(redraw);
}
const announce = () => listeners.forEach((redraw) => redraw());
query.addEventListener('change', announce);

/** The page's rules for the dark theme, looked up once; the chosen theme replaces their condition. */
let darkRule;
export function chooseTheme(theme) {
  darkRule ??= [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
    .find((rule) => rule.conditionText?.includes('prefers-color-scheme'));
  chosen = theme === systemTheme() ? null : theme; // equal to the system's: follow the system again
  if (darkRule) darkRule.media.mediaText = { dark: 'all', light: 'not all' }[chosen] ?? query.media;
  document.documentElement.style.colorScheme = chosen ?? '';
  announce();
  return chosen;
}

export const pageFont = () => getComputedStyle(document.body).fontFamily;

/** Returns the custom property `--name` of the page. */
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
