// Encodes a group: each chunk is quantized (or split at its exponents), its mode is chosen, and its words are coded.
// Chunks and rows are coded in reverse, as rANS gives back last what was coded first. FORMAT.md, sections 3 and 4.
//
// A chunk goes from class to class: elements to values (chunk_values.h), values to words (masked_words.h), how these are
// coded (coder_choice.h), what stands before their symbols (chunk_side.h), and these (row_encoder.h).
#pragma once
#include "codecs/grouped/row_encoder.h"

namespace arrcomp::ARRCOMP_ISA {

// `chunk_limit`: chunks of a group, at most.
template <class T, int chunk_limit = most_chunks>
class GroupEncoder : RowEncoder<T, chunk_limit> {
  using Rows = RowEncoder<T, chunk_limit>;
  using Rows::chunks_, Rows::chunks_left_, Rows::has_classes_, Rows::has_states_, Rows::side_bytes_;
  using Rows::coded_before_, Rows::coded_bytes, Rows::encode_rows, Rows::limit_;
  using Rows::context_, Rows::memory_;
  using Rows::has_dictionary_, Rows::index_bits_, Rows::multiples_, Rows::numbering_, Rows::count_;
  using Rows::has_dry_rows, Rows::bits_of_states;
  using Rows::leaves_out_, Rows::repeated_, Rows::rows_, Rows::head_, Rows::exceptions_, Rows::coded_rows_;
  using Rows::may_have_dictionary, Rows::no_numbers, Rows::places, Rows::ranks, Rows::side_begin;
  using typename Rows::Memory, typename Rows::Word;

 public:
  // `near`: only where words are split.
  ARRCOMP_METHOD GroupEncoder(const EncodeContext<T>& context, Memory& memory, NearMemory* near = nullptr)
      : Rows(context, memory, near) {}

  using Rows::change_table, Rows::symbols_of;
  using Rows::states_, Rows::coded_words_, Rows::rows_left_, Rows::coded_end, Rows::end_coded;
  using typename Rows::TableEncoder;

  // Encodes `count` elements from `first` on; the bytes are then copied out by `copy_to`. Returns their number.
  ARRCOMP_PART uint32_t encode(uint64_t first, uint32_t count) {
    open(first, count, 1);
    uint32_t c = chunks_;
    do {
      c = uniform(c - 1);  // what is made of it takes no register of its own from chunk to chunk
      begin_chunk(c);
      do {
        start_attempt();
        encode_rows();
      } while (uniform(!is_done()) != 0);
    } while (c > 0);
    return bytes();
  }

  // The steps of encode, for several groups at once: `stride` groups on is the one that this encodes next; `side` is
  // as in open_side.
  ARRCOMP_METHOD void open(uint64_t first, uint32_t count, uint32_t stride, uint8_t* side = nullptr) {
    this->open_side(side);
    coded_words_ = 0;
    if constexpr (may_have_dictionary) this->forget_dictionary();
    group_first_ = first;
    group_count_ = uniform(count);
    stride_ = stride;
    chunks_ = (group_count_ + chunk_size - 1) / chunk_size;
    this->look_for_wider_multiples(first, count);
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
    return rows_left_ > 0 && rows_left_ % rows_per_tile == 0 && coded_bytes() <= limit_ && !head_.has_classes();
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
    return side_bytes_ + (has_states_ ? round_up_words() * 2 + states_bytes : 0);
  }

  ARRCOMP_PART void copy_to(uint8_t* out) const {
    sync();
    if (out != side_begin()) copy_bytes(out, side_begin(), side_bytes_);
    if (!has_states_) return;
    out += side_bytes_;
    if (round_up_words() != coded_words_) out = write_number(out, uint16_t{0});
    copy_bytes(out, reinterpret_cast<const uint8_t*>(memory_.words), coded_words_ * 2);
    store(reinterpret_cast<uint32_t*>(out + coded_words_ * 2), states_);
  }

