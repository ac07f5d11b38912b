// Rows of elements beside those of their reference: codes are counted, made, listed and applied (FORMAT.md, section 10).
#pragma once
#include "codecs/referenced/ahead.h"
#include "codecs/referenced/delta.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr int waiting_in_list = 3 * lanes_per_row;  // a row, one more, and what `compress` writes behind it

// Appends lanes of rows, in memory of its own until they are a row.
template <class V, class Stored>
class ListWriter {
  using Scalar = typename V::scalar;

 public:
  ARRCOMP_METHOD ListWriter(Scalar* waiting, Stored* out) : waiting_(waiting), out_(out), have_(0) {}

  ARRCOMP_METHOD void add(V x, Mask lanes) {
    compress(waiting_ + have_, x, lanes);
    have_ += arrcomp::ARRCOMP_ISA::count(lanes);
    if (have_ < lanes_per_row) return;
    sync();
    const V row = load(waiting_), rest = load(waiting_ + lanes_per_row);
    sync();
    store(waiting_, rest);
    store(out_, row);
    out_ += lanes_per_row;
    have_ -= lanes_per_row;
    sync();
  }

  ARRCOMP_METHOD void finish() {
    sync();
    if (have_ > 0) store_first(out_, load(waiting_), have_);
  }

 private:
  Scalar* waiting_;
  Stored* out_;
  int have_;
};

// Gaps and the elements behind them.
ARRCOMP_INLINE U64 distances(const uint32_t* gaps, int n) {
  return join(load_row(gaps, n), splat<U32>(0)) + splat<U64>(1);
}
ARRCOMP_INLINE U64 distances(const uint64_t* gaps, int n) { return load_row(gaps, n) + splat<U64>(1); }

// The places of a row's elements.
ARRCOMP_INLINE void set_places(U32& places, uint64_t first) {
  places = lane_numbers() + splat<U32>(static_cast<uint32_t>(first));
}
ARRCOMP_INLINE void set_places(U64& places, uint64_t first) {
  places = join(lane_numbers(), splat<U32>(0)) + splat<U64>(first);
}

template <class T, class Delta>
class DeltaRows {
  using Word = typename Delta::Word;
  using Scalar = typename Word::scalar;

 public:
  using Stored = typename Delta::Stored;  // codes
  static constexpr bool are_bits = Delta::are_bits;

  // Memory for the four lists, of which Row is a row of places.
  template <class Row>
  struct Waiting {
    typename Row::scalar places[2][waiting_in_list];
    Scalar words[2][waiting_in_list];
  };

  ARRCOMP_METHOD explicit DeltaRows(const ReferenceJob& job) : job_(job), delta_(job) {}

