// The status bar: running jobs with progress, rate, bottleneck and remaining time, or what was
// checked.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "views/actions.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr float kJobRow = 56;  // one job: a line and a progress bar

const char* phase_text(Phase phase) {
  switch (phase) {
    case Phase::kOpening:
      return "reading the metadata";
    case Phase::kCheckingMetadata:
      return "judging what was read";
    case Phase::kReadingHeaders:
      return "reading the header of every item";
    case Phase::kReadingBytes:
      return "reading every byte";
    case Phase::kPlanning:
      return "planning";
    case Phase::kCopying:
      return "copying files";
    case Phase::kWritingMetadata:
      return "writing the metadata";
    case Phase::kVerifying:
      return "hashing the result";
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

std::string rate_text(std::uint64_t bytes, double seconds) {
  return human_bytes(static_cast<std::uint64_t>(static_cast<double>(bytes) / seconds)) + "/s";
}

// "read 1.2 GB/s, write 0.6 GB/s; writing takes longest": rates per stage.
std::string stages_text(const JobState& job) {
  constexpr const char* kWords[kStages] = {"read", "make", "write", "read back"};
  constexpr const char* kLimits[kStages] = {"reading", "making values", "writing", "reading back"};
  std::string text;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < kStages; ++i) {
    const auto& stage = job.stages[i];
    if (stage.seconds > job.stages[longest].seconds) longest = i;
    if (stage.seconds < 0.05 || stage.bytes == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(kWords[i]) + " " +
            rate_text(stage.bytes, stage.seconds);
  }
  if (text.empty()) return text;
  return text + " a thread, " + plural(job.threads, "thread") + "; " + kLimits[longest] +
         " takes longest";
}

// A repair has three phases (write, prove, check); other jobs have one.
constexpr std::size_t kRepairSteps = 3;
std::size_t steps_of(const JobState& job) {
  bool repairs = job.phase == Phase::kCopying || job.phase == Phase::kWritingMetadata ||
                 job.is_proof_done || job.title == "Repairing";
  return repairs ? kRepairSteps : 1;
}
std::size_t step_of(const JobState& job) {
  if (steps_of(job) == 1) return 0;
  if (job.is_proof_done) return 2;
  return job.phase == Phase::kVerifying ? 1 : 0;
}

// Progress as a fraction, below 1 while work is left.
double part_of(const JobState& job) {
  if (job.total == 0) return 0;
  return std::min(0.98, static_cast<double>(job.done) / static_cast<double>(job.total));
}

void draw_bar(Frame& frame, const JobState& job, ImDrawList* draw, ImVec2 min, ImVec2 max) {
  std::size_t steps = steps_of(job), now = step_of(job);
  float gap = frame.px(4);
  float wide = (max.x - min.x - gap * static_cast<float>(steps - 1)) / static_cast<float>(steps);
  for (std::size_t i = 0; i < steps; ++i) {
    float x = min.x + (wide + gap) * static_cast<float>(i);
    draw->AddRectFilled({x, min.y}, {x + wide, max.y}, frame.theme.raised, frame.px(2));
    double part = i < now ? 1 : i > now ? 0 : steps == 1 && job.part > 0 ? job.part : part_of(job);
    if (part > 0)
      draw->AddRectFilled({x, min.y}, {x + wide * static_cast<float>(part), max.y},
                          job.stopping || job.paused ? frame.theme.quiet : frame.theme.text,
                          frame.px(2));
  }
}

}  // namespace

const char* stop_consequence_text(const JobState& job) {
  if (job.is_proof_done && job.stop_effect != StopEffect::kNothingWritten)
    return "the result is written and proved, and stays";
  switch (job.stop_effect) {
    case StopEffect::kNothingWritten:
      return "nothing is written";
    case StopEffect::kOutputDiscarded:
      return "its unfinished file is removed";
    case StopEffect::kUnchanged:
      return "the checkpoint stays as it was";
    case StopEffect::kResumable:
      return "what is finished stays, and can be resumed";
    case StopEffect::kFinished:
      return "it is finished first, since half of it would be damage";
  }
  return "";
}

bool is_asked_before_stopping(const JobState& job) {
  constexpr double kMissed = 5;  // seconds of reading that a user would miss
  if (!job.running || job.stopping) return false;
  return job.stop_effect != StopEffect::kNothingWritten || job.seconds >= kMissed;
}

namespace {

// Text about what remains on disk if the user quits now.
std::string paused_text(const JobState& job) {
  std::string text = "paused";
  if (job.total > 0)
    text += " after " + amount_text(job, std::min(job.done, job.total)) + " of " +
            amount_text(job, job.total);
  return text + "; if you close, " + stop_consequence_text(job);
}

std::string phase_now(const JobState& job) {
  if (job.stopping) return std::string("stopping; ") + stop_consequence_text(job);
  if (job.paused) return paused_text(job);
  if (job.is_proof_done) return "checking the result";
  bool is_over = job.total > 0 && job.done >= job.total;
  std::string text = phase_text(job.phase);
  if (is_over && job.phase == Phase::kCopying) text = "waiting until the disk has all of it";
  if (is_over && job.phase == Phase::kReadingBytes) text = "comparing what was read";
  std::string stages = stages_text(job);
  return stages.empty() ? text : text + " · " + stages;
}

// "1.9 of 3.0 GB", "1.1 GB/s", "1 s left", for the current phase.
std::vector<std::string> amounts_of(const JobState& job) {
  std::vector<std::string> texts;
  if (job.total == 0) return texts;
  texts.push_back(amount_text(job, std::min(job.done, job.total)) + " of " +
                  amount_text(job, job.total));
  if (job.bytes_in_all > job.done) texts.push_back(human_bytes(job.bytes_in_all) + " in all");
  double seconds = job.phase_seconds > 0 ? job.phase_seconds : job.seconds;
  if (seconds < 0.5 || job.done == 0 || job.done >= job.total || job.stopping || job.paused)
    return texts;
  double rate = static_cast<double>(job.done) / seconds;
  texts.push_back(amount_text(job, static_cast<std::uint64_t>(rate)) + "/s");
  texts.push_back(duration_text(static_cast<double>(job.total - job.done) / rate) + " left");
  return texts;
}

// The buttons of a job, right-aligned; returns their left end.
float draw_job_buttons(Frame& frame, const JobState& job, const std::string& of, float right,
                       float middle) {
  if (job.stopping) return right;
  std::string verb(job.verb);
  ImVec2 size = button_size(frame, "Cancel");
  if (button(frame, ("job/cancel" + of).c_str(), "Cancel", Tip([&] {
               return "Stops this job: " + std::string(stop_consequence_text(job)) + ".";
             }),
             {right - size.x, middle - size.y / 2}))
    frame.emit(CancelCommand{verb});
  float end = right - size.x - frame.px(8);
  const char* label = job.paused ? "Go on" : "Pause";
  ImVec2 size_of_button = button_size(frame, label);
  if (button(frame, ("job/pause" + of).c_str(), label,
             Tip(job.paused ? "Goes on with this job." : "Pauses this job. F9 pauses all.",
                 Action::kPause),
             {end - size_of_button.x, middle - size.y / 2})) {
    if (job.paused)
      frame.emit(ContinueCommand{verb});
    else
      frame.emit(PauseCommand{verb});
  }
  return end - size_of_button.x - frame.px(16);
}

void draw_running(Frame& frame, const JobState& job, const std::string& of, Region region) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float middle = region.min.y + frame.px(20), x = region.min.x + frame.px(16);
  float right = region.max.x - frame.px(16);
  float end = draw_job_buttons(frame, job, of, right, middle);
  std::string title = job.title;
  if (steps_of(job) > 1)
    title += " · step " + std::to_string(step_of(job) + 1) + " of " + std::to_string(steps_of(job));
  x += text_from(draw, frame.fonts.text, x, middle, frame.theme.text, title) + frame.px(18);
  for (const std::string& text : amounts_of(job)) {
    float width = text_width(frame.fonts.mono_small, text);
    if (x + width > end) break;
    x += text_from(draw, frame.fonts.mono_small, x, middle, frame.theme.quiet, text) + frame.px(20);
  }
  if (end - x > frame.px(40))
    text_from(draw, frame.fonts.small, x, middle, frame.theme.quiet,
              elide_middle(phase_now(job), end - x, measure_with(frame.fonts.small)));
  ImVec2 min{region.min.x + frame.px(16), region.min.y + frame.px(44)};
  draw_bar(frame, job, draw, min, {right, min.y + frame.px(5)});
}

// The line of an idle window: what failed or was stopped, what was just done, or what was checked.
struct IdleLine {
  std::string text = {};
  std::optional<Sign> sign = {};
};

IdleLine idle_line(const Frame& frame, const UiState& state) {
  const Snapshot& snapshot = frame.snapshot;
  if (bar_shows_error(frame, state)) {
    const Error& error = *snapshot.error;
    if (error.kind == ErrorKind::kCancelled && !error.advice.empty())
      return {"The repair was stopped. What is finished stays.", Sign::kQuiet};
    return {failure_text(error), error.kind == ErrorKind::kCancelled ? Sign::kQuiet : Sign::kBad};
  }
  if (frame.now < state.toast_until && !state.toast.empty()) return {state.toast};
  if (snapshot.report == nullptr)
    return {snapshot.checkpoint == nullptr ? "" : snapshot.options.checkpoint};
  const Depth depth = snapshot.report->depth;
  std::string text = std::string("Checked: ") +
                     (depth == Depth::kMetadata  ? "metadata and file sizes"
                      : depth == Depth::kHeaders ? "metadata and item headers"
                                                 : "every byte") +
                     ".";
  if (depth != Depth::kData)
    text += " Check every byte (" + to_text(key_of(Action::kCheckData)) + ") reads more.";
  return {text};
}

void draw_idle(Frame& frame, UiState& state, Region region) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float middle = std::floor((region.min.y + region.max.y) / 2);
  float x = region.min.x + frame.px(16), right = region.max.x - frame.px(16);
  std::string hint = to_text(key_of(Action::kPalette));
  right -=
      draw_text_ending_at(draw, frame.fonts.small, right, middle, frame.theme.quiet, "commands") +
      frame.px(8);
  right -=
      draw_text_ending_at(draw, frame.fonts.mono_small, right, middle, frame.theme.quiet, hint) +
      frame.px(24);
  const IdleLine line = idle_line(frame, state);
  if (line.sign == Sign::kBad && frame.snapshot.failure != nullptr) {
    dismiss_button(frame, state, "job/dismiss", {right - frame.px(11), middle});
    right -= frame.px(34);
  }
  if (line.sign) {
    draw_sign(frame, draw, {x + frame.px(8), middle}, frame.px(8), *line.sign);
    x += frame.px(24);
  }
  std::string shown = elide_middle(line.text, right - x, measure_with(frame.fonts.small));
  text_from(draw, frame.fonts.small, x, middle,
            line.sign == Sign::kBad ? frame.theme.text : frame.theme.quiet, shown);
  if (shown != line.text && ImGui::IsMouseHoveringRect(region.min, region.max))
    tooltip(frame, line.text);
}

