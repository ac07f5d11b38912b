// Encodes a group: each chunk is quantized (or split at its exponents), its mode is chosen, and its words are coded.
// Chunks and rows are coded in reverse, as rANS gives back last what was coded first. FORMAT.md, sections 3 and 4.
#pragma once
#include "codecs/grouped/chunk_values.h"
#include "codecs/packing.h"

namespace arrcomp::ARRCOMP_ISA {

template <class T>
class GroupEncoder : ChunkValues<T> {
  using Values = ChunkValues<T>;
  using typename Values::Memory, typename Values::Scalar, typename Values::Word;
  using Values::context_, Values::array_, Values::memory_;
  using Values::element_bits, Values::row_of, Values::start;
  using Values::first_, Values::rows_, Values::head_, Values::exceptions_, Values::live_, Values::coded_rows_;

 public:
  ARRCOMP_METHOD GroupEncoder(const EncodeContext& context, const void* array, Memory& memory)
      : Values(context, array, memory) {}

  // Encodes `count` elements from `first` on (at most 4 chunks); the bytes are then copied out by `copy_to`. Returns
  // their number.
  ARRCOMP_PART uint32_t encode(uint64_t first, uint32_t count) {
    open(first, count, 1);
    for (uint32_t c = chunks_; c-- > 0;) {
      start_chunk(c);
      finish_chunk();
    }
    return bytes();
  }

  // The steps of encode, for several groups at once: `stride` groups on is the one that this encodes next.
  ARRCOMP_METHOD void open(uint64_t first, uint32_t count, uint32_t stride) {
    side_ = memory_.side;
    words_ = memory_.words;
    has_states_ = false;
    group_first_ = first;
    group_count_ = count;
    stride_ = stride;
    chunks_ = (count + chunk_size - 1) / chunk_size;
  }

  ARRCOMP_METHOD uint32_t chunks() const { return chunks_; }

  // All of a chunk but its rows of symbols.
  ARRCOMP_PART void start_chunk(uint32_t c) {
    const uint64_t first = group_first_ + uint64_t{c} * chunk_size;
    const uint32_t left = group_count_ - c * chunk_size;
    // What is read next: the chunk before, or the last chunk of the next group.
    const uint64_t last_of_next = group_first_ + uint64_t{stride_} * group_count_ + (chunks_ - 1) * chunk_size;
    this->open_chunk(first, left < chunk_size ? left : chunk_size, c > 0 ? first - chunk_size : last_of_next);
    attempt_ = T::quantizes && context_.bound > 0 ? Attempt::quantized : Attempt::lossless;
    start_attempt();
  }

  // Whether the next rows to be coded are a tile, and still worth it.
  ARRCOMP_METHOD bool has_tile() const {
    return rows_left_ > 0 && rows_left_ % rows_per_tile == 0 && word_bytes() <= limit_;
  }

  // Symbols of the rows that are left; then, where the chunk got too large, another attempt.
  ARRCOMP_PART void finish_chunk() {
    encode_rows();
    while (!fits()) {
      undo();
      attempt_ = attempt_ == Attempt::quantized ? Attempt::lossless : Attempt::raw;
      start_attempt();
      encode_rows();
    }
  }

  // The bytes of the group.
  ARRCOMP_METHOD uint32_t bytes() const {
    return side_bytes() + (has_states_ ? round_up_words() * 2 + states_bytes : 0);
  }

  ARRCOMP_PART void copy_to(uint8_t* out) const {
    sync();
    copy_bytes(out, memory_.side, side_bytes());
    if (!has_states_) return;
    out += side_bytes();
    if (round_up_words() != word_count()) out = write_number(out, uint16_t{0});
    copy_bytes(out, reinterpret_cast<const uint8_t*>(memory_.words), word_count() * 2);
    store(reinterpret_cast<uint32_t*>(out + word_count() * 2), states_);
  }

