#!/usr/bin/env bash
# The sources of the libraries, from this distribution's archive, with a state of apt of its own: what
# the system has installed or enabled does not matter, and nobody has to be root.
#
#   fetch.sh WORK      into WORK/src, and WORK/headers for those that are headers alone
set -euo pipefail
work=$1
sources="fmtlib onetbb zlib libdeflate libzstd xxhash pcre2"
headers="libexpected-dev nlohmann-json3-dev libcli11-dev doctest-dev"
[[ $(cat "$work/fetched" 2>/dev/null) != "$sources $headers" ]] || exit 0

. /etc/os-release
archive=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null || true; } |
  sed -nE 's/^(URIs:|deb( \[[^]]*\])?) *([^ ]+).*/\3/p' | grep -m1 -E '/(debian|ubuntu)/*$')
components=main
[[ $ID != ubuntu ]] || components="main universe"
rm -rf "$work/src" "$work/headers" "$work/packages"
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/src" "$work/headers" "$work/packages"
printf '%s %s %s %s\n' deb "$archive" "$VERSION_CODENAME" "$components" \
  deb-src "$archive" "$VERSION_CODENAME" "$components" >"$work/apt/sources.list"
cat >"$work/apt/conf" <<END
Dir::Etc::sourcelist "$work/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$work/apt/lists";
Dir::Cache "$work/apt/cache";
APT::Sandbox::User "$(id -un)";
END
export APT_CONFIG=$work/apt/conf
apt-get -qq update
# dpkg-source verifies the hashes that the signed index gives; apt-get unpacks with it.
cd "$work/src"
# shellcheck disable=SC2086
apt-get -qq source --download-only $sources
for package in *.dsc; do dpkg-source --no-check -q -x "$package" 2>/dev/null || dpkg-source --no-check -x "$package" >/dev/null; done
cd "$work/packages"
# shellcheck disable=SC2086
apt-get -qq download $headers
for package in *.deb; do dpkg-deb -x "$package" "$work/headers"; done
echo "$sources $headers" >"$work/fetched"
