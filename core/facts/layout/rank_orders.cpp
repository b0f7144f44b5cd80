#include "core/facts/layout/rank_orders.h"

#include <algorithm>
#include <set>

#include "core/facts/layout/spec_layout.h"

namespace shw {
namespace {

constexpr std::size_t kMaxAxes = 5;  // with more than one rank: 120 orders

const MeshAxis* find_axis(const Mesh& mesh, std::string_view name) {
  auto found = std::find_if(mesh.axes.begin(), mesh.axes.end(),
                            [&](const MeshAxis& axis) { return axis.name == name; });
  return found == mesh.axes.end() ? nullptr : &*found;
}

// The spec's mesh with the user's sizes; nullopt if an axis is not given.
std::optional<Mesh> spec_mesh_with_given_sizes(const Mesh& of_spec, const Mesh& given) {
  Mesh out = of_spec;
  for (MeshAxis& axis : out.axes) {
    const MeshAxis* other = find_axis(given, axis.name);
    if (other == nullptr && axis.size > 1) return std::nullopt;
    if (other != nullptr) axis.size = other->size;
  }
  return out;
}

// `order` with the axes of `of_spec` sorted as in `of_spec`.
Mesh sort_axes_as_in(const Mesh& of_spec, const Mesh& order) {
  Mesh out = order;
  std::vector<MeshAxis> known;
  for (const MeshAxis& axis : of_spec.axes) {
    if (const MeshAxis* found = find_axis(order, axis.name)) known.push_back(*found);
  }
  auto next = known.begin();
  for (MeshAxis& axis : out.axes) {
    if (find_axis(of_spec, axis.name) != nullptr) axis = *next++;
  }
  return out;
}

// The orders to test on one mesh of the spec.
struct OrderQuestion {
  Mesh of_spec;
  Mesh saved;                 // the same axes with the user's sizes
  std::vector<Mesh> orders;   // the believed order, the spec's if different, then all others
  std::vector<RankMap> maps;  // one per order
  bool reordered = false;     // the spec's order differs from the believed one
  bool supported = false;     // a tensor matches the believed order and not the spec's
  bool proved = false;        // no other split order matches either
  std::size_t last = 1;       // the order that the previous tensor matched
  RankOrderMismatch found = {};
};

OrderQuestion make_order_question(const Mesh& of_spec, Mesh saved, const Mesh& believed) {
  OrderQuestion out{of_spec, std::move(saved), {}, {}};
  Mesh order{axes_longer_than_one(believed)};
  Mesh own = sort_axes_as_in(of_spec, order);
  out.reordered = own != order;
  out.orders.push_back(order);
  if (out.reordered) out.orders.push_back(own);
  auto by_name = [](const MeshAxis& a, const MeshAxis& b) { return a.name < b.name; };
  std::sort(order.axes.begin(), order.axes.end(), by_name);
  do {
    if (order.axes.size() > kMaxAxes) break;
    if (std::find(out.orders.begin(), out.orders.end(), order) == out.orders.end())
      out.orders.push_back(order);
  } while (std::next_permutation(order.axes.begin(), order.axes.end(), by_name));
  for (const Mesh& each : out.orders)
    out.maps.push_back(RankMap::from_saving_mesh(each, out.saved));
  out.found = {of_spec, believed, {}, {}, false};
  return out;
}

// A tensor split by several ranks, on the mesh of a question.
struct CutTensor {
  const Checkpoint& checkpoint;
  TensorId tensor{};
  SpecEntry entry;                       // on the mesh that saved it
  std::vector<std::size_t> cuts;         // axes in the split order of the placements
  bool has_two_axes_on_one_dim = false;  // two axes split one dimension

