// Numbers as text for display; the same rules as src/io/report/format.cpp.
function withDigits(value, digits) {
  if (value === 0) return '0';
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  const decimals = Math.min(12, Math.max(0, digits - 1 - magnitude));
  return value.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

export function seconds(s) {
  if (s !== 0 && Math.abs(s) < 1e-3) return `${withDigits(s * 1e6, 4)} µs`;
  if (s !== 0 && Math.abs(s) < 1) return `${withDigits(s * 1e3, 4)} ms`;
  return `${withDigits(s, 5)} s`;
}
export const joules = (j) => `${withDigits(j, 5)} J`;
export const watts = (w) => `${withDigits(w, 3)} W`;
export const megahertz = (mhz) => (mhz === 0 ? 'fixed clock' : `${mhz} MHz`);
const withoutMinusZero = (text) => (Number(text) === 0 ? text.replace('-', '') : text);
export const percent = (p) => `${withoutMinusZero(p.toFixed(Math.abs(p) < 1 ? 3 : 2))} %`;
/** Formats a change in percent with its sign; "±0.00 %" if it rounds to zero. */
export function change(p) {
  const text = Math.abs(p).toFixed(2);
  return `${Number(text) === 0 ? '±' : p < 0 ? '−' : '+'}${text} %`;
}

const letters = { pure_backward: 'B' };
export const letter = (instruction) => letters[instruction] ?? (instruction[0] ?? '?').toUpperCase();