 private:
  static constexpr uint32_t least_bits = 64 * Rows::missing_side_bytes;  // with fewer there is little to gain
  static constexpr uint32_t least_gain_of_dictionaries = 128;  // of so many bits one: looking entries up takes time

  // Within a bound: by multiples that are wider than its steps, or quantized. Else without loss, else raw. The first that is
  // small enough.
  enum class Attempt : uint8_t { multiples, quantized, lossless, raw };

  ARRCOMP_METHOD uint32_t round_up_words() const { return (coded_words_ + 1) & ~1u; }

  ARRCOMP_METHOD void begin_chunk(uint32_t c) {
    const uint64_t first = group_first_ + uint64_t{c} * chunk_size;
    const uint32_t left = group_count_ - c * chunk_size;
    chunks_left_ = c + 1;
    // What is read next: the chunk before, or the last chunk of the next group.
    const uint64_t last_of_next = group_first_ + uint64_t{stride_} * group_count_ + (chunks_ - 1) * chunk_size;
    this->open_chunk(first, left < chunk_size ? left : chunk_size, c > 0 ? first - chunk_size : last_of_next);
    attempt_ = first_attempt();
  }

  ARRCOMP_PART void start_attempt() {
    side_before_ = side_bytes_;
    coded_before_ = coded_words_;
    states_before_ = states_;
    had_states_ = has_states_;
    had_dictionary_ = has_dictionary_;
    had_classes_ = has_classes_;
    rows_left_ = 0;
    gave_up_ = false;
    this->leave_nothing_out();
    limit_ = raw_bytes();
    if (attempt_ == Attempt::raw) return this->write_raw();
    choose_present();
    if constexpr (may_have_dictionary)
      if (attempt_ != Attempt::quantized && !gave_up_ && (multiples_ > 0 || index_bits_ > 0 || has_dictionary_))
        choose_numbers();
    if (Rows::may_have_wider_multiples && attempt_ == Attempt::multiples && !has_few_others()) gave_up_ = true;
    if (gave_up_) return;
    if (attempt_ == Attempt::quantized) limit_ = lossless_bytes();
    if (head_.has_contexts()) {
      gave_up_ = !this->encode_contexts();
      if (gave_up_) return;
    } else if (head_.coder == Coder::entropy) {
      rows_left_ = coded_rows_;
      if (has_dry_rows()) this->encode_dry_rows();
    }
    this->write_side();
  }

  ARRCOMP_METHOD Attempt first_attempt() const {
    if (!T::quantizes || !(context_.bound > 0)) return Attempt::lossless;
    if (!Rows::may_have_wider_multiples || context_.fast) return Attempt::quantized;
    return most_others() < 0 ? Attempt::quantized : Attempt::multiples;
  }
  // The chunk's.
  ARRCOMP_METHOD int most_others() const { return memory_.most_others[chunks_left_ - 1]; }
  // Once its elements have numbers.
  ARRCOMP_METHOD bool has_few_others() const {
    return this->has_numbers() && exceptions_ <= most_others() * rows_ / 128;
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
    const uint32_t with_mask = bytes + Rows::missing_side_bytes + memory_.missing.bits / 4;
    return with_mask < limit_ ? with_mask : limit_;
  }

