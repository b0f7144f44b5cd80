#include "core/facts/values/optimizer_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/facts/values/value_pairs.h"
#include "core/facts/values/value_reader.h"

namespace shw {
namespace {

// beta1 = 0.9, beta2 = 0.999: the loosest bound among common settings.
constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
// Limits logarithms (two per element); this many give a correlation to three digits.
constexpr double kMaxCorrelated = 1 << 18;

std::uint64_t to_message_word(std::int64_t number) {
  return static_cast<std::uint64_t>(number);
}
std::uint64_t to_message_word(double number) {
  return std::bit_cast<std::uint64_t>(number);
}
std::int64_t count_in(std::uint64_t word) {
  return static_cast<std::int64_t>(word);
}
double double_from_bits(std::uint64_t word) {
  return std::bit_cast<double>(word);
}

std::vector<std::uint64_t> words_of(const MomentCount& c, const LogCorrelation& l) {
  return {to_message_word(c.looked_at), to_message_word(c.above),
          to_message_word(c.negative),  to_message_word(c.without_root),
          to_message_word(c.worst),     to_message_word(c.squares),
          to_message_word(c.seconds),   to_message_word(l.count),
          to_message_word(l.mean_x),    to_message_word(l.mean_y),
          to_message_word(l.xx),        to_message_word(l.yy),
          to_message_word(l.xy)};
}

bool merge_encoded_moments(std::span<const std::uint64_t> w, MomentCount& count,
                           LogCorrelation& correlation) {
  if (w.size() != 13) return false;
  count.join({count_in(w[0]), count_in(w[1]), count_in(w[2]), count_in(w[3]),
              double_from_bits(w[4]), double_from_bits(w[5]), double_from_bits(w[6])});
  correlation.join({count_in(w[7]), double_from_bits(w[8]), double_from_bits(w[9]),
                    double_from_bits(w[10]), double_from_bits(w[11]), double_from_bits(w[12])});
  return true;
}

class MomentCounter : public PairCounter {
 public:
  MomentCounter(const MomentValues& look, std::size_t stride) : look_(look), stride_(stride) {}

  void add(const PairPiece& piece) override {
    for (std::size_t at = 0; at < piece.count; at += kTogether) {
      const std::size_t n = std::min(kTogether, piece.count - at);
      to_doubles(piece.a_dtype, piece.a, at, {m_.data(), n});
      to_doubles(piece.b_dtype, piece.b, at, {v_.data(), n});
      for (std::size_t i = 0; i < n; ++i) count_.add(m_[i], v_[i], look_.constant, look_.slack);
      for (; next_ < n; next_ += stride_) correlation_.add(m_[next_], v_[next_]);
      next_ -= n;
    }
  }
  // Zeros count as examined but do not affect the correlation.
  void add_zeros(std::size_t count) override {
    count_.looked_at += static_cast<std::int64_t>(count);
    if (next_ < count) next_ += (count - next_ + stride_ - 1) / stride_ * stride_;
    next_ -= count;
  }
  std::vector<std::uint64_t> numbers() const override { return words_of(count_, correlation_); }

 private:
  static constexpr std::size_t kTogether = 2048;

  const MomentValues& look_;
  const std::size_t stride_;
  std::size_t next_ = 0;
  std::array<double, kTogether> m_{}, v_{};
  MomentCount count_;
  LogCorrelation correlation_;
};

template <NarrowFloat form>
void count_casts(const PairPiece& piece, CastCount& out) {
  for (std::size_t i = 0; i < piece.count; ++i) {
    float value = std::bit_cast<float>(bits_at<std::uint32_t>(piece.a, i));
    std::uint32_t code = bits_at<std::uint16_t>(piece.b, i);
    if (to_narrow<form>(value) == code || std::isnan(value)) continue;
    double saved = from_narrow<form>(code);
    // A saved zero equals a value that rounds to zero, whatever the sign.
    if (saved == 0 && to_narrow<form>(std::abs(value)) == 0) continue;
    ++out.differing;
    if (!(std::abs(saved - value) <= 0.25 * std::max(std::abs(saved), std::abs(double{value}))))
      ++out.far;
  }
  out.elements += static_cast<std::int64_t>(piece.count);
}

class CastCounter : public PairCounter {
 public:
  void add(const PairPiece& piece) override {
    if (piece.b_dtype == Dtype::kFloat16)
      count_casts<kFloat16Form>(piece, count_);
    else
      count_casts<kBfloat16Form>(piece, count_);
  }
  void add_zeros(std::size_t count) override {
    count_.elements += static_cast<std::int64_t>(count);
  }
  std::vector<std::uint64_t> numbers() const override {
    return {to_message_word(count_.elements), to_message_word(count_.differing),
            to_message_word(count_.far)};
  }

