# Opens a checkpoint that torch wrote with misplaced shards, repairs it from a replay script, and looks
# at what came out: three pictures, a repaired directory, the exit codes. No X, no session by hand.
set -eu
case_dir=$(ls -d "$DATA"/torch-*/s1_placement_not_transposed | head -1)
rm -rf "$WORK" && mkdir -p "$WORK"
cp -r "$case_dir/ckpt" "$WORK/step"
"$GALLERY" welcome "$WORK/probe.png" || exit $?  # 77: no EGL here

cat > "$WORK/script" <<END
# what a person does
wait
screenshot $WORK/found.png
hover tile 1
open-plan
screenshot $WORK/plan.png
click plan/apply
wait
screenshot $WORK/repaired.png
END
env -u DISPLAY "$GUI" "$WORK/step" --spec "$case_dir/spec.json" --replay "$WORK/script" --size 1280x720
for picture in found plan repaired; do
  test -s "$WORK/$picture.png" || { echo "no picture $picture.png"; exit 1; }
done
cmp -s "$WORK/found.png" "$WORK/repaired.png" && { echo "the repair changed nothing on the screen"; exit 1; }
test -f "$WORK/step-repaired/certificate.json" || { echo "nothing was repaired"; ls -R "$WORK"; exit 1; }
diff -r "$case_dir/ckpt" "$WORK/step" || { echo "the checkpoint that was opened has changed"; exit 1; }

# Two runs of the same give the same picture.
env -u DISPLAY "$GUI" "$WORK/step" --screenshot "$WORK/a.png" && env -u DISPLAY "$GUI" "$WORK/step" --screenshot "$WORK/b.png"
cmp "$WORK/a.png" "$WORK/b.png" || { echo "the picture depends on the moment"; exit 1; }

# What somebody did is recorded as it is done, and plays again: bytes, values, another checkpoint, back.
cat > "$WORK/hands" <<END
key Ctrl+Shift+H
bytes next
key Ctrl+Shift+V
open $WORK/step-repaired
check
go back
screenshot $WORK/first.png
END
env -u DISPLAY "$GUI" "$WORK/step" --replay "$WORK/hands" --record "$WORK/record" --size 1280x720
for line in "open $WORK/step" "bytes finding" "bytes next" "bytes off" "go back"; do
  grep -qx "$line" "$WORK/record" || { echo "not recorded: $line"; cat "$WORK/record"; exit 1; }
done
env -u DISPLAY "$GUI" --replay "$WORK/record" --screenshot "$WORK/again.png" --size 1280x720
cmp "$WORK/first.png" "$WORK/again.png" || { echo "the record plays to another picture"; exit 1; }

# Two checkpoints side by side: each tab keeps what was done in it, and the record plays again.
cat > "$WORK/tabs" <<END
tab 1
key Ctrl+Home
tab 0
key Ctrl+Tab
screenshot $WORK/second.png
click tabs/0
click tabs/1/close
screenshot $WORK/alone.png
END
(cd "$WORK" && env -u DISPLAY "$GUI" step step-repaired --replay tabs --record tabs-record --size 1280x720)
for line in new-tab "tab 1" "close-tab 1"; do
  grep -qx "$line" "$WORK/tabs-record" || { echo "not recorded: $line"; cat "$WORK/tabs-record"; exit 1; }
done
cmp -s "$WORK/second.png" "$WORK/alone.png" && { echo "both tabs look the same"; exit 1; }
(cd "$WORK" && env -u DISPLAY "$GUI" --replay tabs-record --screenshot again.png --size 1280x720)
cmp "$WORK/alone.png" "$WORK/again.png" || { echo "the record of tabs plays to another picture"; exit 1; }

expect() {  # the exit code, then the arguments
  local wanted=$1 got=0
  shift
  env -u DISPLAY "$GUI" "$@" > "$WORK/said" 2>&1 || got=$?
  [ "$got" = "$wanted" ] || { echo "exit $got instead of $wanted from: $*"; cat "$WORK/said"; exit 1; }
}
expect 4 "$WORK/nothing" --screenshot "$WORK/none.png"
test -s "$WORK/none.png" || { echo "what cannot be opened has no picture"; exit 1; }
expect 0 "$WORK/step" --against "$WORK/step-repaired" --mesh ep_shard=2,ep=2 --screenshot "$WORK/held.png"
test -s "$WORK/held.png" || { echo "compared with another checkpoint it has no picture"; exit 1; }
expect 3 --size 3x3 --screenshot "$WORK/x.png"
expect 3 --no-such-option
expect 4 "$WORK/step" --record "$WORK/no/such/record" --screenshot "$WORK/x.png"
expect 2 "$WORK/step"
grep -q screenshot "$WORK/said" || { echo "without a display it must say what to do"; exit 1; }
echo "no such command" > "$WORK/bad"
expect 3 "$WORK/step" --replay "$WORK/bad"
