// Decides when the window draws and when it sleeps.
#pragma once

namespace shw {

// imgui needs up to three frames for new content: a shortened list is scrolled back in the next
// frame. Sleeping after the first frame would show an empty list until the mouse moves.
struct FramePacer {
  static constexpr int kFrames = 3;
  enum class Sleep { kNot, kMoment, kUntilWoken };

  int due = kFrames;
  bool was_busy = false;

  void wake() { due = kFrames; }
  // Call before each frame. An idle window also draws the last result of a job.
  Sleep next(bool busy) {
    if (was_busy && !busy) wake();
    was_busy = busy;
    return due > 0 ? Sleep::kNot : busy ? Sleep::kMoment : Sleep::kUntilWoken;
  }
  // Handles a job that began and ended while the window slept.
  void slept(Sleep how) {
    if (how == Sleep::kUntilWoken) wake();
  }
  void drew() { due -= due > 0 ? 1 : 0; }
};

}  // namespace shw
