# Sourced by app/run.sh and tests/run.sh: what both need before they can build.
#
#   install_packages FILE...    installs what is missing, from the distribution only
#   configure_and_build PRESET TARGET...

say() { printf '%s\n' "$*" >&2; }

# One question for all packages: a question each takes seconds where the disk is busy.
declare -A installed=()
read_installed() {
  local package state
  while read -r package state; do
    if [[ $state == installed ]]; then installed[$package]=1; fi
  done < <(dpkg-query -W -f='${Package} ${db:Status-Status}\n')
}
is_installed() { [[ -n ${installed[$1]:-} ]]; }

# Without sudo and without root nothing can be installed: the words say what to ask for.
as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "setup: these packages are missing, and there is no sudo to install them with:"
    say "  apt-get install --no-install-recommends ${wanted[*]}"
    return 1
  fi
}

install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "setup: this is no Debian or Ubuntu. Install what $* name, by your distribution's names;"
    say "setup: going on with what is there."
    return 0
  fi
  read_installed
  local mark package missing=() maybe=() wanted=()
  while read -r mark package; do
    [[ -z $mark || $mark == '#'* ]] && continue
    if [[ $mark == '?' ]]; then
      is_installed "$package" || maybe+=("$package")
    else
      is_installed "$mark" || missing+=("$mark")
    fi
  done < <(cat "$@")
  # What was found to be unavailable is not looked for again at every start.
  local skipped=${XDG_CACHE_HOME:-$HOME/.cache}/shardwright/unavailable-packages
  if [[ ${#missing[@]} == 0 ]]; then
    local still=()
    for package in "${maybe[@]}"; do
      grep -qxF "$package" "$skipped" 2>/dev/null || still+=("$package")
    done
    maybe=("${still[@]}")
  fi
  if [[ ${#missing[@]} == 0 && ${#maybe[@]} == 0 ]]; then
    return 0
  fi

  wanted=("${missing[@]}" "${maybe[@]}")
  say "setup: installing ${wanted[*]}"
  export DEBIAN_FRONTEND=noninteractive
  as_root apt-get update -qq || return 1
  wanted=("${missing[@]}")
  mkdir -p "$(dirname "$skipped")"
  for package in "${maybe[@]}"; do
    if apt-cache show "$package" >/dev/null 2>&1; then
      wanted+=("$package")
    else
      say "setup: $package is not in this distribution; going on without it"
      grep -qxF "$package" "$skipped" 2>/dev/null || echo "$package" >> "$skipped"
    fi
  done
  [[ ${#wanted[@]} == 0 ]] && return 0
  as_root apt-get install -y -qq --no-install-recommends "${wanted[@]}" >&2
}

# Two jobs where nobody says otherwise would starve a large machine; all cores it is.
jobs() { echo "${SHARDWRIGHT_JOBS:-$(nproc)}"; }

# Configures once; CMake itself notices later changes. Output only where something fails or is
# built.
configure_and_build() {
  local preset=$1
  shift
  local log=build/$preset-configure.log
  mkdir -p build
  if [[ ! -f build/$preset/build.ninja ]] && ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
  ninja -C "build/$preset" -j"$(jobs)" --quiet "$@" >&2
}
