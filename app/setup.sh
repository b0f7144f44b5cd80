# Sourced by app/run.sh and tests/run.sh: what both need before they can build.
#
#   install_packages FILE...    installs what is missing, from the distribution only
#   configure_and_build PRESET TARGET...
#   leave_out WHAT              to be said at the end
#   conclude PRESET             says what was left out; fails where the desktop is not there and should be

say() { printf '%s\n' "$*" >&2; }

# Scripts that are run by others hand their remarks up through a file.
leave_out() {
  if [[ -n ${SHARDWRIGHT_LEFT_OUT:-} ]]; then echo "$*" >> "$SHARDWRIGHT_LEFT_OUT"; else say "left out: $*"; fi
}
keep_remarks() {
  SHARDWRIGHT_LEFT_OUT=$(mktemp)
  export SHARDWRIGHT_LEFT_OUT
  trap 'rm -f "$SHARDWRIGHT_LEFT_OUT"' EXIT
}

is_debian() { command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; }

# One question for all packages: a question each takes seconds where the disk is busy.
# shellcheck disable=SC2034
declare -A installed=() known=()
read_installed() {
  local package state
  installed=()
  while read -r package state; do
    if [[ $state == installed ]]; then installed[$package]=1; fi
  done < <(dpkg-query -W -f='${Package} ${db:Status-Status}\n')
}
read_known() {
  local package
  known=()
  while read -r package; do known[$package]=1; done < <(
    apt-cache show --no-all-versions "$@" 2>/dev/null | sed -n 's/^Package: //p')
}

# all_in MAP "A&B": are all of them in the map?
all_in() {
  local -n map=$1
  local package
  for package in ${2//&/ }; do [[ -n ${map[$package]:-} ]] || return 1; done
}
# first_in MAP "A&B|C": the first alternative that is there whole, its packages apart.
first_in() {
  local alternative
  for alternative in ${2//|/ }; do
    if all_in "$1" "$alternative"; then
      echo "${alternative//&/ }"
      return 0
    fi
  done
  return 1
}

as_root() {
  if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}
can_install() { [[ $(id -u) == 0 ]] || command -v sudo >/dev/null; }

# The lists into the arrays of install_packages: what is needed, the desktop's, and what may be missing.
read_lists() {
  local mark package text
  while read -r mark package text; do
    case $mark in
      '' | '#'*) ;;
      '?') optional+=("$package") && what+=("$text") ;;
      '*') [[ -n ${installed[$package]:-} ]] || desktop+=("$package") ;;
      *) [[ -n ${installed[$mark]:-} ]] || needed+=("$mark") ;;
    esac
  done < <(cat "$@")
}

