// The slow reference: tensors as lists of elements, and every step as loops over them. The engine
// is compared with it.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/tensor/cast.h"
#include "core/transform/named_entries.h"
#include "core/transform/steps.h"

namespace shw::test {

using Element = std::array<std::byte, 16>;

struct PlainTensor {
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  std::vector<Element> elements;  // row-major
  std::vector<bool> lost = {};
  std::vector<bool> out_of_range = {};  // the dtype of the cast could not represent its number
};
using PlainCheckpoint = std::map<std::string, PlainTensor>;

inline std::size_t index_in(const Extents& at, const Extents& shape) {
  std::size_t index = 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    index = index * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(at[d]);
  return index;
}

template <class Visit>
void each_coordinate(const Extents& sizes, Visit visit) {
  if (volume(sizes) == 0) return;
  Extents at(sizes.size(), 0);
  while (true) {
    visit(at);
    std::size_t d = sizes.size();
    while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

inline PlainTensor plain_like(const PlainTensor& tensor, Extents shape) {
  PlainTensor out{tensor.dtype, std::move(shape), {}};
  auto count = static_cast<std::size_t>(volume(out.shape).value_or(0));
  out.elements.resize(count);
  out.lost.resize(count, false);
  out.out_of_range.resize(count, false);
  return out;
}

// Copies every element of the new shape from where `origin` says.
template <class Origin>
PlainTensor gathered(const PlainTensor& tensor, Extents shape, Origin origin) {
  PlainTensor out = plain_like(tensor, std::move(shape));
  each_coordinate(out.shape, [&](const Extents& at) {
    std::size_t to = index_in(at, out.shape), from = index_in(origin(at), tensor.shape);
    out.elements[to] = tensor.elements[from];
    out.lost[to] = tensor.lost[from];
    out.out_of_range[to] = tensor.out_of_range[from];
  });
  return out;
}

inline Element cast_of(const Element& element, Dtype from, Dtype to) {
  if (from == to) return element;
  auto cast = cast_elements(from, std::span(element).first(size_of(from)), to);
  REQUIRE(cast.has_value());
  Element out{};
  std::copy(cast->begin(), cast->end(), out.begin());
  return out;
}

// The number half a step above the largest one. It is out of range, except in e4m3fn, whose largest
// number is even.
inline double end_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32:
      return 0x1.ffffffp127;
    case Dtype::kBfloat16:
      return 0x1.ffp127;
    case Dtype::kFloat16:
      return 65520;
    case Dtype::kFloat8E5m2:
      return 61440;
    default:
      return dtype == Dtype::kFloat8E4m3fn ? 464 : INFINITY;
  }
}
inline bool is_beyond(double value, Dtype to) {
  if (to == Dtype::kFloat8E4m3fn) return std::abs(value) > end_of(to);
  return std::isfinite(value) && std::abs(value) >= end_of(to);
}
inline bool is_lost_in_cast(const Element& element, Dtype from, Dtype to) {
  if (from == to) return false;
  const Element wide = cast_of(element, from, Dtype::kFloat64);
  double value = 0;
  std::memcpy(&value, wide.data(), sizeof value);
  // Every cast goes through float.
  return is_beyond(value, Dtype::kFloat32) ||
         is_beyond(static_cast<double>(static_cast<float>(value)), to);
}

inline Element element_of(Dtype dtype, double value) {
  auto constant = constant_of(dtype, value);
  REQUIRE(constant.has_value());
  Element out{};
  std::memcpy(out.data(), constant->bits.data(), sizeof constant->bits);
  return out;
}

struct PlainSteps {
  PlainCheckpoint& all;

  void operator()(const RelabelStep&) const { FAIL("not drawn"); }
  void operator()(const RetileStep&) const {}
  void operator()(const ReshardStep&) const {}
  void operator()(const RestoreStep&) const { FAIL("not drawn"); }
  void operator()(const CreateEntriesStep&) const { FAIL("not drawn"); }