  bool matches_split(const RankMap& ranks, std::span<const std::size_t> order) const;
  bool matches_split(const RankMap& ranks) const { return matches_split(ranks, cuts); }
  bool matches_any_split_order(const RankMap& ranks) const;
};

bool CutTensor::matches_split(const RankMap& ranks, std::span<const std::size_t> order) const {
  SplitLayout cutter(entry, order);
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    if (volume(checkpoint.sizes(chunk)) == 0) continue;
    auto writer = checkpoint.writer(chunk);
    auto rank = writer ? ranks.rank_of_writer(*writer) : std::nullopt;
    if (!rank || !cutter.produces_box(*rank, checkpoint.offsets(chunk), checkpoint.sizes(chunk)))
      return false;
  }
  return true;
}

bool CutTensor::matches_any_split_order(const RankMap& ranks) const {
  std::vector<std::size_t> order = cuts;
  std::sort(order.begin(), order.end());
  do {
    if (matches_split(ranks, order)) return true;
  } while (has_two_axes_on_one_dim && order.size() <= kMaxAxes &&
           std::next_permutation(order.begin(), order.end()));
  return false;
}

bool is_cut_by_several(const Checkpoint& c, TensorId tensor) {
  if (c.chunks(tensor).size() < 2 || !c.writers_are_owners(tensor)) return false;
  std::optional<std::uint32_t> first;
  for (ChunkId chunk : c.chunks(tensor)) {
    if (volume(c.sizes(chunk)) == 0) continue;
    auto writer = c.writer(chunk);
    if (!writer) return false;
    if (first && *writer != *first) return true;
    first = writer;
  }
  return false;
}

std::optional<CutTensor> split_tensor_of_spec(const Checkpoint& c, TensorId tensor,
                                              const SpecEntry& entry, const Mesh& saved) {
  auto order = split_axis_order(entry);
  if (!order) return std::nullopt;
  CutTensor out{c, tensor, entry, {}};
  out.entry.mesh = saved;
  std::set<std::size_t> dims;
  for (std::size_t axis : *order) {
    auto dim = sharded_dim_of(entry.placements[axis], entry.shape.size());
    if (!dim || saved.axes[axis].size < 2) continue;
    out.cuts.push_back(axis);
    out.has_two_axes_on_one_dim = !dims.insert(*dim).second || out.has_two_axes_on_one_dim;
  }
  return out;
}

void add_tensor_vote(const CutTensor& tensor, OrderQuestion& question) {
  if (tensor.matches_split(question.maps[0])) {
    if (!question.reordered) return;
    question.supported = question.supported || !tensor.matches_split(question.maps[1]);
    question.proved = question.proved || !tensor.matches_any_split_order(question.maps[1]);
    return;
  }
  if (tensor.has_two_axes_on_one_dim && !question.reordered) return;
  auto matches_order = [&](std::size_t order) {
    if (!tensor.matches_split(question.maps[order])) return false;
    if (question.found.tensors.empty()) question.found.instead = question.orders[order];
    question.found.tensors.push_back(tensor.tensor);
    question.last = order;
    return true;
  };
  // Fast path: thousands of tensors match the same order.
  if (question.last < question.maps.size() && matches_order(question.last)) return;
  for (std::size_t order = 1; order < question.maps.size(); ++order) {
    if (order != question.last && matches_order(order)) return;
  }
  question.proved =
      question.proved || (question.reordered && tensor.matches_any_split_order(question.maps[0]) &&
                          !tensor.matches_any_split_order(question.maps[1]));
}

// Collects the orders that match all tensors that distinguish orders.
class RankOrderVotes {
 public:
  explicit RankOrderVotes(const OrderQuestion& question)
      : question_(question), fits_(question.orders.size(), true) {}

  void add_vote(const CutTensor& tensor) {
    std::vector<bool> lies;
    for (const RankMap& ranks : question_.maps) lies.push_back(tensor.matches_split(ranks));
    const auto by = std::count(lies.begin(), lies.end(), true);
    if (by == 0 || by == std::ssize(lies)) return;
    ++count_;
    for (std::size_t i = 0; i < lies.size(); ++i) fits_[i] = fits_[i] && lies[i];
  }
  // A single tensor is not enough evidence, because it may be the damaged one.
  std::optional<Mesh> order_of_all_votes() const {
    if (count_ < 2 || std::count(fits_.begin(), fits_.end(), true) != 1) return std::nullopt;
    const auto found = std::find(fits_.begin(), fits_.end(), true) - fits_.begin();
    return question_.orders[static_cast<std::size_t>(found)];
  }