  ARRCOMP_METHOD SymbolEncoder symbol_encoder() const { return SymbolEncoder(context_.tables->encode[head_.table]); }
  ARRCOMP_METHOD Word symbols_of(int row) const { return load(row_of(row)) >> head_.shift; }

  U32 states_;
  uint16_t* words_;
  int rows_left_;  // to be coded, of the chunk

 private:
  // Quantized where a bound allows it, else without loss, else raw: the first that is small enough.
  enum class Attempt : uint8_t { quantized, lossless, raw };

  ARRCOMP_METHOD uint32_t side_bytes() const { return static_cast<uint32_t>(side_ - memory_.side); }
  ARRCOMP_METHOD uint32_t word_count() const { return static_cast<uint32_t>(words_ - memory_.words); }
  ARRCOMP_METHOD uint32_t round_up_words() const { return (word_count() + 1) & ~1u; }
  ARRCOMP_PART void start_attempt() {
    side_before_ = side_;
    words_before_ = words_;
    states_before_ = states_;
    had_states_ = has_states_;
    rows_left_ = 0;
    limit_ = raw_chunk_bytes(static_cast<uint32_t>(rows_), T::width);
    if (attempt_ == Attempt::raw) return write_raw();
    int bits = T::width;
    if constexpr (T::quantizes) {
      if (attempt_ == Attempt::quantized && this->quantize()) {
        // About what lossless coding takes: sign, mantissa and 2 bits of exponent.
        limit_ = static_cast<uint32_t>(rows_) * 4 * (context_.element.mantissa_bits + 3u);
        bits = T::word_bits;
      } else {
        attempt_ = Attempt::lossless;
      }
    }
    if (attempt_ == Attempt::lossless) this->load_lossless();
    write_values(bits);
  }

  ARRCOMP_METHOD uint32_t word_bytes() const { return static_cast<uint32_t>(words_ - words_before_) * 2; }
  ARRCOMP_METHOD bool fits() const {
    return rows_left_ == 0 && static_cast<uint32_t>(side_ - side_before_) + word_bytes() <= limit_;
  }

  ARRCOMP_METHOD void undo() {
    side_ = side_before_;
    words_ = words_before_;
    states_ = states_before_;
    has_states_ = had_states_;
  }

  // ---- words to symbols ----

  // Writes all of memory_.values but the symbols.
  ARRCOMP_PART void write_values(int bits) {
    this->make_words(bits);
    if (coded_rows_ > 0) choose_coder();
    write_side();
    if (head_.coder != Coder::entropy) return;
    rows_left_ = coded_rows_;
  }

  ARRCOMP_PART void choose_coder() {
    const uint64_t packed = choose_widths();
    head_.coder = Coder::packed;
    if (context_.fast) return;
    EntropyChoice choice;
    if (head_.transform == Transform::exponent) {
      choice = entropy_choice(context_.element.mantissa_bits + 1 - head_.drop);
    } else {
      choice = entropy_choice(choose_shift<Word>(memory_.values, coded_rows_, T::word_bits));
      if (choice.shift < carried_bits && can_carry()) {  // one low bit more may be worth what the states then save
        const EntropyChoice carrying = entropy_choice(carried_bits);
        if (carrying.bits < choice.bits) choice = carrying;
      }
    }
    if (choice.bits + states_bytes * 8 / chunks_ >= packed) return;
    head_.coder = Coder::entropy;
    head_.shift = choice.shift;
    head_.table = choice.table;
  }

  struct EntropyChoice {
    int shift, table;
    uint64_t bits;  // as estimated from the sample
  };

  ARRCOMP_PART EntropyChoice entropy_choice(int shift) {
    const TableChoice tables = context_.tables->choice(head_.transform == Transform::exponent);
    const Features features = gather_features<Word>(memory_.values, coded_rows_, shift, tables.knots);
    const TableCost cost = cheapest_table(tables, features);
    const uint64_t values = static_cast<uint64_t>(coded_rows_) * lanes_per_row;
    const uint64_t carried = shift >= carried_bits && can_carry() ? carried_rows * carried_bits * lanes_per_row : 0;
    return {shift, cost.table, values * shift + values * cost.bits_256 / (256 * features.samples) - carried};
  }

