#include "core/base/encoder.h"

#include <algorithm>
#include <cstring>

#include "core/base/little_endian.h"

namespace shw {

void Encoder::append(BytesView bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void Encoder::add(std::uint64_t number) {
  append(std::as_bytes(std::span(&number, 1)));
}

void Encoder::add(std::string_view text) {
  add(std::uint64_t{text.size()});
  append(std::as_bytes(std::span(text)));
}

void Encoder::add(const std::vector<std::uint64_t>& numbers) {
  add(std::uint64_t{numbers.size()});
  append(std::as_bytes(std::span(numbers)));
}

void Encoder::add(const Error& error) {
  add(static_cast<std::uint64_t>(error.kind));
  add(error.message);
  add(error.place.file);
  add(std::uint64_t{error.place.offset.has_value()});
  add(error.place.offset.value_or(0));
  add(error.place.tensor);
  add(error.advice);
}

Result<BytesView> Decoder::take(std::uint64_t length) {
  if (length > left_.size()) return fail(ErrorKind::kIo, "a message of another worker is cut off");
  BytesView taken = left_.first(static_cast<std::size_t>(length));
  left_ = left_.subspan(taken.size());
  return taken;
}

Result<std::uint64_t> Decoder::number() {
  SHW_TRY(BytesView bytes, take(sizeof(std::uint64_t)));
  return load_little<std::uint64_t>(bytes);
}

Result<std::string> Decoder::text() {
  SHW_TRY(std::uint64_t length, number());
  SHW_TRY(BytesView bytes, take(length));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<std::vector<std::uint64_t>> Decoder::numbers() {
  SHW_TRY(std::uint64_t count, number());
  if (count > left_.size() / sizeof(std::uint64_t))
    return fail(ErrorKind::kIo, "a message of another worker is cut off");
  SHW_TRY(BytesView bytes, take(count * sizeof(std::uint64_t)));
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(count));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

Result<Error> Decoder::error() {
  Error error;
  SHW_TRY(std::uint64_t kind, number());
  error.kind =
      static_cast<ErrorKind>(std::min(kind, static_cast<std::uint64_t>(ErrorKind::kCancelled)));
  SHW_TRY(error.message, text());
  SHW_TRY(error.place.file, text());
  SHW_TRY(std::uint64_t has_offset, number());
  SHW_TRY(std::uint64_t offset, number());
  if (has_offset != 0) error.place.offset = offset;
  SHW_TRY(error.place.tensor, text());
  SHW_TRY(error.advice, text());
  return error;
}

}  // namespace shw
