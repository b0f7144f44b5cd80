#include "views/panels/finding_page.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/model/evidence.h"
#include "core/rules/rules.h"
#include "core/rules/unreadable.h"
#include "views/actions.h"
#include "views/line.h"
#include "views/panels/content_panels.h"
#include "views/panels/evidence_table.h"
#include "views/shown_text.h"
#include "views/text.h"
#include "views/verdict.h"

namespace shw {
namespace {

constexpr std::size_t kShownSubjects = 6, kMaxSubjects = 400;

Rgba severity_colour(const Theme& theme, Severity severity) {
  return severity == Severity::kError     ? theme.bad
         : severity == Severity::kWarning ? theme.warn
                                          : theme.quiet;
}

Sign severity_sign(Severity severity) {
  return severity == Severity::kError     ? Sign::kBad
         : severity == Severity::kWarning ? Sign::kWarn
                                          : Sign::kQuiet;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    if (all.size() > 400) return all + ", …";
    all += (all.empty() ? "" : ", ") + text;
  }
  return all;
}

std::string value_text(const EvidenceValue& value) {
  struct {
    std::string operator()(bool v) const { return v ? "yes" : "no"; }
    std::string operator()(std::int64_t v) const {
      return v < 0 ? std::to_string(v) : human_count(static_cast<std::uint64_t>(v));
    }
    std::string operator()(double v) const { return fmt::format("{:.6g}", v); }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(const Extents& v) const { return to_text(ExtentsView(v)); }
    std::string operator()(const std::vector<std::string>& v) const { return joined(v); }
    std::string operator()(const std::vector<Box>& v) const {
      if (v.empty()) return "none";
      return to_text(v[0]) + (v.size() > 1 ? " and " + human_count(v.size() - 1) + " more" : "");
    }
  } text;
  return std::visit(text, value);
}

// Evidence for programs, which is shown elsewhere on this page.
bool is_hidden_evidence(std::string_view label) {
  for (std::string_view other : {"axes", "where", "confidence", "saved_shapes", "expected_shapes",
                                 "tile_count", "grown", "shrunk", "suggested_step"}) {
    if (label == other) return true;
  }
  return false;
}

// Shortens labels: "recorded_placements" becomes "recorded"; the label "ranks" of one becomes
// "rank", since "ranks 0" reads as a count.
std::string label_text(std::string_view label, bool is_of_one = false) {
  if (label.ends_with("_placements")) label.remove_suffix(11);
  if (is_of_one && label == "ranks") label.remove_suffix(1);
  std::string text(label);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

// True if the repair for this finding has been applied.
bool is_repaired_by_executed_plan(const Snapshot& snapshot, const Finding& finding) {
  if (!is_plan_executed(snapshot)) return false;
  const auto& operations = snapshot.plan->operations;
  return std::any_of(operations.begin(), operations.end(),
                     [&](const Operation& operation) { return operation.rule == finding.rule; });
}

// "n of m" with buttons for the previous and next finding.
void draw_rule(Frame& frame, UiState& state, Column& column, const Finding& finding,
               std::size_t index, std::size_t count) {
  float middle = column.y + frame.px(11);
  draw_sign(frame, column.draw, {column.left + frame.px(6), middle}, frame.px(6),
            is_repaired_by_executed_plan(frame.snapshot, finding) &&
                    !is_repaired_elsewhere(frame.snapshot)
                ? Sign::kOk
                : severity_sign(finding.severity));
  float right = column.right - frame.px(22);  // leaves room for the collapse button
  if (count > 1) {
    for (bool forward : {true, false}) {
      right -= frame.px(22);
      ImGui::SetCursorScreenPos({right, column.y});
      const char* id = forward ? "finding/next" : "finding/previous";
      const Action action = forward ? Action::kNextFinding : Action::kPreviousFinding;
      if (control(frame, id, {frame.px(22), frame.px(22)}, action)) run(action, frame, state);
      Rgba colour = ImGui::IsItemHovered() ? frame.theme.text : frame.theme.quiet;
      float x = right + frame.px(11), s = frame.px(4) * (forward ? 1.0f : -1.0f);
      column.draw->AddLine({x - s * 0.5f, middle - frame.px(4)}, {x + s * 0.5f, middle}, colour,
                           frame.px(1.5f));
      column.draw->AddLine({x + s * 0.5f, middle}, {x - s * 0.5f, middle + frame.px(4)}, colour,
                           frame.px(1.5f));
      focus_ring(frame, column.draw);
    }
  }
  std::string of = human_count(index + 1) + " of " + human_count(count);
  right -=
      draw_text_ending_at(column.draw, frame.fonts.small, right, middle, frame.theme.quiet, of);
  text_from(column.draw, frame.fonts.mono_small, column.left + frame.px(20), middle,
            is_repaired_by_executed_plan(frame.snapshot, finding)
                ? frame.theme.ok
                : severity_colour(frame.theme, finding.severity),
            elide_middle(finding.rule, right - column.left - frame.px(32),
                         measure_with(frame.fonts.mono_small)));
  column.take(frame.px(28));
}

// The command for a click on a name in a finding: selects the tensor, or shows the bytes of the
// file. Computed only for the name under the mouse, because there may be thousands.
std::optional<Command> command_for_name(const Snapshot& snapshot, const std::string& name,
                                        std::uint64_t offset) {
  const Checkpoint& c = *snapshot.checkpoint;
  if (c.find(name)) return SelectTensorCommand{name};
  for (const FileRow& file : c.files()) {
    if (file.path == name && file.kind == EntryKind::kFile)
      return BytesCommand{BytesCommand::Go::kAt, name, offset};
  }
  return std::nullopt;
}

// Makes the row from `top` to the column's end a link, if the name leads anywhere.
void make_row_a_link(Frame& frame, const Column& column, float top, std::string_view id,
                     const std::string& name, std::uint64_t offset) {
  ImGui::SetCursorScreenPos({column.left, top});
  const ImVec2 size{column.width(), std::max(1.0f, column.y - top)};
  const bool clicked = control(frame, id, size, Tip([&] {
                                 auto command = command_for_name(frame.snapshot, name, offset);
                                 if (!command) return name;
                                 return std::holds_alternative<SelectTensorCommand>(*command)
                                            ? "Goes to the tensor " + name + "."
                                            : "Shows the bytes of the file " + name + ".";
                               }));
  focus_ring(frame, column.draw);
  if (!ImGui::IsItemHovered() && !clicked) return;
  auto command = command_for_name(frame.snapshot, name, offset);
  if (!command) return;
  const float line = column.y - frame.px(3);
  column.draw->AddLine({column.left, line}, {column.right, line}, frame.theme.quiet);
  if (clicked) frame.emit(std::move(*command));
}

// The offset in a file that the evidence names.
std::uint64_t evidence_offset_of(const Finding& finding) {
  const auto* offset = find_evidence<std::int64_t>(finding, "offset");
  return offset != nullptr && *offset > 0 ? static_cast<std::uint64_t>(*offset) : 0;
}

void draw_evidence(Frame& frame, UiState& state, Column& column, const Finding& finding) {
  if (finding.evidence.empty()) return;
  head(frame, column, "EVIDENCE");
  const Extents* expected = find_evidence<Extents>(finding, "expected");
  // Uses the selected tensor's numbers if it is a subject of the finding.
  const Picture* picture = frame.digest.picture.get();
  if (picture && (!picture->expects || picture->saved->size() == 0 || !expected ||
                  picture->finding != frame.snapshot.finding.value_or(0)))
    picture = nullptr;
  for (const auto& [label, value] : finding.evidence) {
    if (is_hidden_evidence(label) || is_in_table(*frame.digest.evidence, label)) continue;
    const auto* left_out = std::get_if<std::int64_t>(&value);
    if (label.ends_with("_left_out") && left_out != nullptr && *left_out == 0) continue;
    const auto* list = std::get_if<std::vector<std::string>>(&value);
    if (list != nullptr && list->empty()) continue;
    if (picture && (label == "saved" || label == "expected" || label == "tile")) {
      Extents here = label == "saved"      ? picture->saved->shape()
                     : label == "expected" ? picture->expected
                                           : copy_of(picture->saved->sizes(0));
      row_extents(frame, column, label, here,
                  label == "saved" ? ExtentsView(picture->expected) : ExtentsView{},
                  frame.theme.bad);
    } else if (const Extents* extents = std::get_if<Extents>(&value)) {
      bool saved = label == "saved" || label == "found";
      row_extents(frame, column, label_text(label), *extents,
                  saved && expected ? *expected : ExtentsView{}, frame.theme.bad);
    } else {
      bool correct = label.starts_with("correct");
      const float top = column.y;
      row(frame, column, label_text(label, list != nullptr && list->size() == 1),
          desktop_text(value_text(value)), correct ? frame.theme.accent : frame.theme.text);
      const auto* name = std::get_if<std::string>(&value);
      if (list != nullptr && list->size() == 1) name = &list->front();
      if (name != nullptr)
        make_row_a_link(frame, column, top, "evidence/" + label, *name,
                        evidence_offset_of(finding));
    }
  }
  gap(frame, column, Gap::kSmall);
  draw_evidence_tables(frame, column, state.evidence);
  gap(frame, column, Gap::kTight);
}

// The other subjects; a click selects one.
void draw_subjects(Frame& frame, UiState& state, Column& column, std::size_t index) {
  const Finding& finding = frame.snapshot.report->findings[index];
  const Checkpoint& checkpoint = *frame.snapshot.checkpoint;
  std::string_view now = frame.snapshot.tensor ? checkpoint.fqn(*frame.snapshot.tensor) : "";
  std::size_t others = finding.subjects.size();
  const bool here =
      frame.snapshot.tensor && frame.digest.about->names.names(*frame.snapshot.tensor, index);
  if (others <= (here ? 1u : 0u)) return;
  head(frame, column, here ? "ALSO AFFECTED" : "AFFECTED");
  std::size_t shown = 0;
  for (const std::string& subject : finding.subjects) {
    if (subject == now) continue;
    if (shown == (state.subjects_open ? kMaxSubjects : kShownSubjects)) break;
    ImGui::SetCursorScreenPos({column.left, column.y});
    ImGui::PushID(static_cast<int>(shown));
    const bool clicked = row_control(frame, "subject", fmt::format("subject/{}", shown),
                                     {column.width(), frame.px(22)}, false,
                                     Tip([&] { return subject + "\nGoes to it."; }));
    auto command = clicked || ImGui::IsItemHovered()
                       ? command_for_name(frame.snapshot, subject, evidence_offset_of(finding))
                       : std::nullopt;
    bool lit = ImGui::IsItemHovered() && command.has_value();
    if (clicked && command) frame.emit(std::move(*command));
    std::string text = elide_path(subject, column.width(), measure_with(frame.fonts.mono_small));
    const float top = column.take(frame.px(22)), line = top + frame.px(20);
    float width = text_from(column.draw, frame.fonts.mono_small, column.left, top + frame.px(11),
                            frame.theme.text, text);
    if (lit)
      column.draw->AddLine({column.left, line}, {column.left + width, line}, frame.theme.quiet);
    focus_ring(frame, column.draw);
    ImGui::PopID();
    ++shown;
  }
  std::size_t left = others - (here ? 1 : 0) - shown;
  if (left > 0) {
    std::string more = "and " + human_count(left) + " more";
    if (state.subjects_open)  // longer lists are shown in the tensor list
      caption(frame, column, more + "; finding:* lists them");
    else if (link_line(frame, column, "subject/more", more,
                       "Lists more of the affected names here."))
      state.subjects_open = true;
  }
  gap(frame, column, Gap::kMedium);
}

// A step that nothing here proves: the plan shows it before anything is written.
void draw_suggested_step(Frame& frame, UiState& state, Column& column, const std::string& step) {
  paragraph(frame, column, frame.fonts.small, frame.theme.text,
            "Nothing in this checkpoint proves a repair; a sound checkpoint as reference would. "
            "A step does it without proof, into a new folder.",
            Gap::kSmall);
  Line line(frame, column, 30, Gap::kMedium);
  if (is_possible(Action::kReview, frame, state) &&
      line.button("finding/step", "Review this step",
                  "Makes a plan of the step. Nothing is written before you agree.")) {
    frame.emit(PlanCommand{{}, false, step});
    state.plan_open = true;
  }
  if (is_possible(Action::kExpect, frame, state) &&
      line.button("finding/reference", "Set a reference", Action::kExpect, ButtonStyle::kQuiet))
    run(Action::kExpect, frame, state);
}

void draw_remedy(Frame& frame, UiState& state, Column& column, const Finding& finding) {
  const bool is_note = finding.severity == Severity::kInfo && !finding.remedy;
  if (is_note && find_evidence<std::string>(finding, "suggested_step") == nullptr) return;
  head(frame, column,
       !is_repaired_by_executed_plan(frame.snapshot, finding) ? "REMEDY"
       : is_repaired_elsewhere(frame.snapshot)                ? "REMEDY, APPLIED IN THE COPY"
                                                              : "REMEDY, APPLIED");
  if (const auto* step = find_evidence<std::string>(finding, "suggested_step");
      step != nullptr && !finding.remedy)
    return draw_suggested_step(frame, state, column, *step);
  if (!finding.remedy) {
    paragraph(frame, column, frame.fonts.small, frame.theme.text,
              "No safe remedy from this checkpoint alone.", Gap::kSmall);
    if (has_unreadable_counts(finding) && is_possible(Action::kReview, frame, state)) {
      if (link_line(frame, column, "finding/fill", "Fill what is lost from elsewhere",
                    "Another step, another checkpoint, or zeros."))
        run(Action::kReview, frame, state);
    }
    gap(frame, column, Gap::kMedium);
    return;
  }
  body(frame, column, finding.remedy->text, Gap::kSmall);
  Line line(frame, column, 22, Gap::kLarge);
  bool lossless = finding.remedy->lossless;
  line.chip(lossless ? "lossless" : "loses elements", lossless ? frame.theme.ok : frame.theme.warn);
  if (frame.snapshot.plan != nullptr && frame.snapshot.plan->repairs()) {
    std::uint64_t moved = 0;
    std::int64_t tiles = 0;
    for (const Operation& operation : frame.snapshot.plan->operations) {
      if (operation.rule != finding.rule) continue;
      moved += operation.bytes_moved;
      tiles += operation.tiles;
    }
    line.chip(human_bytes(moved) + " moved", frame.theme.text);
    if (tiles > 0) line.chip(plural(static_cast<std::uint64_t>(tiles), "tile"), frame.theme.text);
  }
}

}  // namespace

void draw_finding(Frame& frame, UiState& state, Column& column) {
  const auto& findings = frame.snapshot.report->findings;
  std::size_t index = std::min(frame.snapshot.finding.value_or(0), findings.size() - 1);
  const Finding& finding = findings[index];
  draw_rule(frame, state, column, finding, index, findings.size());
  body(frame, column, with_desktop_terms(finding.cause), Gap::kLarge);
  draw_viewer_chips(frame, state, column, true);
  draw_names_chip(frame, state, column, finding);
  follow_finding(frame.snapshot, index, state.evidence);
  draw_evidence(frame, state, column, finding);
  draw_subjects(frame, state, column, index);
  draw_remedy(frame, state, column, finding);
}

}  // namespace shw
