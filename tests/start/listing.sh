# A folder that cannot be listed to its end is an error or changes nothing; a part of its files is
# never taken for the checkpoint.
#
#   listing.sh PROGRAM COMPILER listing_fault.cpp DATA
set -u
program=$1 compiler=$2 source=$3 data=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$compiler" -shared -fPIC -o "$work/fault.so" "$source" -ldl || exit 1
tensors() { sed -n 's/.*"tensors": *\([0-9]*\).*/\1/p' | head -1; }

# Without an index: the files that are found are the checkpoint.
mkdir "$work/ck"
"$program" convert "$data" --to safetensors --shard-size 100K --out "$work/whole" --yes --quiet || exit 1
cp "$work"/whole/*.safetensors "$work/ck"
whole=$("$program" info "$work/ck" --json | tensors)
[ -n "$whole" ] || { echo "the checkpoint does not open"; exit 1; }
failed=0 refused=0
for at in $(seq 1 60); do
  told=$(LISTING_FAULT=$at LD_PRELOAD=$work/fault.so "$program" info "$work/ck" --json 2>/dev/null)
  code=$?
  if [ $code != 0 ]; then refused=$((refused + 1)); continue; fi
  [ "$(tensors <<< "$told")" = "$whole" ] || { echo "call $at: exit 0 and a part of the tensors"; failed=1; }
done
[ $refused -gt 0 ] || { echo "no fault was met"; failed=1; }
exit $failed