  // Makes words of all elements, or of those that are left where equal ones are left out: what stands for no value, or
  // where too many are exceptions, or where it takes fewer bits.
  ARRCOMP_PART void choose_present() {
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

  // Numbers instead of elements, where these and what tells them take fewer bits: those of multiples, then places in a
  // dictionary, then their ranks, then what was best of all. A loop, as each round is long.
  ARRCOMP_PART void choose_numbers() {
    auto& memory = memory_.numbered;
    if (leader()) {
      memory.index_bits = static_cast<uint32_t>(count_ * index_bits_ / 16);
      memory.multiples = multiples_;
      memory.best = no_numbers;
      memory.may_be_places = index_bits_ > 0 || has_dictionary_;
      memory.left_out_before = leaves_out_;
    }
    sync();
    int made = no_numbers;
    uint32_t least = bits_;
    for (int way = 0; way < 4; ++way) {
      const bool tries = way < 3;
      int numbering = way == 0 ? memory.multiples : memory.best;
      if (way == 1) numbering = memory.may_be_places && find_dictionary_below(least) ? known_places() : no_numbers;
      if (way == 2) numbering = made == places && find_ranks_below(least) ? ranks : no_numbers;
      if (!tries && made < no_numbers && numbering >= no_numbers) give_up_on_dictionary();
      if (numbering == (tries ? no_numbers : made)) continue;
      made = numbering;
      gave_up_ = !use_numbers(numbering);
      if (!gave_up_) make_values();
      if (!tries) break;
      if (!gave_up_) bits_ += bits_beside_words();
      const uint32_t gain = way == 0 ? 0 : bits_ / least_gain_of_dictionaries;
      if (!gave_up_ && bits_ + gain < least) {
        sync();  // the best before has been read
        if (leader()) memory.best = numbering;
        sync();
        least = bits_;
      } else if (way == 0 && memory.best == no_numbers && !memory.left_out_before) {
        this->leave_nothing_out();
      }
    }
    bits_ = least;
  }

  // Leaves out equal elements that have no number.
  ARRCOMP_METHOD bool use_numbers(int numbering) {
    for (bool first = true;; first = false) {
      const bool are_few_exceptions = this->use(numbering);
      if (!first || exceptions_ < least_missing || leaves_out_) return are_few_exceptions;
      this->leave_out_exceptions();
    }
  }

  ARRCOMP_METHOD uint32_t bits_beside_words() const {
    const bool has_own_entries = numbering_ < no_numbers && !has_dictionary_;
    const int entries = has_own_entries ? memory_.dictionary.entries : 0;
    const int units = numbering_ == integer_multiples ? 2 * T::word_bits : 0;
    return static_cast<uint32_t>(entries * T::width + units + exceptions_ * (16 + T::width));
  }

  // Whether there is a dictionary that may pay where all else takes so many bits.
  ARRCOMP_PART bool find_dictionary_below(uint32_t& bits) {
    const uint32_t index_bits = memory_.numbered.index_bits;
    if constexpr (T::width == 8)
      if (index_bits > 0) raise_to_counted(bits, 0);
    if (memory_.dictionary.is_hopeless) return false;
    const uint32_t beside_indices =
        T::width == 8 && !context_.fast ? bits_beside_entropy() : 0;  // else in `index_bits`
    if (bits <= index_bits + beside_indices + least_bits) {
      if (T::width == 8 && index_bits >= 4u * chunk_size) give_up_on_dictionary();
      return false;
    }
    const uint32_t entries_that_pay = index_bits > 0 ? (bits - index_bits) / T::width : 0;
    const DictionaryFound found = this->find_own_dictionary(group_first_, entries_that_pay);
    if (found == DictionaryFound::other) {
      has_dictionary_ = had_dictionary_ = false;
      if constexpr (T::width == 8) rank_entries<T>(&memory_.dictionary);
    }
    return found != DictionaryFound::none;
  }

  // Where a chunk gains nothing, the others of its group do not look for a dictionary either: that takes as long as much of
  // the rest.
  ARRCOMP_METHOD void give_up_on_dictionary() {
    if (!has_dictionary_) give_dictionary_up(memory_.dictionary, count_);
  }

  // Entries that are written stay in their order.
  ARRCOMP_METHOD int known_places() const {
    return T::width == 8 || (has_dictionary_ && memory_.dictionary.is_ranked) ? ranks : places;
  }

  // Raises `bits` to what the chunk's words and `others` take by how often each place is counted, or each byte of the
  // sample: frequencies in no order are not what a sample's features were made for, and the estimate may be far too low.
  // Words that depend on those before, or on where they are, stay as they are estimated.
  ARRCOMP_METHOD void raise_to_counted(uint32_t& bits, uint32_t others) {
    const bool has_memory = head_.difference || head_.mask != MaskKind::none || !head_.has_static_table();
    if (has_memory || head_.transform == Transform::exponent) return;
    const PlacesCode code{&context_.tables->encode[head_.table], head_.shift, static_cast<uint32_t>(head_.base),
                          head_.plain, T::width == 8 ? 8 : 32};
    const uint32_t counted = bits_of_places<T>(&memory_.dictionary, code, count_) + others;
    if (counted > bits) bits = counted;
  }

  // About what the coder takes beyond the entropy of elements in no order.
  ARRCOMP_METHOD uint32_t bits_beside_entropy() const { return static_cast<uint32_t>(count_) / 8 + bits_of_states(); }

  // Whether the places that the chunk has may take fewer bits than `least` as ranks; these are found then.
  ARRCOMP_PART bool find_ranks_below(uint32_t& least) {
    if (gave_up_ || has_dictionary_ || context_.fast) return false;
    const uint32_t entropy = this->entropy_of_places();
    if (memory_.numbered.best == places) raise_to_counted(least, bits_beside_words() + bits_of_states());
    // By classes, places take about as many. But ranks are decoded faster, and suit chunks that share them and have none.
    if (memory_.numbered.best == places && head_.has_classes()) least += least / 16;
    if (entropy + bits_beside_words() + bits_beside_entropy() >= least) return false;
    rank_entries<T>(&memory_.dictionary);
    return true;
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
      if (attempt_ != Attempt::quantized) this->load_lossless();
      if (!gave_up_) gave_up_ = !this->make_words();
    }
    if (gave_up_) return;
    bits_ = this->choose_coder() + this->mask_bits();
    this->choose_classes_below(bits_);
    this->choose_contexts_below(bits_);
  }

