// The colors that represent power; the same ramp as src/io/report/series_look.h (a test compares the two).
// More power always gives more contrast to the page. Color map "inferno" by Smith & van der Walt, CC0.
const stops = [
  '#000004', '#1b0c41', '#4a0c6b', '#781c6d', '#a52c60', '#cf4446', '#ed6925', '#fb9b06', '#f7d13d', '#fcffa4',
].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
const ends = { light: [0.9, 0.1], dark: [0.26, 1.0] };

function colorAt(position, theme) {
  const [from, to] = ends[theme];
  const at = (from + (to - from) * position) * (stops.length - 1);
  const left = Math.min(Math.floor(at), stops.length - 2);
  return stops[left].map((v, k) => Math.round(v + (at - left) * (stops[left + 1][k] - v)));
}

const css = ([r, g, b]) => `rgb(${r},${g},${b})`;
const isDark = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b < 140;

/** Returns `size` colors from low to high power, and for each the color of text on it. */
export function powerRamp(theme, size = 96) {
  const colors = Array.from({ length: size }, (_, k) => colorAt(k / (size - 1), theme));
  return { colors: colors.map(css), texts: colors.map((c) => (isDark(c) ? '#fff' : '#000')) };
}

export function rampGradient(theme) {
  return `linear-gradient(90deg, ${powerRamp(theme, 16).colors.join(', ')})`;
}
