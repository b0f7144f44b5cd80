// Writes opcodes of protocol 2 through a buffer. Only text and names are stored in the memo, when
// first written, and referred to later: this makes a .metadata half as long as torch's and fast to
// load.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/checked.h"
#include "core/base/result.h"
#include "core/io/sink.h"
#include "core/tensor/shape.h"

namespace shw {

// Names must outlive the writer; texts need not, because the paths of millions of chunks are
// created while writing. No two modules may share a name.
class PickleWriter {
 public:
  explicit PickleWriter(ByteSink& sink) : sink_(sink) { buffer_.reserve(kBuffer + 4096); }

  void raw(std::string_view opcodes) { buffer_.append(opcodes); }
  void text(std::string_view value) {
    if (auto found = texts_.find(value); found != texts_.end()) return get(found->second);
    texts_.emplace(kept_.emplace_back(value), next_);
    buffer_.push_back('X');
    number(static_cast<std::uint32_t>(value.size()));
    buffer_.append(value);
    put();
  }
  void global(std::string_view module, std::string_view name) {
    auto [found, added] = globals_.try_emplace(name, next_);
    if (!added) return get(found->second);
    buffer_.push_back('c');
    buffer_.append(module).push_back('\n');
    buffer_.append(name).push_back('\n');
    put();
  }
  // Writes an empty object; for an object with state `{(` ... `ub` follows.
  void object(std::string_view module, std::string_view name) {
    global(module, name);
    raw(")\x81");
  }
  void integer(std::int64_t value) {
    if (auto byte = narrow<std::uint8_t>(value)) {
      buffer_.push_back('K');
      number(*byte);
    } else if (auto word = narrow<std::uint16_t>(value)) {
      buffer_.push_back('M');
      number(*word);
    } else if (auto small = narrow<std::int32_t>(value)) {
      buffer_.push_back('J');
      number(*small);
    } else {
      raw("\x8a\x08");
      number(value);
    }
  }
  void size(ExtentsView extents) {
    global("torch", "Size");
    tuple(extents);
    raw("\x85R");
  }
  void tuple(ExtentsView extents) {
    if (extents.size() > 3) raw("(");
    for (std::int64_t extent : extents) integer(extent);
    constexpr std::string_view kClosing[] = {")", "\x85", "\x86", "\x87"};
    raw(extents.size() > 3 ? "t" : kClosing[extents.size()]);
  }
  // Call between items of a list or pairs of a dict, with the mark set: ends a batch after 1000
  // items. `closing` is u or e.
  void batch(std::uint64_t count, char closing) {
    if (count == 0 || count % 1000 != 0) return;
    buffer_.push_back(closing);
    buffer_.push_back('(');
  }
  // For raw opcodes that use memo numbers from this one on.
  std::uint32_t next_memo() const { return next_; }
  void skip_memo_numbers(std::uint32_t count) { next_ += count; }
  Status flush_if_full() { return buffer_.size() < kBuffer ? Status{} : flush(); }
  Status flush() {
    SHW_CHECK(sink_.write(std::as_bytes(std::span(buffer_))));
    buffer_.clear();
    return {};
  }

 private:
  static constexpr std::size_t kBuffer = std::size_t{1} << 20;

  template <class T>
  void number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    buffer_.append(bytes, sizeof(T));
  }
  void put() {
    if (next_ < 256) {
      buffer_.push_back('q');
      number(static_cast<std::uint8_t>(next_));
    } else {
      buffer_.push_back('r');
      number(next_);
    }
    ++next_;
  }
  void get(std::uint32_t index) {
    if (index < 256) {
      buffer_.push_back('h');
      number(static_cast<std::uint8_t>(index));
    } else {
      buffer_.push_back('j');
      number(index);
    }
  }

  ByteSink& sink_;
  std::string buffer_;
  std::deque<std::string> kept_;  // storage of the texts in texts_
  std::unordered_map<std::string_view, std::uint32_t> texts_, globals_;
  std::uint32_t next_ = 0;
};

}  // namespace shw
