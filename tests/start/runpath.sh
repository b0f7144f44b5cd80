# No program that was built names an empty or a relative folder in its RUNPATH, and the programs of a
# person load nothing from the folder in which they run.
#
#   runpath.sh BUILD COMPILER planted_library.cpp
set -u
build=$1 compiler=$2 source=$3
command -v readelf >/dev/null || { echo "readelf is missing"; exit 77; }

mapfile -t programs < <(find "$build" -name CMakeFiles -prune -o -type f -perm -u+x -print | while read -r file; do
  head -c 4 "$file" | grep -q ELF && echo "$file"
done)
[ ${#programs[@]} -gt 0 ] || { echo "no program in $build"; exit 1; }
failed=0
for program in "${programs[@]}"; do
  while read -r folders; do
    IFS=: read -ra parts <<< "$folders:."  # the dot keeps an empty part at the end
    unset 'parts[-1]'
    for part in "${parts[@]}"; do
      # $ORIGIN is where the program lies.
      case $part in /* | \$ORIGIN*) ;; *) echo "$program: \"$part\" in $folders"; failed=1 ;; esac
    done
  done < <(readelf -d "$program" 2>/dev/null | sed -n 's/.*(\(RPATH\|RUNPATH\)).*\[\(.*\)\]$/\2/p')
done

planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
"$compiler" -shared -fPIC -o "$planted/library" "$source" || exit 1
for program in "$build"/app/shardwright "$build"/app/shardwright-gui; do
  [ -x "$program" ] || continue
  folder=$planted/$(basename "$program")
  mkdir "$folder"
  readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' | while read -r name; do
    cp "$planted/library" "$folder/$name"
  done
  said=$(cd "$folder" && env -u LD_LIBRARY_PATH "$program" --help 2>&1) && [[ $said != *PLANTED* ]] ||
    { echo "$program loads a library from the folder in which it runs: $said"; failed=1; }
  # Where that folder is named, the plant is what is loaded.
  said=$(cd "$folder" && LD_LIBRARY_PATH=$folder "$program" --help 2>&1) && [[ $said != *PLANTED* ]] &&
    { echo "$program does not load what was planted"; failed=1; }
done
exit $failed