 private:
  CastCount count_;
};

std::vector<MomentValues> moments_to_read(const CheckInput& input,
                                          const OptimizerSettings& settings) {
  const Checkpoint& c = input.checkpoint;
  std::vector<MomentValues> looks;
  for (MomentPair& pair : moment_pairs(input)) {
    if (!has_comparable_values(input, pair.mean) || !has_comparable_values(input, pair.square))
      continue;
    MomentValues look;
    const SavedOptimizer* optimizer = find_optimizer(settings, pair.prefix);
    if (optimizer != nullptr) {
      look.betas = betas_of(*optimizer, pair.key);
      look.is_adams = look.betas && is_adams(*optimizer, pair.key);
    }
    look.constant = moment_constant(look.betas ? look.betas->first : kBeta1,
                                    look.betas ? look.betas->second : kBeta2);
    const bool narrow =
        c.dtype(pair.mean) == Dtype::kBfloat16 || c.dtype(pair.square) == Dtype::kBfloat16;
    look.slack = narrow ? 0.05 : 0.02;
    look.pair = std::move(pair);
    looks.push_back(std::move(look));
  }
  return looks;
}

std::vector<MasterValues> masters_to_read(const CheckInput& input) {
  const Checkpoint& c = input.checkpoint;
  std::vector<MasterValues> looks;
  for (const OptimizerState& state : each_state(input)) {
    if (state.role != StateRole::kMaster || !state.parameter || !state.is_parameter_certain)
      continue;
    const TensorId weight = *state.parameter;
    const Dtype narrow = c.dtype(weight);
    const bool is_cast = c.dtype(state.state) == Dtype::kFloat32 &&
                         (narrow == Dtype::kFloat16 || narrow == Dtype::kBfloat16);
    if (is_cast && same(c.shape(state.state), c.shape(weight)) &&
        has_comparable_values(input, state.state) && has_comparable_values(input, weight))
      looks.push_back({state.state, weight, false, {}});
  }
  return looks;
}

std::uint64_t elements_of(const Checkpoint& c, TensorId tensor) {
  return static_cast<std::uint64_t>(volume(c.shape(tensor)).value_or(0));
}

// Fraction of what could be examined. Sizes come from files, because shapes may be invented.
double fraction_of_values_to_read(const Checkpoint& c, std::span<const ValuePair> moments,
                                  std::span<const ValuePair> masters, std::uint64_t whole_up_to) {
  double bytes = 0;
  for (std::span<const ValuePair> pairs : {moments, masters}) {
    for (const ValuePair& pair : pairs)
      bytes += static_cast<double>(elements_of(c, pair.a)) *
               (size_of(c.dtype(pair.a)) + size_of(c.dtype(pair.b)));
  }
  std::uint64_t on_disk = 0;
  for (const FileRow& file : c.files()) on_disk += file.size / kSampleDivisor;
  const std::uint64_t most = std::max(whole_up_to, on_disk);
  return bytes <= static_cast<double>(most) ? 1 : static_cast<double>(most) / bytes;
}

Status malformed_message_error() {
  return fail(ErrorKind::kIo, "another process sent invalid data about optimizer states");
}

}  // namespace

void CastCount::join(const CastCount& other) {
  elements += other.elements;
  differing += other.differing;
  far += other.far;
}

Result<OptimizerValues> read_optimizer_values(const CheckInput& input,
                                              const OptimizerSettings& settings,
                                              std::uint64_t whole_up_to) {
  OptimizerValues out;
  const Checkpoint& c = input.checkpoint;
  if (input.depth != Depth::kData || c.directory() == nullptr) return out;
  out.moments = moments_to_read(input, settings);
  out.masters = masters_to_read(input);
  std::vector<ValuePair> moments, masters;
  for (const MomentValues& look : out.moments)
    moments.push_back({look.pair.mean, look.pair.square});
  for (const MasterValues& look : out.masters) masters.push_back({look.master, look.weight});
  const double share = fraction_of_values_to_read(c, moments, masters, whole_up_to);

  PairWork work{"look at moments", moments, share, {}, {}};
  work.counter = [&](std::size_t i) -> std::unique_ptr<PairCounter> {
    const double elements = static_cast<double>(elements_of(c, moments[i].a)) * share;
    // Odd, so that all columns of a matrix are visited.
    const auto stride = static_cast<std::size_t>(elements / kMaxCorrelated) | 1;
    return std::make_unique<MomentCounter>(out.moments[i], stride);
  };
  work.receive = [&](std::size_t i, std::span<const std::uint64_t> numbers) -> Status {
    MomentValues& look = out.moments[i];
    return merge_encoded_moments(numbers, look.count, look.correlation) ? Status{}
                                                                        : malformed_message_error();
  };
  SHW_TRY(PairResults seen, compare_pairs(input, work));
  for (std::size_t i = 0; i < moments.size(); ++i) out.moments[i].is_read = seen.is_read[i];

  PairWork casts{"look at masters", masters, share, {}, {}};
  casts.counter = [](std::size_t) { return std::make_unique<CastCounter>(); };
  casts.receive = [&](std::size_t i, std::span<const std::uint64_t> numbers) -> Status {
    if (numbers.size() != 3) return malformed_message_error();
    out.masters[i].count.join({count_in(numbers[0]), count_in(numbers[1]), count_in(numbers[2])});
    return {};
  };
  SHW_TRY(PairResults cast, compare_pairs(input, casts));
  for (std::size_t i = 0; i < masters.size(); ++i) out.masters[i].is_read = cast.is_read[i];
  out.elements = seen.elements + cast.elements;
  out.looked_at = seen.looked_at + cast.looked_at;
  return out;
}

}  // namespace shw
