// The bottom: what runs, how much of it, how fast, what limits it, how long still; or what was
// looked at.
#include <algorithm>
#include <cstdio>

#include "views/actions.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

const char* phase_text(Phase phase) {
  switch (phase) {
    case Phase::kOpening:
      return "reading the metadata";
    case Phase::kCheckingMetadata:
      return "comparing boxes";
    case Phase::kReadingHeaders:
      return "reading the header of every item";
    case Phase::kReadingBytes:
      return "reading bytes, bound by the disk";
    case Phase::kPlanning:
      return "planning";
    case Phase::kCopying:
      return "copying files, bound by the disk";
    case Phase::kWritingMetadata:
      return "writing the metadata";
    case Phase::kVerifying:
      return "hashing what came out, bound by the disk";
    case Phase::kReporting:
      return "writing the report";
    case Phase::kIdle:
      break;
  }
  return "";
}

std::string amount_text(const JobState& job, std::uint64_t amount) {
  return job.in_bytes ? human_bytes(amount) : human_count(amount);
}

void draw_running(Frame& frame, DeskState& state, Region region) {
  const JobState& job = frame.job;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float middle = region.min.y + frame.px(20), x = region.min.x + frame.px(16);
  float right = region.max.x - frame.px(16);
  ImVec2 size = button_size(frame, "Cancel");
  if (button(frame, "job/cancel", "Cancel", {right - size.x, middle - size.y / 2}))
    run(Action::kCancel, frame, state);
  float hint_end = right - size.x - frame.px(16);
  hint_end -= text_until(draw, frame.fonts.small, hint_end, middle, frame.theme.quiet, "commands");
  hint_end -= frame.px(8) + text_until(draw, frame.fonts.mono_small, hint_end - frame.px(8), middle,
                                       frame.theme.quiet, to_text(key_of(Action::kPalette)));
  x += text_from(draw, frame.fonts.text, x, middle, frame.theme.text, job.title) + frame.px(18);
  double part = 0;
  if (job.total > 0) {
    part = std::min(1.0, static_cast<double>(job.done) / static_cast<double>(job.total));
    std::string of = amount_text(job, job.done) + " of " + amount_text(job, job.total);
    x += text_from(draw, frame.fonts.mono_small, x, middle, frame.theme.quiet, of) + frame.px(20);
    if (job.seconds > 0.5 && job.done > 0) {
      double rate = static_cast<double>(job.done) / job.seconds;
      std::string speed = amount_text(job, static_cast<std::uint64_t>(rate)) + "/s";
      x += text_from(draw, frame.fonts.mono_small, x, middle, frame.theme.quiet, speed) +
           frame.px(20);
      double left = static_cast<double>(job.total - std::min(job.total, job.done)) / rate;
      x += text_from(draw, frame.fonts.mono_small, x, middle, frame.theme.quiet,
                     duration_text(left) + " left") +
           frame.px(20);
    }
  }
  Measure measure = [&](std::string_view t) { return text_width(frame.fonts.small, t); };
  text_from(draw, frame.fonts.small, x, middle, frame.theme.quiet,
            elide_end(phase_text(job.phase), hint_end - frame.px(16) - x, measure));
  ImVec2 min{region.min.x + frame.px(16), region.min.y + frame.px(44)};
  ImVec2 max{right, min.y + frame.px(5)};
  draw->AddRectFilled(min, max, frame.theme.raised, frame.px(2));
  if (job.total > 0)
    draw->AddRectFilled(min, {min.x + (max.x - min.x) * static_cast<float>(part), max.y},
                        frame.theme.text, frame.px(2));
}

void draw_idle(Frame& frame, DeskState& state, Region region) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float middle = std::floor((region.min.y + region.max.y) / 2);
  float x = region.min.x + frame.px(16), right = region.max.x - frame.px(16);
  std::string hint = to_text(key_of(Action::kPalette));
  right -= text_until(draw, frame.fonts.small, right, middle, frame.theme.quiet, "commands") +
           frame.px(8);
  right -= text_until(draw, frame.fonts.mono_small, right, middle, frame.theme.quiet, hint) +
           frame.px(24);
  std::string said;
  if (frame.snapshot.error && frame.snapshot.report != nullptr) {
    const Error& error = *frame.snapshot.error;
    draw_sign(frame, draw, {x + frame.px(8), middle}, frame.px(8), Sign::kBad);
    x += frame.px(24);
    said = (error.place.file.empty() ? "" : error.place.file + ": ") + error.message;
    if (!error.advice.empty()) said += ". " + error.advice;
  } else if (frame.now < state.toast_until && !state.toast.empty()) {
    said = state.toast;
  } else if (frame.snapshot.report != nullptr) {
    const char* depth = frame.snapshot.report->depth == Depth::kMetadata ? "metadata and file sizes"
                        : frame.snapshot.report->depth == Depth::kHeaders
                            ? "metadata and item headers"
                            : "every byte";
    said = std::string("Looked at: ") + depth + ".";
    if (frame.snapshot.report->depth != Depth::kData)
      said += " Check every byte (" + to_text(key_of(Action::kCheckData)) + ") looks deeper.";
  } else if (frame.snapshot.checkpoint != nullptr) {
    said = frame.snapshot.said.checkpoint;
  }
  Measure measure = [&](std::string_view t) { return text_width(frame.fonts.small, t); };
  text_from(draw, frame.fonts.small, x, middle, frame.theme.quiet,
            elide_middle(said, right - x, measure));
}

}  // namespace

void draw_job_bar(Frame& frame, DeskState& state, Region region) {
  begin_region(frame, "job", region, frame.theme.side, false);
  if (frame.job.running)
    draw_running(frame, state, region);
  else
    draw_idle(frame, state, region);
  ImGui::GetWindowDrawList()->AddLine(region.min, {region.max.x, region.min.y}, frame.theme.line);
  end_region();
}

}  // namespace shw
