// The panel that writes the checkpoint in another form: another format, program, mesh or dtype,
// with an adapter added, averaged with others, as a difference. It plans; the plan's panel shows
// what is written and where, and has the button that writes.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string_view>
#include <system_error>

#include "core/verbs/computed_path.h"
#include "core/verbs/plan_file.h"
#include "views/actions.h"
#include "views/line.h"
#include "views/panels/panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

struct Choice {
  const char *value, *label, *tip;
  bool has_tiles = false;  // chunks of several ranks can be written
};

constexpr std::array kForms{
    Choice{"", "Same format",
           "The format of the checkpoint, or safetensors where it is not written.", true},
    Choice{"safetensors", "safetensors", "Files that transformers, diffusers and MLX load."},
    Choice{"dcp", "PyTorch DCP", "Chunks with .metadata, as torch.distributed.checkpoint saves.",
           true},
    Choice{"torch", "torch.save", "One file for torch.load."},
    Choice{"torch-checkpointing", "torch_checkpointing", "The successor of DCP.", true},
    Choice{"hf", "Hugging Face",
           "Names and layout of transformers, from those of another program."},
    Choice{"torch_dist", "Megatron-core", "Names and layout that Megatron-core loads.", true},
    Choice{"titan", "torchtitan", "Names and layout of torchtitan, as DCP.", true},
    Choice{"fsdp_dtensor", "Megatron FSDP", "Megatron-core's names, sharded by FSDP.", true}};

constexpr std::array kDtypes{
    Choice{"", "As saved", "Every weight keeps its dtype."},
    Choice{"bfloat16", "bfloat16", "Floating weights are rounded to bfloat16."},
    Choice{"float16", "float16", "Floating weights are rounded to float16; large ones overflow."},
    Choice{"float32", "float32", "Floating weights become float32."}};

constexpr std::array kQuantised{
    Choice{"", "As stored", "Quantised weights stay as they are."},
    Choice{"numbers", "Decoded", "Decodes weights in 8 or 4 bits with their scales."},
    Choice{"fp8-block", "FP8", "Weights of linear modules in 8 bits, a scale per 128 x 128."},
    Choice{"mxfp4", "MXFP4", "Stacked experts in 4 bits, a power of two per 32 elements."}};

// A combination with other checkpoints; hint and note are shown at the field of paths.
struct Combination {
  Choice choice;
  const char *hint, *note;
  bool takes_reference = false;  // the reference of the open checkpoint is likely what is meant
};
constexpr std::array kCombinations{
    Combination{{"", "None", "The open checkpoint alone."}, "", ""},
    Combination{{"merged", "Add a LoRA adapter", "Adds an adapter to this base model."},
                "/runs/7/adapter",
                "The folder of an adapter of PEFT, whose base this checkpoint is."},
    Combination{{"average", "Average", "The mean of this and other checkpoints."},
                "/runs/7/step_8000",
                "Checkpoints of the same model, with commas between them.",
                true},
    Combination{{"adapter", "Extract a LoRA adapter", "What this model learned, as an adapter."},
                "/models/base",
                "The base from which this checkpoint was trained.",
                true},
    Combination{{"delta", "Save the difference", "What makes another checkpoint of this one."},
                "/models/tuned",
                "The checkpoint that the difference leads to; this one is its base.",
                true},
    Combination{{"applied", "Add a difference", "Makes the other checkpoint again."},
                "/models/tuned-delta",
                "A difference that was written to this checkpoint."}};

// A row of buttons of which one is chosen; it continues in the next line where it is full.
void draw_choice_buttons(Frame& frame, Column& column, const char* id,
                         std::span<const Choice> choices, std::string& chosen) {
  Line line(frame, column, 30, Gap::kMedium);
  for (const Choice& choice : choices) {
    const bool is_chosen = chosen == choice.value;
    const std::string name = std::string(id) + "/" + (*choice.value == 0 ? "same" : choice.value);
    if (line.button(name.c_str(), choice.label, choice.tip,
                    is_chosen ? ButtonStyle::kPlain : ButtonStyle::kQuiet))
      chosen = choice.value;
  }
}

void draw_toggles(Frame& frame, WriteState& write, Column& column) {
  bool& on = write.chosen.weights_only;
  const std::string label = std::string(on ? "\u2713 " : "") + "Only the weights";
  if (Line(frame, column, 30, Gap::kMedium)
          .button("write/weights-only", label,
                  "Leaves out optimizer states and all else that a trainer saves next to the "
                  "model.",
                  on ? ButtonStyle::kPlain : ButtonStyle::kQuiet))
    on = !on;
}

std::vector<std::string> paths_in(std::string_view text) {
  std::vector<std::string> paths;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    std::string path = without_blanks(text.substr(at, comma - at));
    if (!path.empty()) paths.push_back(verbs::expanded_path(std::move(path)));
    at = comma + 1;
  }
  return paths;
}

// The path of the open checkpoint combined with `inputs` as chosen.
Result<std::string> combined_path(const WriteState& write, const std::string& path) {
  const std::vector<std::string> inputs = paths_in(write.inputs);
  if (inputs.empty()) return fail(ErrorKind::kUsage, "the path of the other checkpoint is missing");
  for (const std::string& input : inputs) SHW_CHECK(verbs::check_input_path(input));
  if (write.combined == "average")
    return verbs::average_path(path, inputs, {}, write.quantised == "numbers");
  if (inputs.size() > 1) return fail(ErrorKind::kUsage, "one path is meant here, without a comma");
  if (write.combined == "merged") return verbs::merged_path(path, inputs[0]);
  if (write.combined == "delta") return verbs::delta_path(path, inputs[0]);
  if (write.combined == "applied") return verbs::applied_path(path, inputs[0]);
  std::int64_t rank = 0;
  const std::string text = without_blanks(write.rank);
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (code != std::errc{} || end != text.data() + text.size() || rank < 1 || rank > 4096)
    return fail(ErrorKind::kUsage, "the rank is a number from 1 to 4096");
  return verbs::adapter_path(path, inputs[0], rank);
}

