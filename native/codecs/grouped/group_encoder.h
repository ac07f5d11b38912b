// Encodes a group: each chunk is quantized (or split at its exponents), its mode is chosen, and its words are coded.
// Chunks and rows are coded in reverse, as rANS gives back last what was coded first. FORMAT.md, sections 3 and 4.
#pragma once
#include "codecs/grouped/chunk_values.h"
#include "codecs/packing.h"

namespace arrcomp::ARRCOMP_ISA {

// `chunk_limit`: chunks of a group, at most.
template <class T, int chunk_limit = most_chunks>
class GroupEncoder : ChunkValues<T, chunk_limit> {
  using Values = ChunkValues<T, chunk_limit>;
  using typename Values::Memory, typename Values::Scalar, typename Values::Word;
  using Values::context_, Values::memory_, Values::words_;
  using Values::element_bits, Values::start;
  using Values::exponent_shift_, Values::leaves_out_, Values::repeated_;
  using Values::rows_, Values::head_, Values::exceptions_, Values::live_, Values::coded_rows_;

 public:
  // `near`: only where words are split.
  ARRCOMP_METHOD GroupEncoder(const EncodeContext<T>& context, const void* array, Memory& memory,
                              NearMemory* near = nullptr)
      : Values(context, array, memory, near), near_(near) {}

  // Encodes `count` elements from `first` on; the bytes are then copied out by `copy_to`. Returns their number.
  ARRCOMP_PART uint32_t encode(uint64_t first, uint32_t count) {
    open(first, count, 1);
    for (uint32_t c = chunks_; c-- > 0;) {
      begin_chunk(uniform(c));  // what is made of it takes no register of its own from chunk to chunk
      do {
        start_attempt();
        encode_rows();
      } while (!is_done());
    }
    return bytes();
  }

  // The steps of encode, for several groups at once: `stride` groups on is the one that this encodes next. Where memory
  // is near, `side` may be where the group will stand, with room for as much as in the encoder's own memory.
  ARRCOMP_METHOD void open(uint64_t first, uint32_t count, uint32_t stride, uint8_t* side = nullptr) {
    if constexpr (keeps_rows) side_begin_ = side == nullptr ? memory_.side : side;
    side_ = side_begin();
    coded_ = memory_.words;
    has_states_ = false;
    group_first_ = first;
    group_count_ = uniform(count);
    stride_ = stride;
    chunks_ = (group_count_ + chunk_size - 1) / chunk_size;
  }

  ARRCOMP_METHOD uint32_t chunks() const { return chunks_; }

  // All of a chunk but its rows of symbols.
  ARRCOMP_PART void start_chunk(uint32_t c) {
    begin_chunk(c);
    do start_attempt();
    while (gave_up_ && !is_done());
  }

  // Whether the next rows to be coded are a tile, and still worth it.
  ARRCOMP_METHOD bool has_tile() const {
    return rows_left_ > 0 && rows_left_ % rows_per_tile == 0 && coded_bytes() <= limit_;
  }

