#!/usr/bin/env bash
# From a fresh clone to what is given away, in dist/: a portable headless program that needs nothing
# but glibc 2.17, a wheel of it for pip, a root for a container. It needs Debian or Ubuntu with Python
# 3.9 or newer, and says which packages are missing. Only --deb needs root, to install packages.
#
#   bash app/package.sh [--arch x86_64|aarch64]... [--test] [--deb]
#
#   --arch   x86_64 and aarch64 without
#   --test   runs the tests of core too, as this compiler builds them for the architecture
#   --deb    a .deb of this machine's release build too, with the desktop; as app/run.sh, it installs
#            what that build needs, as root
#
# The compiler is ziglang from PyPI, the libraries are the distribution's source packages. All that is
# fetched and built lies in build/portable, so that a second run only compiles what has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
source app/setup.sh

archs=() tests=no deb=no
while [[ $# -gt 0 ]]; do
  case $1 in
    --arch) archs+=("${2:?an architecture}") && shift 2 ;;
    --test) tests=yes && shift ;;
    --deb) deb=yes && shift ;;
    *) say "usage: app/package.sh [--arch x86_64|aarch64]... [--test] [--deb]" && exit 3 ;;
  esac
done
[[ ${#archs[@]} -gt 0 ]] || archs=(x86_64 aarch64)

work=$root/build/portable
mkdir -p "$work" dist
glibc=2.17
zig_version=0.17.0

check_tools() {
  local absent=() one
  command -v apt-get >/dev/null || { say "package: this needs Debian or Ubuntu, for the sources of libraries" && exit 1; }
  for one in python3 cmake ninja=ninja-build git pkg-config dpkg-source=dpkg-dev readelf=binutils; do
    command -v "${one%=*}" >/dev/null || absent+=("${one#*=}")
  done
  # SHARDWRIGHT_ZIG: a zig that is there already.
  [[ -n ${SHARDWRIGHT_ZIG:-} ]] || python3 -c 'import ensurepip, venv' 2>/dev/null || absent+=(python3-venv)
  [[ ${#absent[@]} == 0 ]] || { say "package: missing, as root: apt-get install ${absent[*]}" && exit 1; }
}

# An installation that was interrupted is done again.
install_zig() {
  zig=${SHARDWRIGHT_ZIG:-}
  [[ -z $zig ]] || return 0
  if [[ ! -f $work/venv/zig-$zig_version ]]; then
    rm -rf "$work/venv"
    python3 -m venv "$work/venv"
    "$work/venv/bin/python" -m pip install -q "ziglang==$zig_version"
    touch "$work/venv/zig-$zig_version"
  fi
  zig=$("$work/venv/bin/python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
}

check_tools
install_zig
bash app/portable/fetch.sh "$work"

wrapper() {
  printf '#!/bin/sh\n# %s\nexec "%s" %s "$@"\n' "$("$zig" version)" "$zig" "$2" >"$1"
  chmod +x "$1"
}

configure() {
  local from=$1 to=$2
  shift 2
  [[ -f $to/build.ninja ]] || PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig cmake -G Ninja -S "$from" -B "$to" \
    -DCMAKE_TOOLCHAIN_FILE="$root/app/portable/zig.cmake" -DSHW_ZIG="$tools" -DSHW_ARCH="$arch" -DSHW_PREFIX="$prefix" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE="-O2 -DNDEBUG" -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" \
    "$@" >"$to.log" 2>&1 || { cat "$to.log" >&2 && return 1; }
}

# What it needs of the system is libc's own, of a version that RHEL 8 has.
check_needs() {
  local program=$1 needs newest
  needs=$(readelf -d "$program" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' |
    grep -vE '^(libc|libm|libdl|libpthread|librt|ld-linux-[a-z0-9_-]+)\.so\.[0-9]+$' || true)
  [[ -z $needs ]] || { say "package: $program needs $needs" && return 1; }
  newest=$(readelf --dyn-syms -W "$program" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -1)
  [[ $(printf '%s\n' "GLIBC_$glibc" "$newest" | sort -V | tail -1) == "GLIBC_$glibc" ]] ||
    { say "package: $program needs $newest" && return 1; }
  say "package: $program needs $newest, and no library but libc's"
}

# Programs of the other architecture run under qemu-user, where it is installed.
runner() { if [[ $arch != "$(uname -m)" ]]; then { command -v "qemu-$arch-static" "qemu-$arch" || true; } | head -1; fi; }

build() {
  arch=$1 tools=$work/$1/bin prefix=$work/$1/prefix
  local program=$root/dist/shardwright-$arch library=$work/$1/build/app/libshardwright.so.1 run shell
  mkdir -p "$tools"
  wrapper "$tools/cc" "cc -target $arch-linux-gnu.$glibc"
  wrapper "$tools/c++" "c++ -target $arch-linux-gnu.$glibc"
  wrapper "$tools/ar" ar
  wrapper "$tools/ranlib" ranlib
  export CCACHE_COMPILERTYPE=clang CCACHE_BASEDIR=$root
  configure app/portable "$work/$arch/libraries" -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DSOURCES="$work/src" -DHEADERS="$work/headers"
  ninja -C "$work/$arch/libraries" -j"$(jobs)" --quiet install >"$work/$arch/libraries-build.log"
  run=$(runner)
  configure "$root" "$work/$arch/build" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=32 -DCMAKE_EXE_LINKER_FLAGS=-s \
    -DCMAKE_SHARED_LINKER_FLAGS=-s \
    -DWITH_GUI=OFF -DWITH_CUDA=OFF -DWITH_MPI=OFF -DWITH_HDF5=OFF -DCMAKE_CROSSCOMPILING_EMULATOR="$run"
  ninja -C "$work/$arch/build" -j"$(jobs)" --quiet shardwright libshardwright >&2
  cp "$work/$arch/build/app/shardwright" "$program"
  check_needs "$program"
  check_needs "$library"
  # What shells complete is the same on every processor; one that runs here has said it.
  shell=$work/$(uname -m)/build/app/shell
  [[ -f $shell/bash ]] || shell=
  python3 app/portable/wheel.py "$program" "$library" "$arch" dist ${shell:+"$shell"}
  bash app/portable/container.sh "$program" "$arch" dist "$work"
  if [[ -n $run ]]; then QEMU_LD_PREFIX=$work/$arch/container/root "$run" "$program" --version; fi
  [[ $tests == no ]] || test_core
}

# With the loader that the container has; of this architecture without an emulator. qemu looks for
# every path below the prefix first, so that it has the loader's folder alone.
test_core() {
  [[ -n $run || $arch == "$(uname -m)" ]] || { say "package: qemu-user-static is needed for --test on $arch" && return 1; }
  ninja -C "$work/$arch/build" -j"$(jobs)" --quiet core_tests >&2
  say "package: the tests of core on $arch"
  mkdir -p "$work/$arch/loader" && ln -sfn "$work/$arch/container/root/lib" "$work/$arch/loader/lib"
  QEMU_LD_PREFIX=$work/$arch/loader $run "$work/$arch/build/tests/core_tests"
}

for arch in "${archs[@]}"; do build "$arch"; done
if [[ $deb == yes ]]; then
  keep_remarks
  install_packages app/packages.txt app/packages_deb.txt
  configure_and_build release app/all
  (cd build/release && cpack -G DEB -B "$root/dist")
fi
ls -l dist
