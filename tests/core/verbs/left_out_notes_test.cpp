#include "core/verbs/left_out_notes.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace shw;

namespace {

std::vector<std::string> notes_of(const MappedSteps& mapped) {
  std::vector<std::string> notes;
  verbs::add_left_out_notes(mapped, notes);
  return notes;
}

bool has_line_with(const std::vector<std::string>& notes, const std::vector<std::string>& parts) {
  return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
    return std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return note.find(part) != std::string::npos;
    });
  });
}

// States of 40 layers, which no list of names would show.
MappedSteps many_left_out() {
  MappedSteps mapped;
  mapped.to = "titan";
  for (const char* kind : {"exp_avg", "param"}) {
    for (int layer = 0; layer < 40; ++layer) {
      const std::string fqn =
          "optimizer.state.layers." + std::to_string(layer) + ".w1.weight." + kind;
      mapped.left_out.push_back(fqn);
      mapped.left_out_states.push_back(
          {fqn, kind,
           kind[0] == 'p' ? StateOmissionReason::kNoPlace : StateOmissionReason::kNoWeight});
    }
  }
  return mapped;
}

}  // namespace

TEST_CASE("left out notes: one line per kind of state and reason, with count and pattern") {
  const auto notes = notes_of(many_left_out());
  CHECK(notes.size() == 2);
  CHECK(has_line_with(notes, {"exp_avg of 40", "optimizer.state.layers.*.w1.weight.exp_avg"}));
  CHECK(has_line_with(notes, {"param of 40", "titan"}));
}

TEST_CASE("left out notes: steps are named only where no state is converted") {
  MappedSteps mapped = many_left_out();
  mapped.left_out_states = {
      {"optimizer.state.w.step", "step", StateOmissionReason::kNotElementwise}};
  mapped.left_out = {"optimizer.state.w.step"};
  CHECK(has_line_with(notes_of(mapped), {"step of 1"}));
  mapped.states["exp_avg"] = 1;
  CHECK(notes_of(mapped).empty());
}

TEST_CASE("left out notes: other tensors and entries are counted by their patterns") {
  MappedSteps mapped;
  for (int layer = 0; layer < 40; ++layer) {
    const std::string number = std::to_string(layer);
    mapped.left_out.push_back("model.layers." + number + ".rotary_emb.inv_freq");
    for (const char* setting : {".lr", ".eps"})
      mapped.omitted_entries.push_back("optimizer.param_groups.layers." + number + ".w" + setting);
  }
  const auto notes = notes_of(mapped);
  CHECK(notes.size() == 2);
  CHECK(has_line_with(notes, {"40 tensors", "model.layers.*.rotary_emb.inv_freq"}));
  CHECK(has_line_with(notes, {"80 entries", "param_groups.*.lr", "param_groups.*.eps"}));
  CHECK(notes_of({}).empty());
}
