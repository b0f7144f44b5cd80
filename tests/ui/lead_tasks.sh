# What a team lead asks the morning after a crash, in a real window under Xvfb and by keyboard alone:
# which node is gone, which step is whole, what is lost, a copy that is filled from the older step, the
# place for a colleague, a step that appears meanwhile, whether two steps are the same, a slice as a
# file. $WORK/pictures keeps a picture of some.
set -eu
source "$(dirname "$0")/with_window.sh"
if [ "${1:-}" != inside ]; then
  rm -rf "$WORK" && mkdir -p "$WORK/home" "$WORK/pictures" "$WORK/run"
  whole="$(ls -d "$DATA"/torch-*/healthy_fsdp | head -1)/ckpt"
  for step in 7000 8000 9000; do cp -r "$whole" "$WORK/run/step_$step"; done
  rm "$WORK/run/step_9000/__2_0.distcp" "$WORK/run/step_9000/__3_0.distcp"
  run_under_xvfb
fi
export XDG_CONFIG_HOME="$WORK/config" XDG_STATE_HOME="$WORK/state"
by_palette() {
  press ctrl+shift+p
  xdotool type --delay 60 "$1"
  press Return
}
wait_for_file() {
  for attempt in $(seq 240); do [ -s "$1" ] && return 0; sleep 0.5; done
  fail "there is no $1"
}

# The run, the newest step, its lost node.
open_window "$WORK/run" --record "$WORK/record"
title_says "run - 3 steps: 1 with errors, 2 without a finding"
press Return
title_says "step_9000 - Will not load: 1 cause, "
beside="$WORK/run/step_9000"
by_palette "sum files and damage"
sleep 3
xdotool type --delay 60 2
press Return
screen_says "node 1: ranks 2 to 3"
picture node

# A copy, filled from the older step: the plan says what, how much and where.
press ctrl+r
record_says "^plan"
sleep 3
press Tab space  # the elements of step_8000
record_says "^plan fill from:$WORK/run/step_8000"
picture filled
press ctrl+Return
wait_for_file "$WORK/run/step_9000-repaired/certificate.json"
title_says "step_9000 - Will not load"  # the copy is another checkpoint
by_palette "save this place"
record_says "^place view"
sleep 1
press Return  # the panel says where it goes
wait_for_file "$WORK/run/step_9000-view.shardwright"

# The older step against the one before it; the matrix of what differs; a slice of it as a file.
press alt+Home
title_says "run - "
close_window
open_window "$WORK/run/step_8000" --record "$WORK/record"
title_says "step_8000 - No finding"
beside="$WORK/run/step_8000"
press ctrl+k
sleep 2
xdotool type --delay 60 "$WORK/run/step_7000"
press Tab Tab Tab space  # Browse, Compare, Compare values too
record_says "^compare data $WORK/run/step_7000"
screen_says "The same to the bit."
press Escape
press Down ctrl+shift+v
record_says "^values"
by_palette "as .npy"
record_says "^place npy"
sleep 1
press Return
for attempt in $(seq 60); do ls "$WORK/run"/*.npy > /dev/null 2>&1 && break; sleep 0.5; done
ls "$WORK/run"/*.npy > /dev/null || fail "no slice was saved"
close_window

echo "found the node, filled from the older step, left a view, compared, saved a slice"