  // Symbols of the rows that are left; then, where the chunk got too large, another attempt.
  ARRCOMP_PART void finish_chunk() {
    encode_rows();
    while (!is_done()) {
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
    if (out != side_begin()) copy_bytes(out, side_begin(), side_bytes());
    if (!has_states_) return;
    out += side_bytes();
    if (round_up_words() != word_count()) out = write_number(out, uint16_t{0});
    copy_bytes(out, reinterpret_cast<const uint8_t*>(memory_.words), word_count() * 2);
    store(reinterpret_cast<uint32_t*>(out + word_count() * 2), states_);
  }

  // Makes the encoder that of a row, where it has another table so far.
  ARRCOMP_METHOD void change_table(int row, int& table, SymbolEncoder& encoder) const {
    const int own = table_of(row);
    if (own == table) return;
    table = own;
    encoder = symbol_encoder(own);
  }
  ARRCOMP_METHOD SymbolEncoder symbol_encoder(int index) const {
    const EncodeTable& table = context_.tables->encode[index];
    if constexpr (splits_words<Word>) {
      sync();  // what was there before has been read
      copy_bytes(&near_->entries, &table.entries, sizeof near_->entries);
      sync();
      return SymbolEncoder(table, near_->entries);
    } else {
      return SymbolEncoder(table);
    }
  }
  ARRCOMP_METHOD Word symbols_of(int row) const {
    if constexpr (splits_words<Word>) {
      return words_.load(row) >> words_.low_bits_left(row / rows_per_tile, head_.shift);
    } else {
      return words_.load(row) >> head_.shift;
    }
  }

  U32 states_;
  uint16_t* coded_;  // behind the last of the coder's words
  int rows_left_;    // to be coded, of the chunk

 private:
  static constexpr uint32_t missing_side_bytes = 4 + sizeof(Scalar);
  static constexpr uint32_t least_bits = 64 * missing_side_bytes;  // with fewer there is little to gain

  static constexpr uint32_t least_gain_of_tiles = 256 * 32;  // in 1/256 bit

  // Quantized where a bound allows it, else without loss, else raw: the first that is small enough.
  enum class Attempt : uint8_t { quantized, lossless, raw };

  ARRCOMP_METHOD uint8_t* side_begin() const { return keeps_rows ? side_begin_ : memory_.side; }
  ARRCOMP_METHOD uint32_t side_bytes() const { return static_cast<uint32_t>(side_ - side_begin()); }
  ARRCOMP_METHOD uint32_t word_count() const { return static_cast<uint32_t>(coded_ - memory_.words); }
  ARRCOMP_METHOD uint32_t round_up_words() const { return (word_count() + 1) & ~1u; }

  ARRCOMP_METHOD int rows_of_tile(int tile) const {
    const int left = coded_rows_ - tile * rows_per_tile;
    return left < rows_per_tile ? left : rows_per_tile;
  }
  ARRCOMP_METHOD int table_of(int row) const {
    return head_.has_tables_of_tiles() ? memory_.tables[row / rows_per_tile] : head_.table;
  }

  ARRCOMP_METHOD void begin_chunk(uint32_t c) {
    const uint64_t first = group_first_ + uint64_t{c} * chunk_size;
    const uint32_t left = group_count_ - c * chunk_size;
    // What is read next: the chunk before, or the last chunk of the next group.
    const uint64_t last_of_next = group_first_ + uint64_t{stride_} * group_count_ + (chunks_ - 1) * chunk_size;
    this->open_chunk(first, left < chunk_size ? left : chunk_size, c > 0 ? first - chunk_size : last_of_next);
    attempt_ = T::quantizes && context_.bound > 0 ? Attempt::quantized : Attempt::lossless;
  }

  ARRCOMP_PART void start_attempt() {
    side_before_ = side_;
    coded_before_ = coded_;
    states_before_ = states_;
    had_states_ = has_states_;
    rows_left_ = 0;
    gave_up_ = false;
    this->leave_nothing_out();
    limit_ = raw_bytes();
    if (attempt_ == Attempt::raw) return write_raw();
    choose_values();
    if (gave_up_) return;
    if (attempt_ == Attempt::quantized) limit_ = lossless_bytes();
    if (head_.coder == Coder::entropy) {
      rows_left_ = coded_rows_;
      if (has_dry_rows()) encode_dry_rows();
    }
    write_side();
  }

  // A raw chunk has one width.
  ARRCOMP_METHOD uint32_t raw_bytes() const {
    const auto rows = static_cast<uint32_t>(rows_);
    return raw_chunk_bytes(rows, T::width) - bytes_of_tiles(rows);
  }

  // About what lossless coding takes: sign, mantissa and 2 bits of exponent.
  ARRCOMP_METHOD uint32_t lossless_bytes() const {
    const uint32_t bytes = static_cast<uint32_t>(rows_) * 4 * (context_.element.mantissa_bits + 3u);
    if (!leaves_out_) return bytes;
    const uint32_t with_mask = bytes + missing_side_bytes + memory_.missing.bits / 4;
    return with_mask < limit_ ? with_mask : limit_;
  }

  // Makes words of all elements, or of those that are left where equal ones are left out: what stands for no value, or
  // where too many are exceptions, or where it takes fewer bits.
  ARRCOMP_PART void choose_values() {
    bool is_settled = this->leave_out_fill();
    uint32_t bits_of_all = 0;
    for (;;) {
      make_values();
      if (is_settled) return;
      if (!leaves_out_) {
        const bool are_exceptions = exceptions_ >= least_missing;
        if (are_exceptions ? !this->leave_out_exceptions() : !leave_out_repeated()) return;
        bits_of_all = are_exceptions ? ~0u : bits_;
      } else {
        if (!gave_up_ && bits_ < bits_of_all) return;
        this->leave_nothing_out();
        is_settled = true;
      }
    }
  }

  ARRCOMP_METHOD bool leave_out_repeated() {
    return !gave_up_ && bits_ >= least_bits && repeated_ >= 0 &&
           this->leave_out(this->elements_of(0)[repeated_], least_missing);
  }

  ARRCOMP_PART void make_values() {
    gave_up_ = false;
    if (rows_ == 0) {  // all are left out
      this->start(Transform::integer);
      coded_rows_ = 0;
    } else {
      if constexpr (T::quantizes)
        if (attempt_ == Attempt::quantized) gave_up_ = !this->quantize();
      if (attempt_ == Attempt::lossless) this->load_lossless();
      if (!gave_up_) gave_up_ = !this->make_words();
    }
    if (gave_up_) return;
    bits_ = static_cast<uint32_t>(choose_coder()) + mask_bits();
  }

  ARRCOMP_METHOD uint32_t coded_bytes() const { return static_cast<uint32_t>(coded_ - coded_before_) * 2; }
  ARRCOMP_METHOD bool fits() const {
    return !gave_up_ && rows_left_ == 0 && static_cast<uint32_t>(side_ - side_before_) + coded_bytes() <= limit_;
  }

  // Whether the attempt is what the chunk is coded as. If not, it is undone, and the next is up.
  ARRCOMP_METHOD bool is_done() {
    if (fits()) return true;
    sync();  // it has been written where the next is
    side_ = side_before_;
    coded_ = coded_before_;
    states_ = states_before_;
    has_states_ = had_states_;
    attempt_ = attempt_ == Attempt::quantized ? Attempt::lossless : Attempt::raw;
    return false;
  }

  // ---- words to symbols ----

  // Returns the bits that the words take, as estimated.
  ARRCOMP_PART uint64_t choose_coder() {
    if (coded_rows_ == 0) return 0;
    head_.coder = Coder::packed;
    head_.shift = width_of_all();
    const uint64_t packed = packed_bits();
    if (context_.fast) return packed;
    const EntropyChoice choice = choose_entropy();
    // What states cost, and what they take, is a matter of all chunks.
    if (choice.bits + choice.in_states + (states_bytes * 8 - choice.in_states) / chunks_ >= packed) return packed;
    head_.coder = Coder::entropy;
    head_.shift = choice.shift;
    head_.table = choice.table;
    return choice.bits + (has_states_ ? 0 : states_bytes * 8 / chunks_);
  }

  // The bits that masks take.
  ARRCOMP_METHOD uint32_t mask_bits() const {
    uint32_t bits = 0;
    if (head_.mask == MaskKind::values) bits += this->bits_of_row_masks();
    if (head_.mask == MaskKind::marks) bits += memory_.missing.bits;
    if (leaves_out_) bits += missing_side_bytes * 8 + memory_.missing.bits;
    return bits;
  }

  struct EntropyChoice {
    int shift, table;    // or tables_of_tiles
    uint64_t bits;       // as estimated
    uint64_t in_states;  // others, which the group's initial states take
  };

  ARRCOMP_PART EntropyChoice choose_entropy() const {
    const bool exponent = head_.transform == Transform::exponent;
    int shift = exponent ? exponent_shift_ : 0;
    const Sample<Word> sample = words_.sample(coded_rows_, T::width > 16 ? shift : 0);
    if (!exponent) shift = choose_shift(sample, T::word_bits);
    EntropyChoice best{shift, 0, ~uint64_t{0}, 0};
    for (;;) {
      const EntropyChoice choice = sampled_choice(sample, shift);
      if (choice.bits < best.bits) best = choice;
      if (exponent || shift >= carried_bits || !can_carry()) break;
      shift = carried_bits;  // one low bit more may be worth what the states then save
    }
    // Exponents gain little by it.
    return !exponent && is_uneven(sample, best.shift) ? choose_tables_of_tiles(best.shift) : best;
  }

  // Each tile's own table, where these save more than they take; else the best for all rows.
  ARRCOMP_PART EntropyChoice choose_tables_of_tiles(int shift) const {
    const TableChoice tables = context_.tables->choice(false);
    Features all{0, {}};
    uint32_t bits_256 = 256 * 8 * bytes_of_tiles(static_cast<uint32_t>(coded_rows_));
    sync();  // tables of the chunk before have been read
    for (int t = 0; t < tiles_of(coded_rows_); ++t) {
      const Features features = features_of_tile(t, shift, tables.knots);
      const TableCost own = cheapest_table(tables, features);
      bits_256 += own.bits_256;
      all.add(features);
      if (leader()) memory_.tables[t] = static_cast<uint8_t>(own.table);
    }
    sync();
    const TableCost one = cheapest_table(tables, all);
    const bool saves = bits_256 + least_gain_of_tiles < one.bits_256;
    return entropy_choice(shift, saves ? TableCost{tables_of_tiles, bits_256} : one, all.samples);
  }

  ARRCOMP_PART Features features_of_tile(int tile, int shift, const uint32_t* knots) const {
    const int first = tile * rows_per_tile, rows = rows_of_tile(tile);
    FeatureSums sums(knots);
    ARRCOMP_ROLLED for (int r = first; r < first + rows; ++r) sums.add(words_.load(r) >> shift);
    return sums.of(rows);
  }

  ARRCOMP_PART EntropyChoice sampled_choice(const Sample<Word>& sample, int shift) const {
    const TableChoice tables = context_.tables->choice(head_.transform == Transform::exponent);
    const Features features = gather_features(sample, shift - sample.taken_off, tables.knots);
    return entropy_choice(shift, cheapest_table(tables, features), features.samples);
  }

  // `cost` is that of so many samples.
  ARRCOMP_METHOD EntropyChoice entropy_choice(int shift, const TableCost& cost, uint32_t samples) const {
    const uint64_t values = static_cast<uint64_t>(coded_rows_) * lanes_per_row;
    const uint64_t bits = values * cost.bits_256 / (256 * samples), in_states = bits_in_states(shift, bits);
    return {shift, cost.table, values * shift + bits - in_states, in_states};
  }

  // Of `bits` of symbols, above k raw ones, those that the group's initial states take.
  ARRCOMP_METHOD uint64_t bits_in_states(int k, uint64_t bits) const {
    if (has_states_) return 0;
    if (carries(k)) return carried_rows * carried_bits * lanes_per_row;
    constexpr uint64_t most = 14 * lanes_per_row;  // about what dry rows leave
    return head_.transform == Transform::exponent ? 0 : bits < most ? bits : most;
  }

  // The bits that packing takes.
  ARRCOMP_METHOD uint64_t packed_bits() const {
    if (head_.shift > 0) return static_cast<uint64_t>(coded_rows_) * lanes_per_row * head_.shift;
    uint64_t total = 0;
    for (int t = 0; t < tiles_of(coded_rows_); ++t)
      total += 8 + static_cast<uint64_t>(rows_of_tile(t)) * lanes_per_row * memory_.widths[t];
    return total;
  }

  // The width of all tiles, or 0 where they differ.
  ARRCOMP_METHOD int width_of_all() const {
    const int tiles = tiles_of(coded_rows_), width = memory_.widths[0];
    const U32 widths = load_first(memory_.widths, tiles);
    return any(ne(widths, splat<U32>(static_cast<uint32_t>(width))) & mask(low_mask(tiles))) ? 0 : width;
  }

  // ---- writing ----

  ARRCOMP_PART void write_side() {
    head_.has_exceptions = exceptions_ > 0;
    head_.has_missing = leaves_out_;
    side_ = head_.write(side_, T::word_bits);
    if (leaves_out_) write_missing();
    if (exceptions_ > 0) side_ = write_number(side_, static_cast<uint32_t>(exceptions_));
    if (head_.mask != MaskKind::none) write_mask();
    if (head_.coder == Coder::packed) write_packed();
    if (head_.has_tables_of_tiles()) write_bytes_of_tiles(memory_.tables);
    if (head_.coder == Coder::entropy) write_low_bits();
    if (exceptions_ > 0) write_exceptions();
  }

  ARRCOMP_METHOD void write_missing() {
    auto& missing = memory_.missing;
    const bool is_nan = context_.element.is_float() && missing.fill == usual_nan(context_.element);
    side_ = write_missing_head(side_, missing.head, is_nan);
    if (!is_nan) side_ = write_number(side_, missing.fill);
    write_marked();
  }

  ARRCOMP_METHOD void write_marked() {
    auto& missing = memory_.missing;
    if (missing.head.shift == shift_of_bits) {
      for (int r = 0; r * lanes_per_row < missing.count; ++r) side_ = write_number(side_, missing.masks[r]);
    } else if (missing.head.marks > 0) {
      side_ = write_marks(side_, &missing.head, missing.marks, missing.count, missing.upper);
    }
  }

  ARRCOMP_PART void write_mask() {
    if (head_.mask == MaskKind::marks) {
      side_ = write_missing_head(side_, memory_.missing.head, false);
      return write_marked();
    }
    side_ = write_number(side_, live_);
    if (head_.mask != MaskKind::values) return;
    for (int b = 0; b * rows_per_block < rows_; ++b) {
      if ((live_ >> b & 1) == 0) continue;
      for (int r = b * rows_per_block; r < (b + 1) * rows_per_block; ++r)
        side_ = write_number(side_, r < rows_ ? memory_.coded[r] : 0u);
    }
  }

  ARRCOMP_PART void write_packed() {
    if (head_.shift == 0) write_bytes_of_tiles(memory_.widths);
    BitWriter bits(side_);
    int r = 0;
    if constexpr (splits_words<Word>)
      ARRCOMP_ROLLED for (; r + rows_per_tile <= coded_rows_; r += rows_per_tile) {  // counted: pack, 8 rows
        const int tile = r / rows_per_tile, width = memory_.widths[tile];
        U32 u[rows_per_tile];
        words_.load_tile(tile, width > 16, u);
        if (T::width > 16 && width > 16) {
          bits.put_wide_tile(u, width);
        } else {
          bits.put_tile(u, width);
        }
      }
    for (; r < coded_rows_; ++r) bits.put(words_.load(r), memory_.widths[r / rows_per_tile]);
    side_ = bits.finish();
  }

  // `of_tiles`: their widths or tables.
  ARRCOMP_METHOD void write_bytes_of_tiles(const uint8_t* of_tiles) {
    const int tiles = tiles_of(coded_rows_);
    uint8_t* const bytes = side_;
    side_ += bytes_of_tiles(static_cast<uint32_t>(coded_rows_));
    if (leader())
      for (int t = 0; bytes + t < side_; ++t) bytes[t] = t < tiles ? of_tiles[t] : 0;
  }

  // Whether the chunk's last 8 rows can have two bits in the initial states: it is the first to be coded, of whole
  // tiles.
  ARRCOMP_METHOD bool can_carry() const { return !has_states_ && coded_rows_ % carried_rows == 0; }
  // And has, with k low bits.
  ARRCOMP_METHOD bool carries(int k) const { return k >= carried_bits && can_carry(); }

  // Where it has not, its last rows are coded without words, from states that are almost nothing. Exponents have no place
  // to say so.
  ARRCOMP_METHOD bool has_dry_rows() const {
    return !has_states_ && !carries(head_.shift) && head_.transform != Transform::exponent;
  }

  // As many of them as leave all states room; then the rest of a tile.
  ARRCOMP_PART void encode_dry_rows() {
    int table = -1;
    SymbolEncoder encoder;
    uint16_t* coded = coded_;
    U32 states = splat<U32>(first_dry_state);
    const auto fits = [&]() ARRCOMP_LAMBDA { return static_cast<uint32_t>(coded - coded_before_) * 2 <= limit_; };
    int r = rows_left_, dry = 0;
    for (; dry < most_dry && fits(); ++dry) {
      const int end = rows_left_ - dry_rows_of(dry + 1);
      uint16_t* own_words = coded;
      U32 own = states;
      int row = r;
      for (; row > end && row > 0; --row) {
        change_table(row - 1, table, encoder);
        if (!encode_dry_row(encoder, symbols_of(row - 1), own, own_words)) break;
      }
      if (row > end) break;
      r = row;
      coded = own_words;
      states = own;
    }
    sync();  // what follows is written over what did not fit
    states = states + splat<U32>(lowest_state);
    if (r > 0) change_table(r - 1, table, encoder);
    while (r % rows_per_tile != 0 && fits()) encode_row(encoder, symbols_of(--r), states, coded);
    head_.dry = dry;
    has_states_ = true;
    rows_left_ = r;
    coded_ = coded;
    states_ = states;
  }

  // The first chunk to be coded starts the group's states, with two bits of each of its last 8 rows in them.
  ARRCOMP_PART void write_low_bits() {
    const int k = head_.shift;
    const int own_rows = carries(k) ? coded_rows_ - carried_rows : coded_rows_;
    if (!has_states_) states_ = splat<U32>(lowest_state);
    has_states_ = true;
    BitWriter bits(side_);
    int r = 0;
    if constexpr (splits_words<Word>)
      if (k > 0) r = write_low_bits_of_tiles(bits, own_rows);
    if (k > 0)
      for (; r < own_rows; ++r) bits.put(words_.load(r) & ones<Word>(k), k);
    for (r = own_rows; r < coded_rows_; ++r) {
      const Word u = words_.load(r);
      if (k > carried_bits) bits.put((u & ones<Word>(k)) >> carried_bits, k - carried_bits);
      states_ = states_ | (lowest(u) & splat<U32>(3)) << carried_bits * (r - own_rows);
    }
    side_ = bits.finish();
  }

  // Returns the row behind those tiles.
  ARRCOMP_METHOD int write_low_bits_of_tiles(BitWriter& bits, int end) {
    const int k = head_.shift;
    const U32 mask = ones<U32>(k);
    int r = 0;
    ARRCOMP_ROLLED for (; r + rows_per_tile <= end; r += rows_per_tile) {  // counted: low bits, 8 rows
      const int tile = r / rows_per_tile;
      U32 u[rows_per_tile];
      words_.load_tile(tile, words_.is_wide(tile), u);
      words_.narrow_tile(r, u, k, memory_.widths[tile]);
      if (T::width > 16 && k > 16) {
        bits.put_wide_tile(u, k);
      } else {
        ARRCOMP_UNROLL for (U32& x : u) x = x & mask;
        bits.put_tile(u, k);
      }
    }
    return r;
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
        memcpy(values + e * sizeof(typename T::storage), this->elements_of(0) + memory_.positions[e],
               sizeof(typename T::storage));
      for (int b = bytes; b % 4 != 0; ++b) values[b] = 0;
    }
    sync();  // the positions have been read before another chunk has some
    side_ += padded * 2 + (bytes + 3) / 4 * 4;
  }

