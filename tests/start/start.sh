# app/run.sh on a system made of stubs: dpkg-query, apt-get, cmake and ninja that keep their state in
# files, and nothing else of the machine but a few tools.
#
#   start.sh SOURCE WORK CASE
#
# installed, archive, known: names of packages, one per line; known is what `apt-get update` last saw.
set -eu
source=$1 work=$2 case=$3
rm -rf "$work"
mkdir -p "$work/bin" "$work/project/app" "$work/home"
cp "$source"/app/{run.sh,setup.sh,packages.txt} "$work/project/app"
for tool in bash cat cp cut dirname env grep mkdir mktemp nproc rm sed sort touch; do
  ln -s "$(command -v $tool)" "$work/bin/$tool"
done

stub() {
  { echo '#!/usr/bin/env bash'; echo "state=$work"; cat; } > "$work/bin/$1"
  chmod +x "$work/bin/$1"
}
stub id <<< 'cat $state/uid'
stub dpkg-query <<< 'sed "s/$/ installed/" $state/installed'
stub apt-cache <<'END'
shift
for name; do grep -qxF -e "$name" $state/known && printf 'Package: %s\nFilename: pool\n' "$name"; done
true
END
stub apt-get <<'END'
echo "apt-get $*" >> $state/log
if [[ $1 == update ]]; then
  [[ ! -e $state/offline ]] || exit 100
  exec cp $state/archive $state/known
fi
for name; do
  [[ $name == install || $name == -* ]] && continue
  grep -qxF -e "$name" $state/known || { echo "E: Unable to locate package $name"; exit 100; }
  wanted+=("$name")
done
printf '%s\n' "${wanted[@]}" >> $state/installed
END
stub cmake <<'END'
folder=build/$2
mkdir -p $folder && touch $folder/build.ninja
lacks=
for name in libimgui-dev libopengl-dev; do grep -qx $name $state/installed || lacks+="${lacks:+ }$name"; done
echo "SHW_DESKTOP_MISSING:INTERNAL=$lacks" > $folder/CMakeCache.txt
END
stub ninja <<'END'
mkdir -p $2/app
cp $state/program $2/app/shardwright
if grep -q 'MISSING:INTERNAL=$' $2/CMakeCache.txt; then cp $state/desktop $2/app/shardwright-gui; fi
END
stub program <<< '[[ $1 != check && $1 != report || $2 != step_9000 ]]'
stub desktop <<< '[[ ! -e $state/blind ]] && touch "$2"'
mv "$work"/bin/{program,desktop} "$work"

# Of alternatives the first.
names() { sed -E 's/^[*?] //; s/ .*//; s/\|.*//; /^(#|$)/d' "$source/app/packages.txt"; }
{ names; echo apt; } > "$work/archive"
: > "$work/known"
: > "$work/installed"
echo 0 > "$work/uid"

code=
start() {
  code=0
  env -i PATH="$work/bin" HOME="$work/home" bash "$work/project/app/run.sh" > "$work/said" 2>&1 || code=$?
}
wrong() { echo "$*"; echo "exit code $code"; cat "$work/said"; exit 1; }
succeeds() { start; [[ $code == 0 ]] || wrong "it should have ended well"; }
fails() { start; [[ $code != 0 ]] || wrong "it should have failed"; }
says() { grep -qF -e "$1" "$work/said" || wrong "it should say: $1"; }
silent_on() { ! grep -qF -e "$1" "$work/said" || wrong "it should not say: $1"; }
without() { grep -vxF -e "$1" "$work/archive" > "$work/fewer"; mv "$work/fewer" "$work/archive"; }

case $case in
  bare_system)
    succeeds
    says "picture   $work/home/.cache/shardwright/demo/desktop.png"
    silent_on "left out"
    diff <(names | sort) <(sort "$work/installed") || wrong "not everything was installed"
    rm "$work/log"
    succeeds  # and needs no network for it
    [[ ! -e $work/log ]] || wrong "the second start has asked apt-get"
    ;;
  no_desktop)
    without libopengl-dev
    fails
    says "the desktop was not built: it lacks libopengl-dev"
    silent_on "lacks libimgui-dev"
    says "verdict   found, repaired without loss, proved"
    ;;
  no_debian)
    rm "$work/bin/apt-get"
    succeeds
    says "the desktop was not built: it lacks libimgui-dev libopengl-dev"
    ;;
  came_later)
    without fonts-inter
    succeeds
    says "fonts-inter is not installed"
    names | tee -a "$work/archive" >> "$work/known"  # an update of somebody else has brought it
    succeeds
    grep -qx fonts-inter "$work/installed" || wrong "what has become available was not installed"
    silent_on "left out"
    ;;
  stale_build)
    without libimgui-dev
    fails
    names > "$work/archive"
    succeeds
    says desktop.png
    ;;
  no_network)
    touch "$work/offline"
    fails
    says "nothing can be built without g++ cmake"
    names | grep -v ccache > "$work/installed"
    succeeds
    says "the compiler's cache: ccache is not installed"
    rm "$work/offline"
    succeeds
    grep -qx ccache "$work/installed" || wrong "what was out of reach once stays out"
    ;;
  no_root)
    echo 1000 > "$work/uid"
    fails
    says "neither root nor sudo"
    says "nothing can be built without g++ cmake"
    names | grep -v -e ccache -e libimgui > "$work/installed"
    fails
    says "apt-get install --no-install-recommends libimgui-dev"
    echo libimgui-dev >> "$work/installed"
    succeeds
    says desktop.png
    ;;
  no_picture)
    touch "$work/blind"
    fails
    says "could not be drawn"
    ;;
  *) echo "no case $case"; exit 1 ;;
esac
