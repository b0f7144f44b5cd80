// How the tensors of one program's checkpoints are made of another's, as data (assets/maps/*.json).
//
//   {"schema": "shardwright-map/1", "name": "hf-megatron", "title": TEXT, "from": WORLD, "to":
//   WORLD,
//    "values": {NAME: [EXPRESSION, ...]},           the first that has a value counts
//    "below": {COUNTER: NAME},                      a counter of `from` is less than this value
//    "forms": [{"choices": [NAME, ...], "numbered_where": [config key, ...]}],
//    "prefixes": {"from": [TEXT], "to": [TEXT],     that may stand before every name
//                 "write": TEXT},                 that stands before those of `to` that are written
//    "leave_out": {"from": [SHELL PATTERN], "to": [SHELL PATTERN]},
//    "copies": {"from": [COPY], "to": [COPY]},      tied embeddings and their like
//    "states": {"from": STATES, "to": STATES},      where optimizer states are written
//    "rows": [{"from": [PATTERN], "to": [PATTERN], "do": [OPERATION, ...], ...}]}
//
// A row says how tensors `from` make tensors `to`. A counter that only `from` has is stacked: it
// becomes a leading dim. Text of `to` in brackets, "decoder.layers.[{l}.]mlp", makes two rows: one
// of the forms "numbered" and "singleton" with it, one of the form "stacked" without.
//
// Every operation can be undone:
//   join       several tensors -> one: each cut into `pieces` along `dim`; piece 0 of each, piece 1
//              of each, ... `parts`: their sizes, where they are not equal
//   split      the reverse of join
//   regroup    one tensor, its `parts` one after the other -> the parts joined by `pieces`
//   ungroup    the reverse of regroup
//   permute    a dim seen as `view`, its axes in `order`, flattened
//   reorder    `parts` of a dim, one after the other: part order[0] first. Without `parts` all are
//              of one size
//   transpose  dims in `order`
//   cast       elements of `from_dtype` to `dtype`; undone by the cast back, which brings back
//              nothing that was rounded off
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
    kCast
  };
  Kind kind = Kind::kJoin;
  std::int64_t dim = 0;
  std::string pieces = "1";             // an expression, as all sizes below
  std::vector<std::string> parts = {};  // of join, split, reorder: empty where they are equal
  std::vector<std::string> view = {};
  Extents order = {};
  std::string size = {}, to = {};
  double value = 0;
  Dtype dtype = Dtype::kUnknown, from_dtype = Dtype::kUnknown;  // of cast
};

struct MapRow {
  std::vector<CounterPattern> from, to;
  std::vector<MapOp> ops = {};
  // Names that must be there (one of them), or must not: on the side that is read.
  std::vector<CounterPattern> from_with = {}, from_without = {}, to_with = {};
  std::vector<std::string> forms = {};   // that are written by this row; empty: by all
  std::vector<std::string> models = {};  // model_type for which `to` is read by this row
};

// One tensor under two names on one side: left out where that side is read, made where it is
// written and no row made it.
struct MapCopy {
  CounterPattern tensor, of;
  std::string where = "1";   // an expression: 0 where there is no copy
  std::string count = {};    // of a counter that `tensor` has: an expression
  CounterPattern with = {};  // a tensor that is written beside it; empty: any
};

struct MapForms {
  std::vector<std::string> choices;            // the first is the default
  std::vector<std::string> second_where = {};  // keys of config.json that make it the second
};

// Where a program keeps optimizer states.
struct MapStates {
  std::string name = {};       // "optimizer.state.{state}.{name}"; empty: it has no place for them
  std::string masters = {};    // the {state} of float32 master weights; empty: no place for them
  bool needs_masters = false;  // moments are loaded together with master weights only
};

struct ModelMap {
  std::string name, title, from, to;
  std::map<std::string, std::vector<std::string>, std::less<>> values = {};
  std::map<std::string, std::string, std::less<>> below = {};
  std::vector<MapForms> forms = {};
  std::vector<std::string> from_prefixes = {}, to_prefixes = {};
  std::string written_prefix = {};  // before every name of `to` that is written
  std::vector<std::string> from_left_out = {}, to_left_out = {};
  std::vector<MapCopy> from_copies = {}, to_copies = {};
  MapStates from_states = {}, to_states = {};
  std::vector<MapRow> rows = {};
};

std::string_view name(MapOp::Kind kind);

// kDamaged names the row (from 1) and the key that is wrong. No key is passed over.
Result<ModelMap> model_map_from_json(std::string_view json, const std::string& source);

}  // namespace shw