  // Symbols of the rows that are left, unless their words pass the limit.
  ARRCOMP_PART void encode_rows() {
    while (rows_left_ > 0) {
      const int last = rows_left_ - 1, end = head_.has_tables_of_tiles() ? last / rows_per_tile * rows_per_tile : 0;
      encode_rows_to(end, symbol_encoder(table_of(last)));
      if (rows_left_ > end) return;
    }
  }

  // Those of one table: down to row `end`, where a tile begins.
  ARRCOMP_METHOD void encode_rows_to(int end, const SymbolEncoder& encoder) {
    uint16_t* coded = coded_;  // copies, as registers
    U32 states = states_;
    int r = rows_left_;
    const auto fits = [&]() ARRCOMP_LAMBDA { return static_cast<uint32_t>(coded - coded_before_) * 2 <= limit_; };
    const auto encode_to = [&](int row) ARRCOMP_LAMBDA {
      do encode_row(encoder, symbols_of(--r), states, coded);
      while (r > row);
    };
    if (r % rows_per_tile != 0 && fits()) encode_to(r / rows_per_tile * rows_per_tile);
    const int first = end / rows_per_tile;
    ARRCOMP_ROLLED for (int tile = r / rows_per_tile - 1; tile >= first && fits(); --tile) {  // counted: rans, 8 rows
      if constexpr (splits_words<Word>)
        if (words_.is_simple(tile, head_.shift)) {
          r = tile * rows_per_tile;
          U32 u[rows_per_tile];
          words_.load_symbols(tile, head_.shift, u);
          encode_tile(encoder, u, states, coded);
          continue;
        }
      encode_to(tile * rows_per_tile);
    }
    rows_left_ = r;
    coded_ = coded;
    states_ = states;
  }