  // A width for each tile; returns the bits that packing takes.
  ARRCOMP_PART uint64_t choose_widths() {
    uint64_t total = 0;
    for (int r = 0; r < coded_rows_; r += rows_per_tile) {
      Word all = splat<Word>(0);
      const int end = r + rows_per_tile < coded_rows_ ? r + rows_per_tile : coded_rows_;
      for (int i = r; i < end; ++i) all = all | load(row_of(i));
      const int width = static_cast<int>(max_all(bit_length(all)));
      if (leader()) memory_.widths[r / rows_per_tile] = static_cast<uint8_t>(width);
      total += 8 + static_cast<uint64_t>(end - r) * lanes_per_row * width;
    }
    sync();
    return total;
  }

  // ---- writing ----

  ARRCOMP_PART void write_side() {
    head_.has_exceptions = exceptions_ > 0;
    side_ = head_.write(side_, T::word_bits);
    if (exceptions_ > 0) side_ = write_number(side_, static_cast<uint32_t>(exceptions_));
    if (head_.mask != MaskKind::none) write_mask();
    if (head_.coder == Coder::packed) write_packed();
    if (head_.coder == Coder::entropy) write_low_bits();
    if (exceptions_ > 0) write_exceptions();
  }

  ARRCOMP_PART void write_mask() {
    side_ = write_number(side_, live_);
    if (head_.mask != MaskKind::values) return;
    for (int b = 0; b * rows_per_block < rows_; ++b) {
      if ((live_ >> b & 1) == 0) continue;
      for (int r = b * rows_per_block; r < (b + 1) * rows_per_block; ++r)
        side_ = write_number(side_, r < rows_ ? memory_.coded[r] : 0u);
    }
  }

  ARRCOMP_PART void write_packed() {
    uint8_t* const widths = side_;
    const int tiles = (coded_rows_ + rows_per_tile - 1) / rows_per_tile;
    side_ += widths_bytes(static_cast<uint32_t>(coded_rows_));
    if (leader())
      for (int t = 0; widths + t < side_; ++t) widths[t] = t < tiles ? memory_.widths[t] : 0;
    BitWriter bits(side_);
    for (int r = 0; r < coded_rows_; ++r) bits.put(load(row_of(r)), memory_.widths[r / rows_per_tile]);
    side_ = bits.finish();
  }

  // Whether the chunk's last 8 rows can have two bits in the initial states: it is the first to be coded, of whole
  // tiles.
  ARRCOMP_METHOD bool can_carry() const { return !has_states_ && coded_rows_ % carried_rows == 0; }

  // The first chunk to be coded starts the group's states, with two bits of each of its last 8 rows in them.
  ARRCOMP_PART void write_low_bits() {
    const int k = head_.shift;
    const bool carries = can_carry() && k >= carried_bits;
    if (!has_states_) states_ = splat<U32>(lowest_state);
    has_states_ = true;
    const int own_rows = carries ? coded_rows_ - carried_rows : coded_rows_;
    BitWriter bits(side_);
    if (k > 0)
      for (int r = 0; r < own_rows; ++r) bits.put(load(row_of(r)) & ones<Word>(k), k);
    for (int r = own_rows; r < coded_rows_; ++r) {
      const Word u = load(row_of(r));
      if (k > carried_bits) bits.put((u & ones<Word>(k)) >> carried_bits, k - carried_bits);
      states_ = states_ | (lowest(u) & splat<U32>(3)) << carried_bits * (r - own_rows);
    }
    side_ = bits.finish();
  }

