# The Python environment with LibTorch, and the Python package in it. Part of cmake/setup.sh, which sources it: do not
# source it alone. The rule of that file holds here too: no function leans on the caller's `set -e`.

# BUILD_DIR/venv with the packages of cmake/requirements/PROFILE.txt. Profiles: torch, worker, tests, speculators,
# render; deploy, proxy.
aerie_python_env() {  # BUILD_DIR PROFILE...
  local build=$1
  shift
  local profile
  for profile in "$@"; do
    [[ -f $AERIE_REQUIREMENTS/$profile.txt ]] || {
      aerie_die "there is no Python profile '$profile'" \
        "torch, worker, tests, speculators, render, deploy or proxy" \
        "name one of these"
    }
  done
  aerie_locked "$build" aerie_python_env_locked "$build" "$@"
}

aerie_python_env_locked() {  # BUILD_DIR PROFILE...
  local build=$1 python=${AERIE_PYTHON:-python3} version profile stamp sum
  shift
  # One start of Python and no second: a shim in front of it may take half a second.
  version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3], sys.executable)' 2>/dev/null) ||
    aerie_die "$python does not run" "Python 3.11 or later" "install python3, or set AERIE_PYTHON"
  [[ $version == 3.1[1-4].* ]] ||
    aerie_die "$python is Python ${version/ / in }" "Python 3.11 to 3.14, for which all pinned packages exist" \
      "set AERIE_PYTHON to another Python"

  # A new Python needs a new environment: its packages lie in a folder with the version in its name.
  if ! aerie_stamp_is "$build/venv/.aerie-python" "$version" || [[ ! -x $build/venv/bin/pip ]]; then
    rm -rf "$build/venv"
    aerie_step "making a Python environment" "$python" -m venv "$build/venv" ||
      aerie_die "$python -m venv failed" "a Python with the module venv" \
        "install python3-venv, or set AERIE_PYTHON to another Python"
    printf '%s' "$version" >"$build/venv/.aerie-python"
  fi

  for profile in "$@"; do
    stamp=$build/venv/.aerie-$profile
    sum=$(cat "$AERIE_REQUIREMENTS/$profile.txt" "$AERIE_REQUIREMENTS/torch-cuda.txt" | sha256sum)
    aerie_stamp_is "$stamp" "$sum" && continue
    # The lists are complete and --no-deps keeps to them: what is installed is what was tested.
    aerie_step "installing Python packages: $profile" aerie_pip "$build" \
      --no-deps -r "$AERIE_REQUIREMENTS/$profile.txt" ||
      aerie_die "pip could not install cmake/requirements/$profile.txt" "a Python package index within reach" \
        "read the log above; a version that is gone can be replaced in that file"
    [[ $profile != torch ]] || aerie_torch_libraries "$build"
    printf '%s' "$sum" >"$stamp"
  done
}

aerie_pip() {  # BUILD_DIR ARG...
  local build=$1
  shift
  "$build/venv/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off "$@"
}

# Makes `import torch` work: finds the CUDA libraries that neither the wheel nor the machine has, and installs the
# wheels that carry them. More than one round, for those libraries want others.
aerie_torch_libraries() {  # BUILD_DIR
  local build=$1 torch missing library wheel wheels
  torch=$("$build/venv/bin/python" -c \
    'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
  while missing=$(aerie_missing_libraries "$torch") && [[ -n $missing ]]; do
    wheels=()
    for library in $missing; do
      wheel=$(awk -v library="$library" '!/^#/ { for (i = 3; i <= NF; i++) if ($i == library) print $1 }' \
        "$AERIE_REQUIREMENTS/torch-cuda.txt")
      # Already there and still not found, or not known: the import below tells.
      [[ -n $wheel && ! -f $build/venv/.aerie-wheel-$wheel ]] && wheels+=("$wheel")
    done
    ((${#wheels[@]})) || break
    mapfile -t wheels < <(printf '%s\n' "${wheels[@]}" | sort -u)
    aerie_step "installing CUDA libraries that torch opens (${#wheels[@]})" \
      aerie_pip "$build" --no-deps "${wheels[@]}" ||
      aerie_die "pip could not install ${wheels[*]}" "a Python package index within reach" "read the log above"
    for wheel in "${wheels[@]}"; do
      : >"$build/venv/.aerie-wheel-$wheel"
    done
  done
  aerie_step "importing torch" "$build/venv/bin/python" -c 'import torch; print(torch.ones(2, 2) @ torch.ones(2, 2))' ||
    aerie_die "the Python package torch in $build/venv cannot be imported" \
      "torch 2.11 with all the libraries it opens" \
      "when a library is missing, add its wheel to cmake/requirements/torch-cuda.txt; else delete $build/venv"
}

aerie_missing_libraries() {  # TORCH_FOLDER
  local file
  for file in "$1"/lib/libtorch_python.so "$1"/lib/libtorch_cuda_linalg.so "$1"/../nvidia/*/lib/*.so.*; do
    # libcuda.so.1 is the driver's: torch opens it only where a GPU is.
    [[ ! -f $file ]] || ldd "$file" 2>/dev/null | awk '/not found/ && $1 != "libcuda.so.1" { print $1 }'
  done | sort -u
}

# BUILD_DIR/venv gets the package aerie_draft of this checkout. Wants the profile worker. Built from a copy: pip leaves
# its traces in the folder it builds, and what an earlier build left there would be packed again.
aerie_python_package() {  # BUILD_DIR
  aerie_locked "$1" aerie_python_package_locked "$1"
}

aerie_python_package_locked() {  # BUILD_DIR
  local build=$1 copy=$1/python-package sum isolation=()
  sum=$(cd "$AERIE_ROOT" && find client/python proto/aerie -type f \
    \( -name '*.py' -o -name '*.toml' -o -name '*.md' -o -name '*.proto' \) -not -path '*/_proto/*' \
    -not -path '*/build/*' -print0 | sort -z | xargs -0 sha256sum | sha256sum)
  aerie_stamp_is "$build/venv/.aerie-package" "$sum" && return 0
  rm -rf "$copy" && mkdir -p "$copy/client" && cp -r "$AERIE_ROOT/proto" "$copy/" &&
    cp -r "$AERIE_ROOT/client/python" "$copy/client/" && rm -rf "$copy"/client/python/{build,*.egg-info} || return 1
  # The environment has the stub generator where that has wheels (Python up to 3.12); else pip brings a newer one.
  ! "$build/venv/bin/python" -c 'import grpc_tools' 2>/dev/null || isolation=(--no-build-isolation)
  aerie_pip "$build" --no-deps --force-reinstall "${isolation[@]}" "$copy/client/python" || return 1
  printf '%s' "$sum" >"$build/venv/.aerie-package"
}
