"""Moves the mouse over each control of a window under Xvfb and looks for its tip on the screen.

    python3 tips.py TIPS    lines "X Y NAME<tab>TIP", as the replay line `tips` prints them

A tip is drawn above or below its control: rows of pixels that change there are the tip.
"""

import subprocess
import sys
import time

from screen import rows_of_screen

WIDTH, HEIGHT, FOOTER = 1280, 684, 704  # the footer changes by itself


def rows():
    return rows_of_screen(WIDTH, HEIGHT)


def move(x, y):
    subprocess.run(["xdotool", "mousemove", str(x), str(y)], check=True)


def without_tip():
    move(WIDTH // 2, FOOTER)
    last = None
    for _ in range(50):
        time.sleep(0.15)
        now = rows()
        if now == last:
            return now
        last = now
    return last


def shows_tip(x, y, before):
    move(x, y)
    for _ in range(50):
        time.sleep(0.1)
        now = rows()
        changed = [row for row in range(HEIGHT) if now[row] != before[row]]
        if sum(abs(row - y) > 14 for row in changed) >= 12:
            return True
    return False


count = 0
for line in open(sys.argv[1]):
    place, tip = line.rstrip("\n").split("\t")
    x, y, name = place.split(" ", 2)
    if not tip:
        sys.exit(f"{name} has no tip")
    if not (0 <= int(x) < WIDTH and 0 <= int(y) < HEIGHT):
        continue  # scrolled out of sight
    if not shows_tip(int(x), int(y), without_tip()):
        sys.exit(f"no tip is shown over {name}: {tip}")
    count += 1
print(f"{count} controls show a tip")
sys.exit(0 if count >= 15 else "too few controls were tried")
