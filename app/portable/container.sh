#!/usr/bin/env bash
# A container of the portable program and glibc's loader, nothing else: no shell, no package manager.
#
#   container.sh PROGRAM ARCH DIST WORK      makes DIST/shardwright-container-ARCH.tar
#   docker import DIST/shardwright-container-x86_64.tar shardwright
#   docker run --rm -v /ckpt:/ckpt:ro shardwright /usr/bin/shardwright check /ckpt
#
# A Containerfile that says FROM scratch lies beside the root for those who build with one.
set -euo pipefail
program=$1 arch=$2 dist=$(cd "$3" && pwd) work=$4
debian=amd64 loader=lib64/ld-linux-x86-64.so.2
[[ $arch == x86_64 ]] || { debian=arm64 loader=lib/ld-linux-aarch64.so.1; }
place=$work/$arch/container
rm -rf "$place"
mkdir -p "$place/root/usr/bin" "$place/root/tmp" "$place/packages" "$work/apt/lists-$debian/partial"
cp "$program" "$place/root/usr/bin/shardwright"
# An index of its own: that of another architecture would make apt ask for all of its packages.
from_archive() {
  APT_CONFIG=$work/apt/conf apt-get -qq -o APT::Architecture=$debian -o APT::Architectures=$debian \
    -o Dir::State::lists="$work/apt/lists-$debian" "$@"
}
(cd "$place/packages" && from_archive update && from_archive download libc6)
dpkg-deb -x "$place"/packages/libc6_*.deb "$place/libc"
for library in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
  file=$(find "$place/libc" -name "$library" | head -1)
  mkdir -p "$place/root/lib/$arch-linux-gnu"
  cp -L "$file" "$place/root/lib/$arch-linux-gnu/"
done
mkdir -p "$place/root/$(dirname "$loader")"
cp -L "$(find "$place/libc" -name "$(basename "$loader")" ! -type d | head -1)" "$place/root/$loader"
cat >"$place/Containerfile" <<'END'
FROM scratch
COPY root/ /
ENTRYPOINT ["/usr/bin/shardwright"]
END
tar -C "$place/root" --owner=0 --group=0 --mtime=@0 --sort=name -cf "$dist/shardwright-container-$arch.tar" .
