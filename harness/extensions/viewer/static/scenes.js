// Scenes as the server sends them, what changed from one to the next, put together again.

/** All scenes, whole. Parts that did not change are the same objects, so drawing can skip them. */
export function whole(sent) {
  const scenes = [];
  let now = { caption: "", nodes: [], edges: [], messages: [], bars: [], sheets: [], facts: {} };
  for (const changes of sent) {
    now = { ...now };
    for (const [name, value] of Object.entries(changes)) now[name] = merged(now[name], value);
    scenes.push(now);
  }
  return scenes;
}

function merged(old, now) {
  if (!Array.isArray(now) || !Array.isArray(old) || old.length !== now.length) return now;
  return now.map((entry, i) => (entry === null ? old[i] : sheet(old[i], entry)));
}

function sheet(old, now) {
  if (!now || !now.rows) return now;
  if (now.grown) return { ...now, grown: false, rows: now.rows.map((more, i) => [...old.rows[i], ...more]) };
  return old.title === now.title ? { ...now, rows: merged(old.rows, now.rows) } : now;
}
