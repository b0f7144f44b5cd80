#!/usr/bin/env bash
# The sources of the libraries, from this distribution's archive, with a state of apt of its own: what
# the system has installed or enabled does not matter, and nobody has to be root.
#
#   fetch.sh WORK      into WORK/src, and WORK/headers for those that are headers alone
#
# SHARDWRIGHT_ARCHIVE: the URL of the archive; without, apt's own sources name it.
set -euo pipefail
work=$1
sources="fmtlib onetbb zlib libdeflate libzstd xxhash pcre2"
headers="libexpected-dev nlohmann-json3-dev libcli11-dev doctest-dev"
[[ $(cat "$work/fetched" 2>/dev/null) != "$sources $headers" ]] || exit 0

. /etc/os-release
codename=${VERSION_CODENAME:-}
archive=${SHARDWRIGHT_ARCHIVE:-$(python3 "$(dirname "${BASH_SOURCE[0]}")/archive.py" "$codename")}
components=main
[[ $ID != ubuntu ]] || components="main universe"
rm -rf "$work/src" "$work/headers" "$work/packages"
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/src" "$work/headers" "$work/packages"
printf '%s %s %s %s\n' deb "$archive" "$codename" "$components" \
  deb-src "$archive" "$codename" "$components" >"$work/apt/sources.list"
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
