// Internals of explain.cpp: hypotheses for one message.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/explain/error_message.h"
#include "core/explain/hypothesis.h"

namespace shw {

// Facts that a name implies and shapes do not.
struct NameTraits {
  bool known = false;        // there is a name
  bool state = false;        // optimizer state
  bool expert = false;       // one expert, or a stack of experts
  bool vocabulary = false;   // embedding or output layer
  bool half = false;         // `_w` or `_v` half of a gated weight
  bool replicated = false;   // norms and routers, which tensor parallelism replicates
  bool extra_state = false;  // TransformerEngine's _extra_state
  bool adapter = false;      // one of two LoRA matrices
  bool flat = false;         // FSDP1's flat parameter
  bool bias = false;         // replicated by row-parallel layers
  bool position = false;     // a learned table of positions
  bool head = false;         // the last layer of a classifier
  bool diffusion = false;    // of a model for pictures or voices, which no rank holds in part
  bool split_by_tensor_parallelism = false;  // a layer that tensor parallelism is known to cut
};
NameTraits traits_of(std::string_view fqn);

struct ShapeCase {
  const ErrorMessage& message;
  NameTraits traits;
  std::optional<WorldSizes> worlds;
  std::vector<std::size_t> differing;  // dims; empty if ranks differ
};

// True if the dim is one of a convolution's window, not of its channels.
bool is_window_dim(const ErrorMessage& message, std::size_t dim);

// Each function appends a hypothesis if it applies.
void add_hypothesis_transposed(const ShapeCase& shapes, std::vector<Hypothesis>& all);       // H-T
void add_hypothesis_axis_moved(const ShapeCase& shapes, std::vector<Hypothesis>& all);       // H-A
void add_hypothesis_local_as_global(const ShapeCase& shapes, std::vector<Hypothesis>& all);  // H-L
void add_hypothesis_expert_axis(const ShapeCase& shapes, std::vector<Hypothesis>& all);      // H-E
void add_hypothesis_tensor_parallel(const ShapeCase& shapes, std::vector<Hypothesis>& all);  // H-TP
void add_hypothesis_vocabulary(const ShapeCase& shapes, std::vector<Hypothesis>& all);       // H-V
void add_hypothesis_padded_part(const ShapeCase& shapes, std::vector<Hypothesis>& all);      // H-VP
void add_hypothesis_uneven(const ShapeCase& shapes, std::vector<Hypothesis>& all);           // H-U
void add_hypothesis_halves(const ShapeCase& shapes, std::vector<Hypothesis>& all);           // H-W
void add_hypothesis_extra_state(const ShapeCase& shapes, std::vector<Hypothesis>& all);      // H-X
void add_hypothesis_placeholder(const ShapeCase& shapes, std::vector<Hypothesis>& all);      // H-Z
void add_hypothesis_flat(const ShapeCase& shapes, std::vector<Hypothesis>& all);             // H-F
void add_hypothesis_packed(const ShapeCase& shapes, std::vector<Hypothesis>& all);           // H-Q
void add_hypothesis_repeated(const ShapeCase& shapes, std::vector<Hypothesis>& all);         // H-K
void add_hypothesis_adapter_rank(const ShapeCase& shapes, std::vector<Hypothesis>& all);     // H-R
void add_hypothesis_unit_axis(const ShapeCase& shapes, std::vector<Hypothesis>& all);        // H-1
void add_hypothesis_folded_axes(const ShapeCase& shapes, std::vector<Hypothesis>& all);      // H-FO
void add_hypothesis_position_table(const ShapeCase& shapes, std::vector<Hypothesis>& all);   // H-P
void add_hypothesis_class_head(const ShapeCase& shapes, std::vector<Hypothesis>& all);       // H-C
void add_hypothesis_key_heads(const ShapeCase& shapes, std::vector<Hypothesis>& all);        // H-K
void add_hypothesis_groups(const ShapeCase& shapes, std::vector<Hypothesis>& all);           // H-QG
void add_hypothesis_ggml_block(const ShapeCase& shapes, std::vector<Hypothesis>& all);       // H-G
void add_hypothesis_diffusion_width(const ShapeCase& shapes, std::vector<Hypothesis>& all);  // H-D
void add_hypothesis_input_channels(const ShapeCase& shapes, std::vector<Hypothesis>& all);   // H-IC
void add_hypothesis_gated(const ShapeCase& shapes, std::vector<Hypothesis>& all);            // H-GU
void add_hypothesis_window(const ShapeCase& shapes, std::vector<Hypothesis>& all);           // H-CW
void add_hypothesis_buffer(const ShapeCase& shapes, std::vector<Hypothesis>& all);           // H-B
void add_hypothesis_different_model(const ShapeCase& shapes, std::vector<Hypothesis>& all);  // H-M

// Missing and unexpected names, without shapes.
struct MessageKind;  // message_kinds.h
struct KeyLists {
  std::vector<std::string> missing, unexpected;
  // The rows that were matched; if they have meanings, these replace the general ones.
  const MessageKind* missing_kind = nullptr;
  const MessageKind* unexpected_kind = nullptr;
};
void add_hypotheses_from_names(const KeyLists& keys, std::vector<Hypothesis>& all);
void add_renamed_parts(const KeyLists& keys, std::vector<Hypothesis>& all);
void add_name_families(const KeyLists& keys, std::vector<Hypothesis>& all);
// For messages of other kinds about one name: a wrapper or an adapter that the name shows.
void add_hypothesis_wrapped_name(const ErrorMessage& message, std::vector<Hypothesis>& all);

struct Interpretation;  // message_kinds.h
Hypothesis hypothesis_of(const Interpretation& meaning);
// Adds the interpretations in the message's table row.
void add_hypotheses_from_kind(const ErrorMessage& message, std::vector<Hypothesis>& all);

// "shardwright check CHECKPOINT --spec SPEC.json".
std::string check_command(std::string_view options = "");

}  // namespace shw