# Those of the optional ones that are neither here nor served by another, where the distribution has
# them. What it lacks is asked for anew each time, without the network: it may have come since.
choose_optional() {
  local entry packages absent=()
  extra=()
  for entry in "${optional[@]}"; do
    first_in installed "$entry" >/dev/null || absent+=("$entry")
  done
  [[ ${#absent[@]} == 0 ]] && return 0
  # shellcheck disable=SC2046
  read_known $(printf '%s ' "${absent[@]//[|&]/ }")
  for entry in "${absent[@]}"; do
    if packages=$(first_in known "$entry"); then
      # shellcheck disable=SC2206
      extra+=($packages)
    fi
  done
}

# A package that cannot be had must not keep the others away.
install_most() {
  local try package wanted=()
  read_known "${needed[@]}" "${desktop[@]}"
  for package in "${needed[@]}" "${desktop[@]}"; do
    if [[ -n ${known[$package]:-} ]]; then
      wanted+=("$package")
    else
      say "setup: apt-get knows no $package"
    fi
  done
  for try in "${wanted[*]} ${extra[*]}" "${wanted[*]}"; do
    [[ -n ${try// /} ]] || return 0
    say "setup: installing $try"
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $try >&2 &&
      return 0
    say "setup: apt-get could not install all of these"
  done
}

install_packages() {
  if ! is_debian; then
    say "setup: this is not Debian or Ubuntu. Install what $* name, by your distribution's names;"
    say "setup: going on with what is there."
    return 0
  fi
  local needed=() desktop=() optional=() what=() extra=() package i
  read_installed
  read_lists "$@"
  choose_optional
  local all="${needed[*]} ${desktop[*]} ${extra[*]}"
  if [[ -z ${all// /} ]] && has_lists; then
    :
  elif can_install; then
    # Old lists may serve as well; if not, the installation says so.
    as_root apt-get update -qq >&2 ||
      say "setup: apt-get update failed: going on with the lists that are there"
    choose_optional
    all="${needed[*]} ${desktop[*]} ${extra[*]}"
    if [[ -n ${all// /} ]]; then install_most; fi
    read_installed
  elif [[ -n ${all// /} ]]; then
    say "setup: these packages are missing, and there is neither root nor sudo to install them with:"
    say "  apt-get install --no-install-recommends $all"
  fi
  for i in "${!optional[@]}"; do
    [[ -z ${what[i]} ]] || first_in installed "${optional[i]}" >/dev/null ||
      leave_out "${what[i]}: ${optional[i]} is not installed"
  done
  local still=()
  for package in "${needed[@]}"; do [[ -n ${installed[$package]:-} ]] || still+=("$package"); done
  [[ ${#still[@]} == 0 ]] || { say "setup: nothing can be built without ${still[*]}"; return 1; }
}

# A system that has never been updated does not know where to get even apt.
has_lists() { [[ $(apt-cache show apt 2>/dev/null) == *Filename:* ]]; }

# All cores, where nobody says otherwise.
jobs() { echo "${SHARDWRIGHT_JOBS:-$(nproc)}"; }

# What CMake did not find of what the desktop needs, by Debian's names.
desktop_lacks() {
  sed -n 's/^SHW_DESKTOP_MISSING:INTERNAL=//p' "build/$1/CMakeCache.txt" 2>/dev/null || true
}

# The same of HDF5 files and MPI, which may be missing.
rest_lacks() {
  sed -nE 's/^SHW_(HDF5|MPI)_MISSING:INTERNAL=//p' "build/$1/CMakeCache.txt" 2>/dev/null || true
}

# Files per unit of a unity build. Larger units take less time of the processor (64 of 245 files: 36 %
# less), smaller ones use more processors and less memory (1.5 GB per unit of 64 with ASan).
unit_size() { if (($(nproc) <= 4)); then echo 64; else echo 16; fi; }

# Configures once; CMake itself notices later changes, but not that a package has come. Output only
# where something fails or is built. `configure_options` go to CMake as they are.
configure_options=()
configure_and_build() {
  local preset=$1
  shift
  local log=build/$preset-configure.log
  mkdir -p build
  if [[ ! -f build/$preset/build.ninja || -n $(desktop_lacks "$preset")$(rest_lacks "$preset") ]] &&
    ! cmake --preset "$preset" -DCMAKE_UNITY_BUILD_BATCH_SIZE="$(unit_size)" "${configure_options[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
  ninja -C "build/$preset" -j"$(jobs)" --quiet "$@" >&2
}

# The last words. Where the packages are at hand the desktop is expected: its absence is a failure.
conclude() {
  local lacks
  lacks=$(desktop_lacks "$1")
  if [[ -s ${SHARDWRIGHT_LEFT_OUT:-} ]]; then
    say
    sort -u "$SHARDWRIGHT_LEFT_OUT" | sed 's/^/left out   /' >&2
  fi
  rm -f "${SHARDWRIGHT_LEFT_OUT:-}"
  [[ -n $lacks ]] || return 0
  say
  say "the desktop was not built: it lacks $lacks"
  if ! is_debian; then return 0; fi
  say "  apt-get install --no-install-recommends $lacks"
  return 1
}