  ARRCOMP_PART void write_raw() {
    start(Transform::integer);
    head_.plain = true;
    head_.coder = Coder::packed;
    head_.shift = T::width;
    side_ = head_.write(side_, T::word_bits);
    BitWriter bits(side_);
    for (int r = 0; r < rows_; ++r) bits.put(element_bits(r), T::width);
    side_ = bits.finish();
  }

  // the group
  uint64_t group_first_;
  uint32_t group_count_, stride_, chunks_;
  uint8_t *side_begin_, *side_;
  bool has_states_;
  NearMemory* near_;

  // how the chunk is tried, and what was before
  Attempt attempt_;
  uint32_t limit_;  // bytes that it may take
  uint32_t bits_;   // that its words and masks take, as estimated
  uint8_t* side_before_;
  uint16_t* coded_before_;
  U32 states_before_;
  bool had_states_;
  bool gave_up_;  // before anything was written
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
  int tables[N];
  for (int& table : tables) table = -1;
  while (have_tiles()) {
    U32 states[N];
    uint16_t* words[N];
    for (int i = 0; i < N; ++i) {
      groups[i].change_table(groups[i].rows_left_ - 1, tables[i], encoders[i]);
      states[i] = groups[i].states_;
      words[i] = groups[i].coded_;
    }
    for (int j = 0; j < rows_per_tile; ++j)
      ARRCOMP_UNROLL for (int i = 0; i < N; ++i)
          encode_row(encoders[i], groups[i].symbols_of(--groups[i].rows_left_), states[i], words[i]);
    for (int i = 0; i < N; ++i) {
      groups[i].states_ = states[i];
      groups[i].coded_ = words[i];
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
