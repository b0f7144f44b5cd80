#include <doctest/doctest.h>

#include "app/gui/frame_pacer.h"

using namespace shw;

namespace {

using Sleep = FramePacer::Sleep;

// Frames until the window sleeps without a timeout.
int frames_until_sleep(FramePacer& pace, bool busy) {
  for (int frames = 0; frames < 100; ++frames) {
    if (pace.next(busy) == Sleep::kUntilWoken) return frames;
    pace.drew();
  }
  return 100;
}

}  // namespace

TEST_CASE("a window draws three frames of what is new and then sleeps") {
  FramePacer pace;
  CHECK(frames_until_sleep(pace, false) == 3);
  pace.wake();
  CHECK(frames_until_sleep(pace, false) == 3);
}

TEST_CASE("what a job brought last is laid out before an idle window sleeps") {
  FramePacer pace;
  CHECK(frames_until_sleep(pace, false) == 3);
  pace.slept(Sleep::kUntilWoken);
  for (int i = 0; i < 10; ++i) {
    (void)pace.next(true);
    pace.drew();
  }
  CHECK(pace.next(true) == Sleep::kMoment);  // a busy window does not draw as fast as it can
  pace.slept(Sleep::kMoment);
  pace.drew();
  CHECK(frames_until_sleep(pace, false) == 3);
}

TEST_CASE("a job that was over before the window looked is laid out too") {
  FramePacer pace;
  CHECK(frames_until_sleep(pace, false) == 3);
  pace.slept(Sleep::kUntilWoken);
  CHECK(frames_until_sleep(pace, false) == 3);
}
