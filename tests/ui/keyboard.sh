# The window under Xvfb by keyboard alone: opens the demo, follows its finding to the bytes, repairs
# it and has it proved, opens another checkpoint and comes back. What the window has come to stands in
# its title; what the keys have asked for stands in its record.
set -eu
source "$(dirname "$0")/with_window.sh"
if [ "${1:-}" != inside ]; then
  rm -rf "$WORK" && mkdir -p "$WORK/home"
  "$CLI" demo "$WORK/demo" > /dev/null
  cp -r "$(ls -d "$DATA"/torch-*/healthy_fsdp | head -1)/ckpt" "$WORK/whole"
  run_under_xvfb
fi

open_window "$WORK/demo/step_9000" --spec "$WORK/demo/spec.json" --record "$WORK/record"

title_says "step_9000 - Will not load: 1 cause, 3 tensors"
sleep 1
press F8
record_says "^finding 0"
press ctrl+shift+h
record_says "^bytes finding"
press Escape
record_says "^bytes off"

press ctrl+r
press ctrl+Return
record_says "^repair"
title_says "step_9000 - Will not load: 1 cause, 3 tensors"  # a copy was repaired
for attempt in $(seq 60); do [ -f "$WORK/demo/step_9000-repaired/certificate.json" ] && break; sleep 1; done
[ -f "$WORK/demo/step_9000-repaired/certificate.json" ] || fail "there is no certificate"
press ctrl+shift+p
xdotool type --delay 60 "verify what"
press Return
record_says "^verify"
title_says "step_9000 - Will not load: 1 cause, 3 tensors"  # the proof is the copy's
press Escape

press ctrl+o
record_says "^browse"
sleep 3
press ctrl+a
xdotool type --delay 100 "$WORK/whole"
press Return
title_says "whole - No finding"
press alt+Left
title_says "step_9000 - Will not load"

# The same one beside it, in a tab of its own.
press ctrl+shift+o
sleep 3
press ctrl+a
xdotool type --delay 100 "$WORK/whole"
press Return
record_says "^new-tab"
title_says "whole - No finding"
press ctrl+Tab
title_says "step_9000 - Will not load"
press ctrl+w
record_says "^close-tab 0"
title_says "whole - No finding"
close_window
echo "opened, followed to the byte, repaired, proved, left, come back"
