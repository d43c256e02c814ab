// Lists of the server, which come in pages.
import { getJson } from './api.js';

const pageRows = 1000; // the most that the server allows

/** Loads every page of a list: take(page) receives each. */
export async function loadPages(path, take, signal) {
  for (let after = null; ;) {
    const page = await getJson(`${path}?limit=${pageRows}${after === null ? '' : `&after=${encodeURIComponent(after)}`}`, signal);
    take(page);
    if (!page.next) return;
    after = page.next;
  }
}

/** The same of a list that a server of an earlier version does not have: nothing is taken then. */
export async function loadPagesIfAny(path, take, signal) {
  try {
    await loadPages(path, take, signal);
  } catch (error) {
    if (!error.isGone) throw error;
  }
}