  ARRCOMP_PART void write_exceptions() {
    const int padded = exceptions_ + (exceptions_ & 1);
    const int bytes = exceptions_ * static_cast<int>(sizeof(typename T::storage));
    sync();
    if (leader()) {
      uint8_t* values = side_ + padded * 2;
      for (int e = 0; e < padded; ++e) {
        const uint16_t position = e < exceptions_ ? memory_.positions[e] : 0;
        memcpy(side_ + e * 2, &position, 2);
      }
      for (int e = 0; e < exceptions_; ++e)
        memcpy(values + e * sizeof(typename T::storage), element_pointer<T>(array_, first_ + memory_.positions[e]),
               sizeof(typename T::storage));
      for (int b = bytes; b % 4 != 0; ++b) values[b] = 0;
    }
    sync();  // the positions have been read before another chunk has some
    side_ += padded * 2 + (bytes + 3) / 4 * 4;
  }

  // Symbols of the rows that are left, unless their words pass the limit.
  ARRCOMP_PART void encode_rows() {
    if (rows_left_ == 0) return;
    const SymbolEncoder encoder = symbol_encoder();
    uint16_t* words = words_;  // copies, as registers
    U32 states = states_;
    int r = rows_left_;
    for (bool fits = word_bytes() <= limit_; r > 0 && fits;) {
      encode_row(encoder, symbols_of(--r), states, words);
      if (r % rows_per_tile == 0) fits = static_cast<uint32_t>(words - words_before_) * 2 <= limit_;
    }
    rows_left_ = r;
    words_ = words;
    states_ = states;
  }

  ARRCOMP_PART void write_raw() {
    sync();  // the widths of the chunk before have been read
    start(Transform::integer);
    head_.plain = true;
    head_.coder = Coder::packed;
    coded_rows_ = rows_;
    for (int r = 0; r < rows_; ++r) store(row_of(r), element_bits(r));
    if (leader())
      for (int t = 0; t < tiles_per_chunk; ++t) memory_.widths[t] = T::width;
    sync();
    write_side();
  }

  // the group
  uint64_t group_first_;
  uint32_t group_count_, stride_, chunks_;
  uint8_t* side_;
  bool has_states_;

  // how the chunk is tried, and what was before
  Attempt attempt_;
  uint32_t limit_;  // bytes that it may take
  uint8_t* side_before_;
  uint16_t* words_before_;
  U32 states_before_;
  bool had_states_;
};

// One tile of symbols of each of N groups, interleaved, as long as all have one.
template <class T, int N>
ARRCOMP_INLINE void encode_tiles(GroupEncoder<T> (&groups)[N]) {
  const auto have_tiles = [&]() ARRCOMP_LAMBDA {
    bool all = true;
    for (int i = 0; i < N; ++i) all = all && groups[i].has_tile();
    return all;
  };
  SymbolEncoder encoders[N];
  for (int i = 0; i < N; ++i) encoders[i] = groups[i].symbol_encoder();
  while (have_tiles()) {
    U32 states[N];
    uint16_t* words[N];
    for (int i = 0; i < N; ++i) {
      states[i] = groups[i].states_;
      words[i] = groups[i].words_;
    }
    for (int j = 0; j < rows_per_tile; ++j)
      ARRCOMP_UNROLL for (int i = 0; i < N; ++i)
          encode_row(encoders[i], groups[i].symbols_of(--groups[i].rows_left_), states[i], words[i]);
    for (int i = 0; i < N; ++i) {
      groups[i].states_ = states[i];
      groups[i].words_ = words[i];
    }
  }
}

// Encodes N opened groups of as many chunks.
template <class T, int N>
ARRCOMP_PART void encode_groups(GroupEncoder<T> (&groups)[N]) {
  for (uint32_t c = groups[0].chunks(); c-- > 0;) {
    for (int i = 0; i < N; ++i) groups[i].start_chunk(c);
    if constexpr (N > 1) encode_tiles<T, N>(groups);
    for (int i = 0; i < N; ++i) groups[i].finish_chunk();
  }
}

}  // namespace arrcomp::ARRCOMP_ISA
