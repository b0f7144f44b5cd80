// Compact storage of one result per chunk, for millions of chunks. Most results differ only in the
// place of their bytes and their checksum. The equal part is stored once; the rest is one small row
// per result.
//
// `Parts` says how a T is split:
//   struct Own                                  the plain values that differ per result
//   static Own take(T& value)                   moves them out; the remaining T is shared
//   static void put(T& value, const Own& own)   puts them back
//   static bool before(const T& a, const T& b)  a strict order of the shared parts
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace shw {

template <class T, class Parts>
class CompactResultsBuilder;

// Immutable; copies share the same storage.
template <class T, class Parts>
class CompactResults {
 public:
  CompactResults() = default;  // empty: no results were computed

  std::size_t size() const { return columns_ == nullptr ? 0 : columns_->rows.size(); }
  bool empty() const { return size() == 0; }
  // Rebuilds the result on each call.
  Result<T> operator[](std::size_t i) const {
    const Row& row = columns_->rows[i];
    if (row.shared == kFailed) return tl::unexpected<Error>(columns_->errors.at(i));
    T value = columns_->shared[row.shared];
    Parts::put(value, row.own);
    return value;
  }
  bool has_value(std::size_t i) const { return columns_->rows[i].shared != kFailed; }

 private:
  friend class CompactResultsBuilder<T, Parts>;
  static constexpr std::uint32_t kFailed = 0xFFFFFFFFu;
  struct Row {
    typename Parts::Own own{};
    std::uint32_t shared = 0;  // index in Columns::shared
  };
  struct Columns {
    std::vector<Row> rows;
    std::vector<T> shared;
    std::map<std::size_t, Error> errors;  // by index of the result
  };
  std::shared_ptr<const Columns> columns_;
};

// Collects the results; an index that is never set yields T{}.
template <class T, class Parts>
class CompactResultsBuilder {
 public:
  using Results = CompactResults<T, Parts>;

  explicit CompactResultsBuilder(std::size_t count) {
    columns_->rows.resize(count);
    columns_->shared.resize(1);
  }

  static Results of(std::vector<Result<T>> all) {
    CompactResultsBuilder builder(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) builder.set(i, std::move(all[i]));
    return builder.take();
  }

  // Thread-safe for different indices.
  void set(std::size_t i, Result<T> result) {
    typename Results::Row& row = columns_->rows[i];
    if (!result) {
      row.shared = Results::kFailed;
      std::lock_guard lock(guard_);
      columns_->errors.insert_or_assign(i, std::move(result).error());
      return;
    }
    row.own = Parts::take(*result);
    row.shared = shared_of(std::move(*result));
  }
  // Call after the last set().
  Results take() {
    Results results;
    results.columns_ = std::move(columns_);
    return results;
  }

 private:
  struct Before {
    bool operator()(const T& a, const T& b) const { return Parts::before(a, b); }
  };

  std::uint32_t shared_of(T value) {
    std::lock_guard lock(guard_);
    auto [found, is_new] =
        known_.try_emplace(std::move(value), static_cast<std::uint32_t>(columns_->shared.size()));
    if (is_new) columns_->shared.push_back(found->first);
    return found->second;
  }

  std::shared_ptr<typename Results::Columns> columns_ =
      std::make_shared<typename Results::Columns>();
  std::mutex guard_;
  std::map<T, std::uint32_t, Before> known_;
};

}  // namespace shw
