# The window under Xvfb with a checkpoint of Megatron-core and one of Hugging Face: asks for the map of
# names by its key, which compares the two, and looks for another one in their elements.
set -eu
source "$(dirname "$0")/with_window.sh"
if [ "${1:-}" != inside ]; then
  rm -rf "$WORK" && mkdir -p "$WORK/home"
  cp -r "$(dirname "$0")/../core/maps/data/llama3/." "$WORK/pair"
  run_under_xvfb
fi

open_window "$WORK/pair/megatron" --against "$WORK/pair/hf" --record "$WORK/record"
title_says "megatron - No finding"
press ctrl+shift+m
record_says "^compare $WORK/pair/hf"
sleep 2
press Escape
press ctrl+shift+p
xdotool type --delay 60 "find the map"
press Return
record_says "^learn $WORK/pair/hf"
title_says "megatron - No finding"
close_window
echo "compared through a map, and another one found"
