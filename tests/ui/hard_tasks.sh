# Tasks that were hard at the desktop, in real windows under Xvfb: damaged files, a folder that holds
# no checkpoint, names outside Latin, two windows, a recent place whose spec was a relative path, a
# job that is paused, closed on, stopped and resumed, files that change meanwhile, a command that is
# copied. What a window has come to stands in its title, its record, the clipboard and the texts of
# its own export. $WORK/pictures keeps a picture of each for a person to look at. By keyboard alone,
# as far as a person chooses that.
set -eu
source "$(dirname "$0")/with_window.sh"
command -v xclip > /dev/null || { echo "skipped: xclip is not installed"; exit 77; }
if [ "${1:-}" != inside ]; then
  rm -rf "$WORK" && mkdir -p "$WORK/home" "$WORK/pictures" "$WORK/notes" "$WORK/a" "$WORK/b"
  whole="$(ls -d "$DATA"/torch-*/healthy_fsdp | head -1)/ckpt"
  for copy in cut gone 步骤_1 a/step b/step changing; do cp -r "$whole" "$WORK/$copy"; done
  truncate -s 14289 "$WORK/cut/__0_0.distcp"
  rm "$WORK/gone/__1_0.distcp"
  echo "not a checkpoint" > "$WORK/notes/readme.txt"
  "$CLI" demo "$WORK/demo" > /dev/null
  run_under_xvfb
fi
export XDG_CONFIG_HOME="$WORK/config" XDG_STATE_HOME="$WORK/state"

# Opens another checkpoint by its path.
go_to() {
  press ctrl+o
  sleep 2
  press ctrl+a
  xdotool type --delay 60 "$1"
  press Return
}
clipboard_says() {
  for attempt in $(seq 20); do
    xclip -o -selection clipboard 2> /dev/null | tr '\n' ' ' | grep -q -- "$1" && return 0
    sleep 0.3
  done
  fail "the clipboard lacks: $1"
}
# Gives the window's jobs this niceness: threads of the program's own name, except the one that draws.
jobs_give_way() {
  for task in /proc/$gui/task/*; do
    [ "${task##*/}" != "$gui" ] && [ "$(cat "$task/comm")" = "$(cat "/proc/$gui/comm")" ] || continue
    renice -n "$1" -p "${task##*/}" > /dev/null 2>&1 || true  # only root takes niceness back
  done
}
wait_for_partial_folder() {
  for attempt in $(seq 6000); do
    ls "$WORK/demo" | grep -q shardwright-partial && return 0
    sleep 0.02
  done
  fail "the repair has not begun"
}
by_palette() {
  press ctrl+shift+p
  xdotool type --delay 60 "$1"
  press Return
}

# A file that is cut, one that is gone, a folder of something else, a name outside Latin. Relative
# paths are opened, and what is copied means the same in any folder.
cd "$WORK"
open_window cut --record "$WORK/record"
title_says "cut - Will not load: 1 cause, 10 tensors, 1 file"
screen_picture cut
go_to "$WORK/gone"
title_says "gone - Will not load: 1 cause, 20 tensors, 1 file"
screen_picture gone
go_to changing
title_says "changing - No finding"
by_palette "copy the command"
clipboard_says "$WORK/changing"
# Somebody takes a file away, and brings it back.
mv "$WORK/changing/__2_0.distcp" "$WORK/kept"
title_says "changing - No finding: 24 tensors; changed on disk"
screen_picture changed
press F5
title_says "changing - Will not load"
mv "$WORK/kept" "$WORK/changing/__2_0.distcp"
title_says "; changed on disk"
press F5
title_says "changing - No finding"
close_window

open_window "$WORK/notes"
title_says "notes - Cannot be opened"
screen_picture not-a-checkpoint
close_window

open_window "$WORK/步骤_1"
title_says "步骤_1 - No finding"
beside="$WORK/步骤_1"
press ctrl+Home
[ "$(count_on_screen "步骤_1")" = 1 ] || screen_says '\u6b65\u9aa4_1'  # without a font that has them
[ "$(count_on_screen "??_1")" = 0 ] || fail "letters are shown as question marks"
screen_picture unicode
close_window

# Folders of one name are told apart by the folder around them.
open_window "$WORK/a/step" "$WORK/b/step"
title_says "a/step - No finding"
press ctrl+Tab
title_says "b/step - No finding"
screen_picture two-tabs
close_window

# So are two windows.
open_window "$WORK/a/step"
title_says "a/step - No finding"
first=$gui other_window=$window
open_window "$WORK/b/step"
title_says "b/step - No finding"
close_window
gui=$first window=$other_window other_window=
xdotool windowfocus "$window"
title_says "a/step - No finding"
close_window

# A spec that was given by a relative path is found again from any folder.
cd "$WORK/demo"
open_window step_9000 --spec spec.json
title_says "step_9000 - Will not load: 1 cause, 3 tensors"
close_window
cd /
open_window --record "$WORK/record"
sleep 2
screen_picture recents
press Tab Tab Tab Tab space
title_says "step_9000 - Will not load: 1 cause, 3 tensors"

# Closing while a job writes asks; what a stopped job has left is resumed from the window.
# The repair is slower than the hand, however busy the machine is: its threads give way, and the
# window stands still while F9 is pressed.
press ctrl+r
sleep 2  # the folder is examined before anything can be written
jobs_give_way 19
xdotool key ctrl+Return
wait_for_partial_folder
kill -STOP $gui
xdotool key F9
kill -CONT $gui
record_says "^pause"
press ctrl+q
sleep 1
kill -0 $gui 2> /dev/null || fail "the window closed over a job that writes"
screen_picture close-during-a-job
press space  # the answer that the keyboard is at changes nothing
kill -0 $gui 2> /dev/null || fail "the window closed without a clear answer"
press shift+Escape
record_says "^cancel"
jobs_give_way 0
ls "$WORK/demo" | grep -q shardwright-partial || fail "nothing is left to go on with"
press F5
for attempt in $(seq 60); do [ "$(grep -c '^check' "$WORK/record")" -ge 2 ] && break; sleep 0.5; done
sleep 5
press ctrl+r
sleep 1
screen_picture cancelled
press Escape
by_palette "resume the stopped"
sleep 1
screen_picture resume-asks
press space  # the answer that the keyboard is at changes nothing
grep -q "^resume" "$WORK/record" && fail "the repair was resumed without a clear answer"
by_palette "resume the stopped"
sleep 1
press Tab space
record_says "^resume"
for attempt in $(seq 240); do [ -f "$WORK/demo/step_9000-repaired/certificate.json" ] && break; sleep 0.5; done
[ -f "$WORK/demo/step_9000-repaired/certificate.json" ] || fail "the repair was not gone on with"
# It asks as long as the result is being proved.
for attempt in $(seq 30); do
  press ctrl+q
  kill -0 $gui 2> /dev/null || break
  press Escape
  sleep 1
done
kill -0 $gui 2> /dev/null && fail "Ctrl+Q does not quit"
wait $gui || fail "the window left with an error"
echo "damaged, changed, remembered, asked, stopped, resumed"
