// Reads the numbers and texts of a file's header sequentially, from the file in pieces.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/base/checked.h"
#include "core/base/little_endian.h"
#include "core/io/source.h"

namespace shw {

// After the first error every number is 0, and `error` gives the byte where the file ends.
class FileCursor {
 public:
  explicit FileCursor(const ByteSource& source) : source_(source) {}

  template <class T>
  T take() {
    const BytesView bytes = consume_bytes(sizeof(T));
    return bytes.empty() ? T{} : load_little<T>(bytes);
  }
  // Reads a text; longer ones than `most` bytes are an error.
  std::string consume_text(std::uint64_t most) {
    const auto length = take<std::uint64_t>();
    return text_of(length, most);
  }
  // Reads a text whose length is known.
  std::string text_of(std::uint64_t length, std::uint64_t most) {
    if (length > most) stop(ErrorKind::kDamaged, "a name is too long");
    const BytesView bytes = consume_bytes(ok() ? length : 0);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void skip(std::uint64_t count) {
    if (!ok()) return;
    if (count > left())
      stop_at_end(count);
    else
      at_ += count;
  }
  void stop(ErrorKind kind, std::string message) {
    if (ok()) error_ = Error{kind, std::move(message), {source_.name(), at_}};
  }
  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return source_.size() - at_; }
  bool ok() const { return !error_; }
  tl::unexpected<Error> error() const { return tl::unexpected<Error>(*error_); }

 private:
  static constexpr std::uint64_t kPiece = std::uint64_t{64} << 10;

  void stop_at_end(std::uint64_t count) {
    stop(ErrorKind::kDamaged, "the header is truncated: " + std::to_string(count) +
                                  " more bytes were expected and " + std::to_string(left()) +
                                  " are there");
  }
  BytesView consume_bytes(std::uint64_t count) {
    if (!ok() || count == 0) return {};
    if (count > left()) {
      stop_at_end(count);
      return {};
    }
    if (at_ < begin_ || at_ - begin_ > piece_.size() || count > piece_.size() - (at_ - begin_)) {
      auto read = read_bytes(source_, at_, std::min(left(), std::max(count, kPiece)));
      if (!read) {
        error_ = std::move(read).error();
        return {};
      }
      piece_ = std::move(*read);
      begin_ = at_;
    }
    const BytesView taken = BytesView(piece_).subspan(static_cast<std::size_t>(at_ - begin_),
                                                      static_cast<std::size_t>(count));
    at_ += count;
    return taken;
  }

  const ByteSource& source_;
  std::uint64_t at_ = 0, begin_ = 0;
  Bytes piece_;
  std::optional<Error> error_;
};

}  // namespace shw
