// When the window draws and when it sleeps.
#pragma once

namespace shw {

// imgui lays out what is new in up to three frames: a list that has become shorter is scrolled back
// in the one after. Whoever slept after the first would leave it empty until the mouse moves.
struct Pace {
  static constexpr int kFrames = 3;
  enum class Sleep { kNot, kMoment, kUntilWoken };

  int due = kFrames;
  bool was_busy = false;

  void wake() { due = kFrames; }
  // Before each frame. What a job brought last is drawn by an idle window too.
  Sleep next(bool busy) {
    if (was_busy && !busy) wake();
    was_busy = busy;
    return due > 0 ? Sleep::kNot : busy ? Sleep::kMoment : Sleep::kUntilWoken;
  }
  // A job that began and ended meanwhile was never seen.
  void slept(Sleep how) {
    if (how == Sleep::kUntilWoken) wake();
  }
  void drew() { due -= due > 0 ? 1 : 0; }
};

}  // namespace shw
