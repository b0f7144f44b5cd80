// The panel that writes the checkpoint in another form: another format, program, mesh or dtype,
// with an adapter added, averaged with others. It plans; the plan's panel shows what is written and
// where, and has the button that writes.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "core/verbs/asked_path.h"
#include "core/verbs/plan_file.h"
#include "views/actions.h"
#include "views/habits.h"
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

// A row of buttons of which one is chosen; it continues in the next line where it is full.
void choose_one(Frame& frame, Column& column, const char* id, std::span<const Choice> choices,
                std::string& chosen) {
  float x = column.left;
  for (const Choice& choice : choices) {
    const float wide = button_size(frame, choice.label).x;
    if (x > column.left && x + wide > column.right) {
      x = column.left;
      column.y += frame.px(38);
    }
    const bool is_chosen = chosen == choice.value;
    const std::string name = std::string(id) + "/" + (*choice.value == 0 ? "same" : choice.value);
    if (button(frame, name.c_str(), choice.label, choice.tip, {x, column.y},
               is_chosen ? ButtonStyle::kPlain : ButtonStyle::kQuiet))
      chosen = choice.value;
    x += wide + frame.px(8);
  }
  column.y += frame.px(44);
}

void draw_toggles(Frame& frame, WriteState& write, Column& column) {
  struct {
    const char *id, *label, *tip;
    bool* on;
  } toggles[] = {{"write/weights-only", "Only the weights",
                  "Leaves out optimizer states and all else that a trainer saves beside the model.",
                  &write.chosen.weights_only},
                 {"write/dequantise", "Quantised weights as numbers",
                  "Decodes weights in 8 or 4 bits with their scales.", &write.dequantise}};
  float x = column.left;
  for (const auto& toggle : toggles) {
    const std::string label = std::string(*toggle.on ? "\u2713 " : "") + toggle.label;
    if (button(frame, toggle.id, label, toggle.tip, {x, column.y},
               *toggle.on ? ButtonStyle::kPlain : ButtonStyle::kQuiet))
      *toggle.on = !*toggle.on;
    x += button_size(frame, label).x + frame.px(8);
  }
  column.y += frame.px(44);
}

// Returns true if Enter was pressed.
bool draw_field(Frame& frame, Column& column, const char* id, const char* title, const char* hint,
                const char* what, std::string& text) {
  head(frame, column, title);
  const float height = frame.px(34);
  const bool entered = text_field(frame, column.draw, id, hint, {column.left, column.y},
                                  {column.width(), height}, text, what);
  column.y += height + frame.px(6);
  paragraph(frame, column, frame.fonts.small, frame.theme.quiet, what);
  column.y += frame.px(12);
  return entered;
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

// The path of the checkpoint that is computed from the open one as chosen.
Result<std::string> computed_path(const WriteState& write, std::string path) {
  if (write.dequantise) path += verbs::kDequantisedPath;
  const std::string adapter = verbs::expanded_path(without_blanks(write.adapter));
  if (!adapter.empty()) {
    SHW_CHECK(verbs::check_input_path(adapter));
    path = verbs::merged_path(path, adapter);
  }
  const std::vector<std::string> others = paths_in(write.others);
  for (const std::string& other : others) SHW_CHECK(verbs::check_input_path(other));
  return others.empty() ? path : verbs::average_path(path, others, {}, write.dequantise);
}

void plan_it(Frame& frame, UiState& state) {
  const Snapshot& s = frame.snapshot;
  const Result<std::string> path = computed_path(state.write, s.options.checkpoint);
  if (!path) return show_toast(frame, state, path.error().message);
  if (*path != s.options.checkpoint) {
    OpenCommand open = open_again(s, *path);
    if (s.tensor) open.tensor = s.checkpoint->fqn(*s.tensor);
    frame.emit(std::move(open));
    frame.emit(CheckCommand{s.options.depth});
    state.write.adapter.clear();  // they are in the path of what is open then
    state.write.others.clear();
    state.write.dequantise = false;
  }
  verbs::WriteAs wanted = state.write.chosen;
  wanted.mesh = without_blanks(wanted.mesh);
  frame.emit(WriteAsCommand{std::move(wanted)});
  state.out.clear();
  state.write.open = false;
  state.plan_open = true;
}

}  // namespace

void open_write_panel(Frame& /*frame*/, UiState& state) {
  state.write.open = state.write.wanted = true;
}

void draw_write_panel(Frame& frame, UiState& state) {
  WriteState& write = state.write;
  OverlayPanel panel;
  if (!begin_panel(frame, state, "##write", 720, write.height, "Write it in another form", panel))
    write.open = false;
  Column& column = panel.content;
  paragraph(frame, column, frame.fonts.text, frame.theme.quiet,
            "A new folder beside the checkpoint, proved element by element. The next page shows "
            "what is written and where; nothing is written before.");
  column.y += frame.px(18);
  head(frame, column, "AS");
  choose_one(frame, column, "write/as", kForms, write.chosen.to);
  const auto* form = std::ranges::find(kForms, write.chosen.to, &Choice::value);
  bool entered = false;
  if (form == kForms.end() || form->has_tiles) {
    if (write.wanted) ImGui::SetKeyboardFocusHere();
    entered =
        draw_field(frame, column, "write/mesh", "SPLIT FOR A MESH", "dp=8,tp=2",
                   "Axes with their sizes, outermost first. Empty: the chunks that are there, "
                   "or one for each tensor.",
                   write.chosen.mesh);
  } else {
    write.chosen.mesh.clear();
  }
  write.wanted = false;
  head(frame, column, "WEIGHTS");
  choose_one(frame, column, "write/dtype", kDtypes, write.chosen.dtype);
  draw_toggles(frame, write, column);
  entered =
      draw_field(frame, column, "write/adapter", "WITH A LORA ADAPTER ADDED", "/runs/7/adapter",
                 "The folder of an adapter of PEFT, whose base this checkpoint is.",
                 write.adapter) ||
      entered;
  entered = draw_field(frame, column, "write/others", "AVERAGED WITH", "/runs/7/step_8000",
                       "Checkpoints of the same model, with commas between them.", write.others) ||
            entered;
  write.height = end_panel_content(frame, panel);
  float right = panel.all.right;
  if (!frame.job.running) {
    right -= button_size(frame, "Show what is written").x;
    if (button(frame, "write/plan", "Show what is written",
               "Plans it: steps, bytes, the new folder. Nothing is written yet.  (Enter)",
               {right, panel.all.y}, ButtonStyle::kPrimary) ||
        entered)
      plan_it(frame, state);
    right -= frame.px(10);
  }
  right -= button_size(frame, "Close").x;
  if (button(frame, "write/close", "Close", "Closes this panel.  (Esc)", {right, panel.all.y}))
    write.open = false;
  end_overlay();
}

}  // namespace shw
