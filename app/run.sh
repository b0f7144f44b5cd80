#!/usr/bin/env bash
# From a fresh Debian or Ubuntu to the desktop, open on the demo: installs what is missing, builds a
# release, makes the demo's checkpoint. Where there is no display it works the demo through at the
# terminal and leaves a picture of what the desktop would have shown. A second start takes seconds.
# On a Debian or Ubuntu a missing desktop or picture is a failure.
#
#   bash app/run.sh [CHECKPOINT [--spec FILE]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
source app/setup.sh

keep_remarks
install_packages app/packages.txt
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
configure_and_build release app/all
bin=$root/build/release/app
has_display() { [[ -n ${DISPLAY:-}${WAYLAND_DISPLAY:-} ]]; }
has_desktop() { [[ -x $bin/shardwright-gui ]]; }

if [[ $# -gt 0 ]]; then
  code=0
  verb=check
  if has_display && has_desktop; then verb=gui; fi
  (cd "$OLDPWD" && exec "$bin/shardwright" "$verb" "$@") || code=$?
  conclude release || exit 1
  exit "$code"
fi

demo=${XDG_CACHE_HOME:-$HOME/.cache}/shardwright/demo
mkdir -p "$demo"
cd "$demo"
rm -rf step_9000-repaired* report.html plan.json desktop.png
"$bin/shardwright" demo . --quiet

if has_display && has_desktop; then
  echo "The demo is in $demo."
  (cd "$root" && conclude release)
  exec "$bin/shardwright-gui" --spec spec.json step_9000
fi

# No display: the same story, told at the terminal.
step() {
  local expected=$1 code=0
  shift
  printf '\n$ shardwright %s\n' "$*"
  "$bin/shardwright" "$@" || code=$?
  if [[ $code != "$expected" ]]; then
    say "app/run.sh: exit code $code where $expected was expected"
    exit 1
  fi
}
echo "No $(has_display && echo desktop || echo display); the demo is in $demo."
step 1 check step_9000 --spec spec.json
step 0 map step_9000 model.layers.3.moe.experts.down_proj.weight --spec spec.json
step 0 plan step_9000 --spec spec.json
step 0 repair step_9000 --spec spec.json --yes
step 0 verify step_9000-repaired
step 0 check step_9000-repaired --spec spec.json
step 1 report step_9000 --spec spec.json --out report.html

picture="(there is no desktop to draw)"
drawn=0
if has_desktop && "$bin/shardwright-gui" --screenshot desktop.png --spec spec.json step_9000 >&2; then
  picture=$demo/desktop.png
elif has_desktop; then
  picture="(could not be drawn: see above)"
  drawn=1
fi
cat <<END

verdict   found, repaired without loss, proved
report    $demo/report.html
picture   $picture
END
cd "$root"
conclude release
exit "$drawn"
