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

/** A list's address as the reader left it; where there was none, with the filters and the order `list`. */
export function back(hash, list = {}) {
  const asked = new URLSearchParams(list);
  return last.get(hash) ?? (asked.size ? `${hash}?${asked}` : hash);
}

/** What an address says of a list of episodes: its filters and its order, not its page. */
export function listed(query) {
  const part = (name) => ["sort", "desc", "outcome", "condition", "q"].includes(name) || name.startsWith("label.");
  return Object.fromEntries([...query].filter(([name, value]) => value && part(name)));
}