// The path of the checkpoint that is computed from the open one as chosen.
Result<std::string> computed_path(const WriteState& write, std::string path) {
  const bool quantises = !write.quantised.empty() && write.quantised != "numbers";
  if (quantises && (write.combined == "delta" || write.combined == "adapter"))
    return fail(ErrorKind::kUsage, "a difference is not quantised");
  if (write.quantised == "numbers") path += verbs::kDequantisedPath;
  if (!write.combined.empty()) {
    SHW_TRY(path, combined_path(write, path));
  }
  return quantises ? verbs::quantised_path(path, write.quantised) : path;
}

// Returns true if Enter was pressed.
bool draw_combination(Frame& frame, Column& column, WriteState& write) {
  head(frame, column, "WITH ANOTHER CHECKPOINT");
  std::array<Choice, kCombinations.size()> choices{};
  std::ranges::transform(kCombinations, choices.begin(), &Combination::choice);
  const std::string before = write.combined;
  draw_choice_buttons(frame, column, "write/with", choices, write.combined);
  const auto* chosen = std::ranges::find_if(
      kCombinations, [&](const Combination& one) { return write.combined == one.choice.value; });
  if (chosen == kCombinations.begin() || chosen == kCombinations.end()) return false;
  if (write.combined != before && write.inputs.empty() && chosen->takes_reference)
    write.inputs = frame.snapshot.options.against;
  bool entered = explained_field(frame, column, "write/inputs", "PATH", chosen->hint, chosen->note,
                                 write.inputs);
  if (write.combined == "adapter")
    entered = explained_field(frame, column, "write/rank", "RANK", "16",
                              "Of the two matrices of each weight: more is closer and larger.",
                              write.rank) ||
              entered;
  return entered;
}

void plan_write(Frame& frame, UiState& state) {
  const Snapshot& s = frame.snapshot;
  const Result<std::string> path = computed_path(state.write, s.options.checkpoint);
  if (!path) return show_toast(frame, state, path.error().message);
  if (*path != s.options.checkpoint) {
    OpenCommand open = reopen_command(s, *path);
    if (s.tensor) open.tensor = s.checkpoint->fqn(*s.tensor);
    frame.emit(std::move(open));
    frame.emit(CheckCommand{s.options.depth});
    state.write.combined.clear();  // it is in the path of what is open then
    state.write.inputs.clear();
    state.write.quantised.clear();
  }
  verbs::OutputForm wanted = state.write.chosen;
  wanted.mesh = without_blanks(wanted.mesh);
  frame.emit(WriteAsCommand{std::move(wanted)});
  state.write.open = false;
  state.plan_open = true;
}

}  // namespace

void open_write_panel(Frame& /*frame*/, UiState& state) {
  state.write.open = true;
  state.write.frames = 0;
}

void draw_write_panel(Frame& frame, UiState& state) {
  WriteState& write = state.write;
  OverlayPanel panel;
  if (!begin_panel(frame, state, "##write", 720, write.height, "Write in another form", panel))
    write.open = false;
  Column& column = panel.content;
  paragraph(frame, column, frame.fonts.text, frame.theme.quiet,
            "A new folder next to the checkpoint, proved element by element. The next page shows "
            "what is written and where; nothing is written before.",
            Gap::kLarge);
  head(frame, column, "AS");
  draw_choice_buttons(frame, column, "write/as", kForms, write.chosen.to);
  const auto* form = std::ranges::find(kForms, write.chosen.to, &Choice::value);
  bool entered = false;
  if (form == kForms.end() || form->has_tiles) {
    // In a low window the focus would scroll the choices above the field out of sight.
    if (write.frames == 0 && column.y + frame.px(60) < column.bottom) ImGui::SetKeyboardFocusHere();
    entered =
        explained_field(frame, column, "write/mesh", "SPLIT FOR A MESH", "dp=8,tp=2",
                        "Axes with their sizes, outermost first. Empty: the chunks that are there, "
                        "or one for each tensor.",
                        write.chosen.mesh);
  } else {
    write.chosen.mesh.clear();
  }
  // The focus scrolls to the field although it is in sight.
  if (write.frames++ < 3) ImGui::SetScrollY(0);
  head(frame, column, "WEIGHTS");
  draw_choice_buttons(frame, column, "write/dtype", kDtypes, write.chosen.dtype);
  draw_toggles(frame, write, column);
  head(frame, column, "QUANTISED WEIGHTS");
  draw_choice_buttons(frame, column, "write/quantised", kQuantised, write.quantised);
  entered = draw_combination(frame, column, write) || entered;
  write.height = end_panel_content(frame, panel);
  Line line(frame, panel.all);
  if (!frame.job.running &&
      (line.button_at_end(
           "write/plan", "Show the plan",
           "Plans it: steps, bytes, the new folder. Nothing is written yet.  (Enter)",
           ButtonStyle::kPrimary) ||
       entered))
    plan_write(frame, state);
  if (close_button(line, "write/close")) write.open = false;
  end_overlay();
}

}  // namespace shw
