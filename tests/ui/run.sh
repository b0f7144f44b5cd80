# The window under Xvfb with a folder of steps: the table, a new step that appears by itself, a step
# that is opened by key and closed again, and files that someone else removes meanwhile. What the
# window has come to stands in its title.
set -eu
source "$(dirname "$0")/with_window.sh"
if [ "${1:-}" != inside ]; then
  rm -rf "$WORK" && mkdir -p "$WORK/home" "$WORK/pictures" "$WORK/run"
  whole="$(ls -d "$DATA"/torch-*/healthy_fsdp | head -1)/ckpt"
  for step in 900 1000; do cp -r "$whole" "$WORK/run/step_$step"; done
  run_under_xvfb
fi

open_window "$WORK/run"

title_says "run - 2 steps: 2 without a finding"
cp -r "$WORK/run/step_1000" "$WORK/run/.half" && mv "$WORK/run/.half" "$WORK/run/step_1100"
title_says "run - 3 steps: 3 without a finding"
rm "$WORK/run/step_1100/__1_0.distcp"
title_says "run - 3 steps: 1 with errors, 2 without a finding"
screen_picture run
press Return
title_says "step_1100 - Will not load"
press alt+Home
title_says "run - 3 steps"
press Down Return
title_says "step_1000 - No finding"
close_window
echo "listed, grown, damaged, opened, gone back to"
