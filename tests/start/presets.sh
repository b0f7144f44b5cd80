# Warnings are errors in the presets for development and in no other way: a user's compiler may know
# warnings that ours does not.
set -eu
cd "$1"
# The configure presets, one per line, from their names on.
presets=$(tr '\n' ' ' < CMakePresets.json | sed 's/"buildPresets".*//; s/{"name"/\n&/g')
strict=$(grep -F '"SHW_WARNINGS_AS_ERRORS": "ON"' <<< "$presets" | sed -E 's/^\{"name": "([a-z]+)".*/\1/' | sort | tr '\n' ' ')
[[ $strict == "asan dev tsan " ]] || { echo "warnings are errors in: $strict"; exit 1; }
everywhere=$(grep -rn --include=CMakeLists.txt -e -Werror . --exclude-dir=build | grep -vF '$<$<BOOL:${SHW_WARNINGS_AS_ERRORS}>:-Werror>' || true)
[[ -z $everywhere ]] || { echo "$everywhere"; exit 1; }
