# Every file of the system that this build has read, a header, a library or what CMake found, belongs to a package
# that the lists name or that comes with one of those. So a used system does not hide what a bare one
# lacks.
#
#   packages.sh SOURCE BUILD
set -eu
source=$1 build=$2
command -v dpkg-query > /dev/null && command -v ninja > /dev/null || { echo "no Debian with ninja"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$build"

{
  grep -oE '/usr/lib[^ ;:]*\.(so|a)\b' build.ninja  # what is linked
  # The folders where CMake's own packages describe themselves.
  sed -nE 's/^[A-Za-z0-9_]+_DIR:PATH=(\/usr\/.*\/cmake\/.*)$/\1/p' CMakeCache.txt
  ninja -t deps | sed -nE 's/^ +(\/usr\/.*)$/\1/p'
} | sort -u > "$work/files"
tr '\n' '\0' < "$work/files" | xargs -0 dpkg-query -S 2> /dev/null |
  sed -E 's/: \/.*//; s/, /\n/g' | sed -E 's/:[a-z0-9]+$//' | sort -u > "$work/used"
[[ $(grep -cxE 'nlohmann-json3-dev|libexpected-dev|libzstd-dev' "$work/used") == 3 ]] ||
  { echo "the build has used nothing that it must use:"; cat "$work/used"; exit 1; }

sed -E '/^(#|$)/d; s/^[*?] //; s/ .*//; s/[|&]/\n/g' "$source/app/packages.txt" "$source/tests/packages.txt" |
  sort -u > "$work/listed"
# What comes with them: their dependencies, and theirs. A name is a package or what one provides.
dpkg-query -W -f '${Package}\t${Provides}\t${Pre-Depends}, ${Depends}\n' > "$work/system"
awk -F '\t' '
  function plain(name) { sub(/^ +/, "", name); sub(/[ :(].*/, "", name); return name }
  FNR == NR { todo[++count] = $1; next }
  {
    needs[$1] = needs[$1] "," $3
    gives[$1] = gives[$1] " " $1
    parts = split($2, provided, ",")
    for (i = 1; i <= parts; ++i) gives[plain(provided[i])] = gives[plain(provided[i])] " " $1
  }
  END {
    for (at = 1; at <= count; ++at) {
      packages = split(gives[todo[at]], real, " ")
      for (p = 1; p <= packages; ++p) {
        if (seen[real[p]]++) continue
        print real[p]
        parts = split(needs[real[p]], wanted, /[,|]/)
        for (i = 1; i <= parts; ++i) if (plain(wanted[i]) != "") todo[++count] = plain(wanted[i])
      }
    }
  }' "$work/listed" "$work/system" | sort -u > "$work/had"
missing=$(comm -23 "$work/used" "$work/had")
[[ -z $missing ]] && { echo "$(wc -l < "$work/files") files of $(wc -l < "$work/used") packages"; exit 0; }
echo "used by this build and in no list of packages:"
echo "$missing"
exit 1
