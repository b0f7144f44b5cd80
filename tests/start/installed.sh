# `cmake --install` brings all that a person needs, to the places of a Debian package.
#
#   installed.sh BUILD PREFIX
set -eu
build=$1 prefix=$2
rm -rf "$prefix"
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" > /dev/null
wanted="bin/shardwright share/man/man1/shardwright.1 share/bash-completion/completions/shardwright
  share/shardwright/export_spec.py share/shardwright/spec.schema.json
  share/shardwright/schema/shardwright-2.schema.json share/doc/shardwright/copyright"
[ ! -e "$prefix/bin/shardwright-gui" ] || wanted="$wanted share/applications/shardwright.desktop
  share/icons/hicolor/scalable/apps/shardwright.svg"
failed=0
for file in $wanted; do
  [ -s "$prefix/$file" ] || { echo "$file is not installed"; failed=1; }
done
"$prefix/bin/shardwright" --version > /dev/null || failed=1
exit $failed
