// Reassembles a tensor from boxes of tensors that were converted wrongly.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/hash.h"
#include "core/maps/loaded_tensor.h"

namespace shw {

// A box of tensor number `source` that belongs at offset `at`.
struct BoxMove {
  std::size_t source = 0;
  Extents from, sizes, at;
};

// True if the box in `from` has the elements of `was` at its new place.
bool is_equal_after_move(const BoxMove& move, const LoadedTensor& from, const LoadedTensor& was);

class RowPlaces {
 public:
  // Tensors are numbered from 0.
  void add(std::size_t number, const LoadedTensor& tensor);
  // Moves that build `was`. `is` is the current content of tensor `own`. Each matrix is built from
  // its own rows or columns, otherwise from rows of all tensors. Found by hashes; nullopt if a row
  // is missing.
  std::optional<std::vector<BoxMove>> reassembled(std::size_t own, const LoadedTensor& is,
                                                  const LoadedTensor& was) const;

 private:
  struct Place {
    std::size_t tensor = 0, row = 0;
  };
  struct HashOfKey {
    std::size_t operator()(const Hash128& hash) const { return static_cast<std::size_t>(hash.low); }
  };

  std::optional<std::vector<BoxMove>> of_rows(const LoadedTensor& was, std::size_t first_row,
                                              std::size_t count) const;
  std::optional<std::vector<BoxMove>> of_elements(const LoadedTensor& was) const;

  std::unordered_map<Hash128, Place, HashOfKey> rows_;
  std::vector<Extents> shapes_;
  std::vector<std::pair<std::size_t, LoadedTensor>> lines_;  // tensors with one dim
  std::size_t line_elements_ = 0;
};

}  // namespace shw