  void operator()(const PermuteDimsStep& step) const {
    for (const std::string& fqn : step.tensors) {
      PlainTensor& tensor = all.at(fqn);
      Extents shape(tensor.shape.size());
      for (std::size_t d = 0; d < shape.size(); ++d)
        shape[d] = tensor.shape[static_cast<std::size_t>(step.order[d])];
      tensor = gathered(tensor, shape, [&](const Extents& at) {
        Extents from(at.size());
        for (std::size_t d = 0; d < at.size(); ++d)
          from[static_cast<std::size_t>(step.order[d])] = at[d];
        return from;
      });
    }
  }
  void operator()(const PermuteBlocksStep& step) const {
    for (const std::string& fqn : step.tensors) {
      PlainTensor& tensor = all.at(fqn);
      auto dim = static_cast<std::size_t>(step.dim);
      std::vector<std::int64_t> rows;  // of the new dim, where each came from
      Extents sizes = step.sizes;
      if (sizes.empty())
        sizes.assign(step.order.size(),
                     tensor.shape[dim] / static_cast<std::int64_t>(step.order.size()));
      for (std::int64_t block : step.order) {
        std::int64_t begin = 0;
        for (std::int64_t b = 0; b < block; ++b) begin += sizes[static_cast<std::size_t>(b)];
        for (std::int64_t i = 0; i < sizes[static_cast<std::size_t>(block)]; ++i)
          rows.push_back(begin + i);
      }
      tensor = gathered(tensor, tensor.shape, [&](Extents at) {
        at[dim] = rows[static_cast<std::size_t>(at[dim])];
        return at;
      });
    }
  }
  void operator()(const SplitStep& step) const {
    PlainTensor tensor = all.at(step.tensor);
    all.erase(step.tensor);
    auto dim = static_cast<std::size_t>(step.dim);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < step.into.size(); ++i) {
      Extents shape = tensor.shape;
      shape[dim] = step.sizes[i];
      PlainTensor part = gathered(tensor, shape, [&](Extents at) {
        at[dim] += begin;
        return at;
      });
      begin += step.sizes[i];
      if (step.drop_dim) part.shape.erase(part.shape.begin() + static_cast<std::ptrdiff_t>(dim));
      all[step.into[i]] = std::move(part);
    }
  }
  void operator()(const ConcatStep& step) const {
    auto dim = static_cast<std::size_t>(step.dim);
    std::vector<PlainTensor> parts;
    for (const std::string& fqn : step.tensors) {
      parts.push_back(all.at(fqn));
      if (step.new_dim) parts.back().shape.insert(parts.back().shape.begin() + step.dim, 1);
      all.erase(fqn);
    }
    Extents shape = parts.front().shape;
    shape[dim] = 0;
    for (const PlainTensor& part : parts) shape[dim] += part.shape[dim];
    PlainTensor out = plain_like(parts.front(), shape);
    std::int64_t begin = 0;
    for (const PlainTensor& part : parts) {
      each_coordinate(part.shape, [&](const Extents& at) {
        Extents to = at;
        to[dim] += begin;
        out.elements[index_in(to, shape)] = part.elements[index_in(at, part.shape)];
        out.lost[index_in(to, shape)] = part.lost[index_in(at, part.shape)];
        out.out_of_range[index_in(to, shape)] = part.out_of_range[index_in(at, part.shape)];
      });
      begin += part.shape[dim];
    }
    all[step.into] = std::move(out);
  }
  void operator()(const PadStep& step) const {
    for (const std::string& fqn : step.tensors) {
      PlainTensor& tensor = all.at(fqn);
      Extents shape = tensor.shape;
      for (std::size_t d = 0; d < shape.size(); ++d) shape[d] += step.before[d] + step.after[d];
      PlainTensor out = plain_like(tensor, shape);
      std::fill(out.elements.begin(), out.elements.end(), element_of(tensor.dtype, step.value));
      each_coordinate(tensor.shape, [&](const Extents& at) {
        Extents to = at;
        for (std::size_t d = 0; d < to.size(); ++d) to[d] += step.before[d];
        out.elements[index_in(to, shape)] = tensor.elements[index_in(at, tensor.shape)];
        out.lost[index_in(to, shape)] = tensor.lost[index_in(at, tensor.shape)];
        out.out_of_range[index_in(to, shape)] = tensor.out_of_range[index_in(at, tensor.shape)];
      });
      tensor = std::move(out);
    }
  }
  void operator()(const TrimStep& step) const {
    for (const std::string& fqn : step.tensors) {
      PlainTensor& tensor = all.at(fqn);
      tensor = gathered(tensor, step.keep.sizes, [&](Extents at) {
        for (std::size_t d = 0; d < at.size(); ++d) at[d] += step.keep.offsets[d];
        return at;
      });
    }
  }
  void operator()(const RenameStep& step) const {
    PlainTensor tensor = all.at(step.from);
    all.erase(step.from);
    all[step.to] = std::move(tensor);
  }
  void operator()(const CopyStep& step) const {
    PlainTensor tensor = all.at(step.from);
    all[step.to] = std::move(tensor);
  }
  void operator()(const DropStep& step) const {
    for (const std::string& fqn : step.tensors) all.erase(fqn);
  }
  void operator()(const CreateTensorsStep& step) const {
    for (const std::string& fqn : step.tensors) {
      PlainTensor out = plain_like({step.dtype, {}, {}}, step.shape);
      std::fill(out.elements.begin(), out.elements.end(), element_of(step.dtype, step.value));
      all[fqn] = std::move(out);
    }
  }
  void operator()(const CastStep& step) const {
    for (const std::string& fqn : step.tensors) {
      PlainTensor& tensor = all.at(fqn);
      for (std::size_t i = 0; i < tensor.elements.size(); ++i) {
        Element& element = tensor.elements[i];
        if (is_lost_in_cast(element, tensor.dtype, step.dtype)) tensor.out_of_range[i] = true;
        element = cast_of(element, tensor.dtype, step.dtype);
      }
      tensor.dtype = step.dtype;
    }
  }
  void operator()(const AddStep& step) const {
    for (const std::string& fqn : step.tensors) {
      PlainTensor& tensor = all.at(fqn);
      for (Element& element : tensor.elements) {
        Element wide = cast_of(element, tensor.dtype, Dtype::kFloat32);
        float value = 0;
        std::memcpy(&value, wide.data(), 4);
        value += static_cast<float>(step.value);
        std::memcpy(wide.data(), &value, 4);
        element = cast_of(wide, Dtype::kFloat32, tensor.dtype);
      }
    }
  }
  void operator()(const FillStep& step) const {
    REQUIRE(step.boxes.has_value());
    put_value(step.tensors, *step.boxes, step.value);
  }
  void operator()(const MaskStep& step) const { put_value(step.tensors, step.boxes, step.value); }
  void operator()(const DequantiseStep& step) const {
    for (const std::string& fqn : step.tensors) {
      PlainTensor& tensor = all.at(fqn);
      const PlainTensor& factors = all.at(fqn + step.suffix);
      each_coordinate(tensor.shape, [&](const Extents& at) {
        Extents cell = at;
        for (std::size_t d = 0; d < cell.size(); ++d) cell[d] /= step.block[d];
        float factor = 0, value = 0;
        std::memcpy(&factor, factors.elements[index_in(cell, factors.shape)].data(), 4);
        if (factors.lost[index_in(cell, factors.shape)])
          tensor.lost[index_in(at, tensor.shape)] = true;
        Element& element = tensor.elements[index_in(at, tensor.shape)];
        Element wide = cast_of(element, tensor.dtype, Dtype::kFloat32);
        std::memcpy(&value, wide.data(), 4);
        // For two NaNs a compiler may choose either; here the value's NaN counts, made quiet.
        const bool is_nan = std::isnan(value) || std::isnan(factor);
        const float product = std::isnan(value) ? value : is_nan ? factor : value * factor;
        std::memcpy(wide.data(), &product, 4);
        if (is_nan) wide[2] |= std::byte{0x40};
        if ((std::isfinite(value) && !std::isfinite(product)) ||
            is_lost_in_cast(wide, Dtype::kFloat32, step.dtype))
          tensor.out_of_range[index_in(at, tensor.shape)] = true;
        element = cast_of(wide, Dtype::kFloat32, step.dtype);
      });
      tensor.dtype = step.dtype;
      all.erase(fqn + step.suffix);
    }
  }

 private:
  void put_value(const Patterns& tensors, const std::vector<Box>& boxes, double value) const {
    for (const std::string& fqn : tensors) {
      PlainTensor& tensor = all.at(fqn);
      for (const Box& box : boxes) {
        each_coordinate(box.sizes, [&](Extents at) {
          for (std::size_t d = 0; d < at.size(); ++d) at[d] += box.offsets[d];
          tensor.elements[index_in(at, tensor.shape)] = element_of(tensor.dtype, value);
          tensor.lost[index_in(at, tensor.shape)] = true;
          tensor.out_of_range[index_in(at, tensor.shape)] = false;
        });
      }
    }
  }
};

}  // namespace shw::test