  ARRCOMP_METHOD bool fits() const {
    return !gave_up_ && rows_left_ == 0 && side_bytes_ - side_before_ + coded_bytes() <= limit_;
  }

  // Whether the attempt is what the chunk is coded as. If not, it is undone, and the next is up.
  ARRCOMP_METHOD bool is_done() {
    if (fits()) return true;
    sync();  // it has been written where the next is
    side_bytes_ = side_before_;
    coded_words_ = coded_before_;
    states_ = states_before_;
    has_states_ = had_states_;
    has_dictionary_ = had_dictionary_;
    has_classes_ = had_classes_ && !(head_.has_classes() && memory_.classes.is_own);
    attempt_ = static_cast<Attempt>(static_cast<uint8_t>(attempt_) + 1);
    return false;
  }

  // the group
  uint64_t group_first_;
  uint32_t group_count_, stride_;

  // how the chunk is tried, and what was before
  Attempt attempt_;
  uint32_t bits_;  // that its words and masks take, as estimated
  uint32_t side_before_;
  U32 states_before_;
  bool had_states_, had_dictionary_, had_classes_;
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
  typename GroupEncoder<T>::TableEncoder encoders[N];
  while (have_tiles()) {
    U32 states[N];
    uint16_t* words[N];
    for (int i = 0; i < N; ++i) {
      groups[i].change_table(groups[i].rows_left_ - 1, encoders[i]);
      states[i] = groups[i].states_;
      words[i] = groups[i].coded_end();
    }
    for (int j = 0; j < rows_per_tile; ++j)
      ARRCOMP_UNROLL for (int i = 0; i < N; ++i)
          encode_row(encoders[i].encoder, groups[i].symbols_of(--groups[i].rows_left_), states[i], words[i]);
    for (int i = 0; i < N; ++i) {
      groups[i].states_ = states[i];
      groups[i].end_coded(words[i]);
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
