// Where a reader was: a list keeps its filters and its order when the reader comes back to it.

const last = new Map();

/** Take an address as the page's own. */
export function keep(hash) {
  last.set(hash.split("?")[0], hash);
}

/** The same, and show it in the address bar without loading anything. */
export function move(hash) {
  keep(hash);
  history.replaceState(null, "", hash);
}

/** A list's address as the reader left it. */
export function back(hash) {
  return last.get(hash) ?? hash;
}
