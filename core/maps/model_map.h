// Describes how one program's tensors are made from another's, as data (assets/maps/*.json).
//
//   {"schema": "shardwright-map/1", "name": "hf-megatron", "title": TEXT,
//    "from": WORLD, "to": WORLD,
//    "values": {NAME: [EXPRESSION, ...]},           the first expression with a value counts
//    "below": {COUNTER: NAME},                      a counter of `from` is less than this value
//    "forms": [{"choices": [NAME, ...], "numbered_where": [config key, ...]}],
//    "prefixes": {"from": [TEXT], "to": [TEXT],     optional prefixes of all names
//                 "write": TEXT},                   prefix of all written names of `to`
//    "leave_out": {"from": [SHELL PATTERN], "to": [SHELL PATTERN]},
//    "copies": {"from": [COPY], "to": [COPY]},      tied embeddings and the like
//    "states": {"from": STATES, "to": STATES},      names of optimizer states
//    "rows": [{"from": [PATTERN], "to": [PATTERN], "do": [OPERATION, ...], ...}]}
//
// A row says how tensors `from` make tensors `to`. A counter that only `from` has is stacked: it
// becomes a leading dim. Text of `to` in brackets, "decoder.layers.[{l}.]mlp", makes two rows: one
// for the forms "numbered" and "singleton" with it, one for the form "stacked" without.
//
// Every operation can be undone:
//   join       several tensors -> one: each cut into `pieces` along `dim`; piece 0 of each, piece 1
//              of each, ... `parts`: their sizes, if they are not equal
//   split      the reverse of join
//   regroup    one tensor with adjacent `parts` -> the parts joined by `pieces`
//   ungroup    the reverse of regroup
//   permute    a dim viewed as `view`, its axes in `order`, flattened; before a join, of the first
//              tensor alone
//   reorder    adjacent `parts` of a dim in another order: part order[0] first. Without `parts` all
//              have one size
//   transpose  dims in `order`
//   cast       elements of `from_dtype` to `dtype`; undone by the cast back, which cannot restore
//              rounded values
//   add        `value` to every element in float32, rounded to the dtype; undone by taking it off,
//              which brings back nothing that was rounded off
//   pad        `dim` from `size` elements to `to`, with `value`; undone by cutting them off
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/maps/counter_pattern.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

struct MapOp {
  enum class Kind : std::uint8_t {
    kJoin,
    kSplit,
    kRegroup,
    kUngroup,
    kPermute,
    kTranspose,
    kPad,
    kReorder,
    kCast,
    kAdd
  };
  Kind kind = Kind::kJoin;
  std::int64_t dim = 0;
  std::string pieces = "1";             // an expression, as all sizes below
  std::vector<std::string> parts = {};  // of join, split, reorder; empty: equal parts
  std::vector<std::string> view = {};
  Extents order = {};
  std::string size = {}, to = {};
  double value = 0;                                             // of pad and add
  Dtype dtype = Dtype::kUnknown, from_dtype = Dtype::kUnknown;  // for cast
};

struct MapRow {
  std::vector<CounterPattern> from, to;
  std::vector<MapOp> ops = {};
  // Applies only if one of the `with` names exists, and none of `without`, on the side that is
  // read.
  std::vector<CounterPattern> from_with = {}, from_without = {}, to_with = {};
  std::vector<std::string> forms = {};        // that use this row when writing; empty: all
  std::vector<std::string> models = {};       // model_type values for which this row reads `to`
  std::vector<std::string> only_models = {};  // the same, also where it writes `to`; empty: all
};

// A tensor with two names on one side: ignored when that side is read, and created when it is
// written unless a row makes it.
struct MapCopy {
  CounterPattern tensor, of;
  std::string where = "1";   // an expression; 0: there is no copy
  std::string count = {};    // an expression: number of values of the counter in `tensor`
  CounterPattern with = {};  // a tensor that must be written too; empty: any
};

struct MapForms {
  std::vector<std::string> choices;            // the first is the default
  std::vector<std::string> second_where = {};  // keys of config.json that select the second choice
};

// Names under which a program stores optimizer states.
struct MapStates {
  std::string name = {};     // "optimizer.state.{state}.{name}"; empty: states cannot be stored
  std::string masters = {};  // the {state} of float32 master weights; empty: they cannot be stored
  // The same in other forms than the first; empty: that form stores none.
  std::map<std::string, std::string, std::less<>> masters_of_form = {};
  bool needs_masters = false;  // moments can only be loaded together with master weights
  // Further entries of a parameter, without which its optimizer does not load.
  std::string step = {};  // "optimizer.state.{name}.step": a float32 tensor of one number
  // Entries that tell the format's writer of a form: the number of steps is their value.
  std::map<std::string, std::string, std::less<>> entry_of_form = {};
  std::vector<std::string> entries = {};  // those of the forms that are written
  std::string settings = {};              // "optimizer.param_groups.{name}.{setting}"
  bool megatron_groups = false;  // biases and vectors are in a group of their own, without decay
  // Each makes a parameter, as the optimizer names it, of weights that are saved apart.
  std::vector<MapRow> parameters = {};
};

struct ModelMap {
  std::string name, title, from, to;
  std::map<std::string, std::vector<std::string>, std::less<>> values = {};
  std::map<std::string, std::string, std::less<>> below = {};
  std::vector<MapForms> forms = {};
  std::vector<std::string> from_prefixes = {}, to_prefixes = {};
  std::string written_prefix = {};  // before every name that is written on side `to`
  std::vector<std::string> from_left_out = {}, to_left_out = {};
  std::vector<MapCopy> from_copies = {}, to_copies = {};
  MapStates from_states = {}, to_states = {};
  std::vector<MapRow> rows = {};
};

std::string_view name(MapOp::Kind kind);

// kDamaged names the wrong row (from 1) and key. Unknown keys are errors.
Result<ModelMap> model_map_from_json(std::string_view json, const std::string& source);

}  // namespace shw