bool shows_failure(const Frame& frame, const UiState& state) {
  return bar_shows_error(frame, state) && frame.snapshot.error->kind != ErrorKind::kCancelled;
}

}  // namespace

float job_bar_height(const Frame& frame) {
  std::size_t rows = frame.concurrent_jobs.size() + (frame.job.running ? 1 : 0);
  return rows == 0 ? frame.px(36) : frame.px(kJobRow) * static_cast<float>(rows) + frame.px(10);
}

void draw_job_bar(Frame& frame, UiState& state, Region region) {
  begin_region(frame, "job", region,
               shows_failure(frame, state) ? frame.theme.bad_back : frame.theme.side, false);
  Region row{region.min, {region.max.x, region.min.y + frame.px(kJobRow)}};
  auto draw_row = [&](const JobState& job, const std::string& of) {
    draw_running(frame, job, of, row);
    row.min.y += frame.px(kJobRow);
    row.max.y += frame.px(kJobRow);
  };
  if (frame.job.running) draw_row(frame.job, "");
  for (const JobState& job : frame.concurrent_jobs) draw_row(job, "/" + std::string(job.verb));
  if (!frame.anything_runs()) draw_idle(frame, state, region);
  ImGui::GetWindowDrawList()->AddLine(region.min, {region.max.x, region.min.y}, frame.theme.line);
  end_region();
}

}  // namespace shw
