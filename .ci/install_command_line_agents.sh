#!/usr/bin/env bash
# Installs the agents of docs/how-to/command_line_agents.md into a folder, in the versions that the page names, and
# bubblewrap, which confines them. The tests find them on the PATH: FOLDER/bin.
set -euo pipefail
folder=$(mkdir -p "${1:?a folder}" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
page=docs/how-to/command_line_agents.md

missing=()
command -v bwrap >/dev/null || missing+=(bubblewrap)
command -v npm >/dev/null || missing+=(nodejs npm)
if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "install ${missing[*]}: this script knows apt-get only" >&2
    exit 1
  fi
  run=()
  if [ "$(id -u)" -ne 0 ]; then run=(sudo); fi
  "${run[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
fi

mkdir -p "$folder/bin"
mapfile -t packages < <(sed -n 's/^npm install -g //p' "$page")
npm install --silent --no-audit --no-fund --prefix "$folder" "${packages[@]}"
for command in codex claude qwen; do ln -sf "../node_modules/.bin/$command" "$folder/bin/$command"; done

sed -n 's/^pipx install //p' "$page" | while read -r package; do
  python3 -m venv "$folder/${package%%==*}"
  env -u PIP_COMPILE "$folder/${package%%==*}/bin/pip" install -q "$package"  # confined, it cannot compile once for all
done
ln -sf ../mini-swe-agent/bin/mini "$folder/bin/mini"