  ARRCOMP_PART void count(uint64_t first, uint64_t elements, DeltaCounts& counts) const {
    for_each_row(first, elements, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      fetch_ahead_of(job_.source, i);
      Mask exact;
      add_to(counts, code(i, n, exact), exact, n);
    });
  }

  // The codes of these elements, from `codes` on.
  ARRCOMP_PART void codes(uint64_t first, uint64_t elements, void* codes) const {
    auto* const out = static_cast<Stored*>(codes);
    for_each_row(first, elements, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      Mask exact;
      store_row(out + (i - first), code(i, n, exact), n);
    });
  }

  // The same, and what `count` adds.
  ARRCOMP_PART void codes_and_count(uint64_t first, uint64_t elements, void* codes, DeltaCounts& counts) const {
    auto* const out = static_cast<Stored*>(codes);
    for_each_row(first, elements, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      fetch_ahead_of(job_.source, i);
      Mask exact;
      const Word own = code(i, n, exact);
      add_to(counts, own, exact, n);
      store_row(out + (i - first), own, n);
    });
  }

  // Lists the codes that are not 0, where there are places for them, and the exact elements.
  template <class Row>
  ARRCOMP_PART void list(uint64_t first, uint64_t elements, const DeltaLists& lists, Waiting<Row>& waiting) const {
    using Place = typename Row::scalar;
    ListWriter<Row, Place> places(waiting.places[0], static_cast<Place*>(lists.places));
    ListWriter<Row, Place> exact_places(waiting.places[1], static_cast<Place*>(lists.exact_places));
    ListWriter<Word, Stored> codes(waiting.words[0], static_cast<Stored*>(lists.codes));
    ListWriter<Word, typename T::storage> exact_elements(waiting.words[1],
                                                         static_cast<typename T::storage*>(lists.exact));
    const bool is_signed = delta_.is_signed(), lists_codes = lists.places != nullptr;
    for_each_row(first, elements, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      fetch_ahead_of(job_.source, i);
      fetch_ahead_of(job_.reference, i);
      Mask exact;
      const Mask own = first_lanes(n);
      const Word x = code(i, n, exact);
      const Mask changed = lists_codes ? ne(x, splat<Word>(0)) & own : mask(0);
      exact = exact & own;
      if (!any(changed | exact)) return;
      Row place;
      set_places(place, i);
      if (any(changed)) {
        places.add(place, changed);
        codes.add(listed_code(x, is_signed, static_cast<int>(sizeof(Stored)) * 8), changed);
      }
      if (any(exact)) {
        exact_places.add(place, exact);
        exact_elements.add(load_elements<T>(job_.source, i, n), exact);
      }
    });
    places.finish();
    codes.finish();
    exact_places.finish();
    exact_elements.finish();
  }

  // The elements of these codes, which stand from `codes` on. The target may be the reference.
  ARRCOMP_PART void apply(uint64_t first, uint64_t elements, const void* codes, void* target) const {
    for_each_row(first, elements, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      replace_elements<T>(target, i, n, element(i, n, codes, first));
    });
  }

  // The same, around the caches, to a target that is aligned to 16 bytes.
  ARRCOMP_PART void stream(uint64_t first, uint64_t elements, const void* codes, void* target) const {
    const uint64_t whole = elements / lanes_per_row * lanes_per_row;
    StreamedRows<typename T::storage> rows(const_cast<typename T::storage*>(element_pointer<T>(target, first)));
    for_each_row(first, whole, [&](uint64_t i, int n) ARRCOMP_LAMBDA { rows.add(element(i, n, codes, first)); });
    rows.finish();
    for_each_row(first + whole, elements - whole, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      store_elements<T>(target, i, n, element(i, n, codes, first));
    });
  }

  // The reference's elements, to a target that shares no memory with them.
  ARRCOMP_PART void copy(uint64_t first, uint64_t elements, void* target) const {
    for_each_row(first, elements, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      store_elements<T>(target, i, n, load_elements<T>(job_.reference, i, n));
    });
  }

  // Applies codes [begin, end) of a list; `place` is where the gap of the first one is counted from.
  template <class Gap>
  ARRCOMP_PART void put_codes(const Gap* gaps, uint64_t place, const void* codes, uint64_t begin, uint64_t end,
                              void* target) const {
    const auto* const reference = element_pointer<T>(job_.reference, 0);
    const bool is_signed = delta_.is_signed();
    put_rows(gaps, place, begin, end, target, [&](uint64_t i, int n, U64 places) ARRCOMP_LAMBDA {
      const Word stored = load_row(static_cast<const Stored*>(codes) + i, n);
      const Word code = code_of_list(stored, is_signed, static_cast<int>(sizeof(Stored)) * 8);
      return delta_.element(code, load_places(reference, places, n));
    });
  }

  // Exact elements [begin, end), in place of others.
  template <class Gap>
  ARRCOMP_PART static void put_exact(const Gap* gaps, uint64_t place, const void* exact, uint64_t begin, uint64_t end,
                                     void* target) {
    put_rows(gaps, place, begin, end, target,
             [&](uint64_t i, int n, U64) ARRCOMP_LAMBDA { return load_elements<T>(exact, i, n); });
  }

 private:
  // The reference needs none where it has just been hashed.
  ARRCOMP_METHOD static void fetch_ahead_of(const void* array, uint64_t row) {
    constexpr int row_bytes = lanes_per_row * sizeof(typename T::storage);
    fetch_ahead<row_bytes>(element_pointer<T>(array, row));
  }

  ARRCOMP_METHOD Word code(uint64_t i, int n, Mask& exact) const {
    return delta_.code(load_elements<T>(job_.source, i, n), load_elements<T>(job_.reference, i, n), exact);
  }

  ARRCOMP_METHOD Word element(uint64_t i, int n, const void* codes, uint64_t first) const {
    const Word code = load_row(static_cast<const Stored*>(codes) + (i - first), n);
    return delta_.element(code, load_elements<T>(job_.reference, i, n));
  }

  ARRCOMP_METHOD static void add_to(DeltaCounts& counts, Word code, Mask exact, int n) {
    const Mask own = first_lanes(n);
    counts.codes += static_cast<uint64_t>(arrcomp::ARRCOMP_ISA::count(ne(code, splat<Word>(0)) & own));
    counts.exact += static_cast<uint64_t>(arrcomp::ARRCOMP_ISA::count(exact & own));
  }

  // Stores elements(i, n, places) for rows of a list.
  template <class Gap, class Elements>
  ARRCOMP_METHOD static void put_rows(const Gap* gaps, uint64_t place, uint64_t begin, uint64_t end, void* target,
                                      Elements elements) {
    auto* const out = const_cast<typename T::storage*>(element_pointer<T>(target, 0));
    U64 before = splat<U64>(place);  // behind the element before
    for_each_row(begin, end - begin, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      const U64 behind = before + prefix_sum(distances(gaps + i, n));
      before = broadcast_last(behind);
      const U64 places = behind - splat<U64>(1);
      store_places(out, places, n, elements(i, n, places));
    });
  }

  const ReferenceJob& job_;
  const Delta delta_;
};

// The elements that gaps [begin, end) pass; more than `most` where they are more, or one of them is.
template <class Gap>
ARRCOMP_PART uint64_t passed(const Gap* gaps, uint64_t begin, uint64_t end, uint64_t most) {
  uint64_t sum = 0;
  for (uint64_t i = begin; i < end && sum <= most; i += lanes_per_row) {
    const int n = end - i < lanes_per_row ? static_cast<int>(end - i) : lanes_per_row;
    const U64 own = select(first_lanes(n), distances(gaps + i, n), splat<U64>(0));
    // Numbers up to 2^58, of which a row's sum does not wrap.
    if (most >= uint64_t{1} << 58 || any(lt(splat<U64>(most), own))) return most + 1;
    sum += or_all(broadcast_last(prefix_sum(own)));
  }
  return sum;
}

// Gaps [begin, end) of a list of places, from `gaps` on.
template <class Row, class Place>
ARRCOMP_PART void gaps_of(const Place* places, uint64_t begin, uint64_t end, Place* gaps) {
  using Scalar = typename Row::scalar;
  Row before = splat<Row>(begin > 0 ? places[begin - 1] : ~Scalar{0});
  for_each_row(begin, end - begin, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
    const Row own = load_row(places + i, n);
    store_row(gaps + (i - begin), own - shift_in(before, own) - splat<Row>(1), n);
    before = own;
  });
}

}  // namespace arrcomp::ARRCOMP_ISA
