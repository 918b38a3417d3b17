#!/usr/bin/env bash
# Installs Debian's Chromium, which the viewer's pages are tested in. Does nothing where there is one.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
if ! command -v apt-get >/dev/null; then
  echo "install Chromium or Chrome: this script knows apt-get only" >&2
  exit 1
fi
run=()
if [ "$(id -u)" -ne 0 ]; then run=(sudo); fi
"${run[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core >/dev/null
chromium --version