 private:
  const OrderQuestion& question_;
  std::vector<bool> fits_;  // one per order
  std::size_t count_ = 0;
};

// The questions for all meshes of a spec, without duplicates.
class OrderQuestions {
 public:
  explicit OrderQuestions(const CheckInput& input) : input_(input) {}

  // Returns at most two questions: with the spec's sizes, and with the user's.
  std::vector<std::size_t> questions_for_mesh(const Mesh& of_spec) {
    auto known = std::find_if(known_.begin(), known_.end(),
                              [&](const auto& one) { return one.first == of_spec; });
    if (known != known_.end()) return known->second;
    std::vector<std::size_t> out;
    auto saved = input_.mesh ? spec_mesh_with_given_sizes(of_spec, *input_.mesh) : std::nullopt;
    if (saved) {
      out.push_back(all.size());
      all.push_back(make_order_question(of_spec, *saved, *input_.mesh));
    }
    if (saved != of_spec && of_spec.size() >= input_.ranks) {
      out.push_back(all.size());
      all.push_back(make_order_question(of_spec, of_spec, of_spec));
    }
    known_.emplace_back(of_spec, out);
    return out;
  }

  std::vector<OrderQuestion> all;

 private:
  const CheckInput& input_;
  std::vector<std::pair<Mesh, std::vector<std::size_t>>> known_;
};

// Calls `ask` for every tensor split by several ranks and each of its questions.
template <class Ask>
void each_cut_tensor(const CheckInput& input, OrderQuestions& questions, Ask ask) {
  const Checkpoint& c = input.checkpoint;
  for (TensorId tensor : each_tensor(input)) {
    const SpecEntry* entry = layout_of(input, c.fqn(tensor));
    if (entry == nullptr) continue;
    const auto asked = questions.questions_for_mesh(*entry->mesh);
    if (!same(entry->shape, c.shape(tensor)) || !is_cut_by_several(c, tensor)) continue;
    for (std::size_t i : asked) {
      auto cut = split_tensor_of_spec(c, tensor, *entry, questions.all[i].saved);
      if (cut) ask(*cut, i);
    }
  }
}

bool matches_spec_order(const OrderQuestion& question) {
  return !question.reordered && question.saved == question.of_spec;
}

void add_all_votes(const CheckInput& input, OrderQuestions& questions) {
  std::vector<std::optional<RankOrderVotes>> voices;
  for (const OrderQuestion& question : questions.all) {
    const bool is_asked = matches_spec_order(question) && !question.found.tensors.empty();
    voices.push_back(is_asked ? std::optional<RankOrderVotes>(question) : std::nullopt);
  }
  if (std::none_of(voices.begin(), voices.end(), [](const auto& one) { return one.has_value(); }))
    return;
  each_cut_tensor(input, questions, [&](const CutTensor& tensor, std::size_t i) {
    if (voices[i]) voices[i]->add_vote(tensor);
  });
  for (std::size_t i = 0; i < voices.size(); ++i) {
    if (voices[i]) questions.all[i].found.proved = voices[i]->order_of_all_votes();
  }
}

}  // namespace

RankOrders find_rank_orders(const CheckInput& input) {
  RankOrders out;
  if (input.spec == nullptr) return out;
  OrderQuestions questions(input);
  each_cut_tensor(input, questions, [&](const CutTensor& tensor, std::size_t i) {
    add_tensor_vote(tensor, questions.all[i]);
  });
  add_all_votes(input, questions);
  for (OrderQuestion& question : questions.all) {
    question.found.is_contradicted_by_others = question.supported;
    if (!question.found.tensors.empty())
      out.contradicted.push_back(std::move(question.found));
    else if (question.reordered && !question.proved)
      out.undecided.push_back(std::move(question.of_spec));
  }
  return out;
}

}  // namespace shw
