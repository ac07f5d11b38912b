// Leaves equal elements out of a chunk: which they are, how the mask of their places is coded, and the elements that
// stay. FORMAT.md, section 3.5.
#pragma once
#include "codecs/element_types.h"
#include "codecs/grouped/group_limits.h"
#include "codecs/grouped/missing.h"

namespace arrcomp::ARRCOMP_ISA {

// Writes marks; returns where they end. `upper` is memory for the upper parts.
ARRCOMP_CALLED uint8_t* write_marks(uint8_t* out, const MissingHead* its_head, const uint32_t* marks, int count,
                                    uint32_t* upper) {
  const MissingHead head = *its_head;
  const int bits_of_upper = upper_bits(head.marks, head.shift, count);
  for (int i = 0; i < bits_of_upper; i += lanes_per_row * 32) store(upper + i / 32, splat<U32>(0));
  sync();
  uint64_t waiting = 0;
  int have = 0;
  const auto put = [&](uint32_t bits, int n) ARRCOMP_LAMBDA {
    waiting |= uint64_t{bits} << have;
    have += n;
    if (have < 32) return;
    out = write_number(out, static_cast<uint32_t>(waiting));
    waiting >>= 32;
    have -= 32;
  };
  const auto each_row = [&](auto visit) ARRCOMP_LAMBDA {
    for (int first = 0; first < head.marks; first += lanes_per_row) {
      const int n = lanes_of_row(head.marks, first / lanes_per_row);
      visit(first, n, load_first(marks + first, n));
    }
  };
  for (int b = 0; b < head.shift; ++b)
    each_row([&](int, int n, U32 at)
                 ARRCOMP_LAMBDA { put(bits(ne(at & splat<U32>(1u << b), splat<U32>(0))) & low_mask(n), n); });
  each_row([&](int first, int n, U32 at) ARRCOMP_LAMBDA {
    set_bits(upper, (at >> head.shift) + lane_numbers() + splat<U32>(static_cast<uint32_t>(first)), mask(low_mask(n)));
  });
  sync();
  for (int i = 0; i < bits_of_upper; i += 32) put(upper[i / 32], bits_of_upper - i < 32 ? bits_of_upper - i : 32);
  if (have > 0) out = write_number(out, static_cast<uint32_t>(waiting));
  sync();  // all have read them
  return out;
}

// How the places of what is missing of `count` elements are marked, by masks of a word for each row.
class Marking {
 public:
  ARRCOMP_METHOD Marking(const uint32_t* masks, int count) : masks_(masks), count_(count) {}

  // The shortest way where `missing` are.
  ARRCOMP_METHOD MissingHead shortest(int missing) const {
    const int present = count_ - missing, fewer = present < missing ? present : missing, edges = count_edges();
    MissingHead head{};
    head.present = present;
    head.edges = edges < fewer;
    head.inverted = head.edges ? (masks_[0] & 1) != 0 : present < missing;
    head.marks = head.edges ? edges : fewer;
    head.shift = shift_of(head.marks);
    if (head.shift == shift_of_bits) {
      head.edges = head.inverted = false;
      head.marks = 0;
    }
    return head;
  }

  // The marks of that way.
  ARRCOMP_METHOD void list(const MissingHead& head, uint32_t* out) const {
    if (head.marks == 0) return;
    for (int r = 0; r < rows(); ++r) {
      const uint32_t missing = masks_[r], present = ~missing & lanes_of(r);
      const uint32_t own = head.edges ? edges_of(r) : head.inverted ? present : missing;
      out = compress(out, lane_numbers() + splat<U32>(static_cast<uint32_t>(r * lanes_per_row)), mask(own));
    }
    sync();
  }

 private:
  ARRCOMP_METHOD int rows() const { return (count_ + lanes_per_row - 1) / lanes_per_row; }
  ARRCOMP_METHOD uint32_t lanes_of(int row) const { return low_mask(lanes_of_row(count_, row)); }

  // Lanes of a row that differ from the element before: where missing elements begin or end.
  ARRCOMP_METHOD uint32_t edges_of(int row) const {
    const uint32_t own = masks_[row], before = row > 0 ? masks_[row - 1] >> 31 : own & 1;
    return (own ^ (own << 1 | before)) & lanes_of(row);
  }

  ARRCOMP_METHOD int count_edges() const {
    int edges = 0;
    for (int r = 0; r < rows(); ++r) edges += count(mask(edges_of(r)));
    return edges;
  }

  // As many low bits as makes the marks the shortest.
  ARRCOMP_METHOD int shift_of(int marks) const {
    int best_shift = shift_of_bits;
    uint32_t best = bits_of_marks(0, shift_of_bits, count_);
    for (int shift = 0; shift <= max_mark_shift; ++shift) {
      const uint32_t bits = bits_of_marks(marks, shift, count_);
      if (bits >= best) continue;
      best = bits;
      best_shift = shift;
    }
    return best_shift;
  }

  const uint32_t* masks_;
  int count_;
};

template <class T>
class LeftOut {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;
  using Memory = MissingMemory<Scalar>;

 public:
  // `waiting` is memory for two rows.
  ARRCOMP_METHOD LeftOut(Memory& memory, const ElementRange& chunk, Scalar* waiting)
      : memory_(memory), chunk_(chunk), waiting_(waiting) {}

  // Leaves out the elements whose bits are `fill`; returns how many stay, or -1 where fewer than `least` would go.
  ARRCOMP_PART int leave_out(Scalar fill, int least) {
    const int missing = find(fill);
    if (missing < least) return -1;
    gather_present();
    const Marking marking(memory_.masks, chunk_.count);
    const MissingHead head = marking.shortest(missing);
    marking.list(head, memory_.marks);
    if (leader()) {
      memory_.head = head;
      memory_.fill = fill;
      memory_.bits = bits_of_marks(head.marks, head.shift, chunk_.count);
      memory_.chunk = chunk_;
    }
    sync();
    return head.present;
  }

 private:
  ARRCOMP_METHOD int rows() const { return (chunk_.count + lanes_per_row - 1) / lanes_per_row; }
  ARRCOMP_METHOD int lanes_of(int row) const { return lanes_of_row(chunk_.count, row); }
  ARRCOMP_METHOD Word element_bits(int row) const {
    return load_elements<T>(chunk_.begin, static_cast<uint64_t>(row) * lanes_per_row, lanes_of(row));
  }
  ARRCOMP_METHOD uint32_t mask_of(int row) const { return memory_.masks[row]; }

  // The masks of the missing elements, and how many they are.
  ARRCOMP_METHOD int find(Scalar fill) {
    const Word same = splat<Word>(fill);
    int missing = 0;
    sync();  // what was there before has been read
    for (int r = 0; r < rows(); ++r) {
      const Mask own = eq(element_bits(r), same) & mask(low_mask(lanes_of(r)));
      const uint32_t all = bits(own);
      if (leader()) memory_.masks[r] = all;
      missing += count(own);
    }
    sync();
    return missing;
  }

  // The elements that stay, one after the other.
  ARRCOMP_METHOD void gather_present() {
    auto* out = reinterpret_cast<typename T::storage*>(memory_.elements);
    int have = 0;
    for (int r = 0; r < rows(); ++r) {
      const Mask present = mask(low_mask(lanes_of(r))) & ~mask(mask_of(r));
      compress(waiting_ + have, element_bits(r), present);
      have += count(present);
      if (have < lanes_per_row) continue;
      sync();
      store(out, load(waiting_));
      out += lanes_per_row;
      have -= lanes_per_row;
      const Word rest = load(waiting_ + lanes_per_row);
      sync();
      store(waiting_, rest);
      sync();
    }
    sync();
    store(out, load(waiting_));
    sync();
  }

  Memory& memory_;
  ElementRange chunk_;
  Scalar* waiting_;
};

// Marks the words of a masked chunk that are not coded: those of dead blocks, and those that `coded` has not, of `rows`
// rows. False, without marks, where these take not fewer bits than `below`.
template <class Scalar>
ARRCOMP_CALLED bool mark_masked(MissingMemory<Scalar>* memory, const uint32_t* coded, uint64_t live, int rows,
                                uint32_t below) {
  int missing = 0;
  sync();  // what was there before has been read
  for (int r = 0; r < rows; ++r) {
    const bool is_live = (live >> r / rows_per_block & 1) != 0;
    const uint32_t own = is_live ? ~coded[r] : ~0u;
    if (leader()) memory->masks[r] = own;
    missing += count(mask(own));
  }
  sync();
  const int positions = rows * lanes_per_row;
  const Marking marking(memory->masks, positions);
  const MissingHead head = marking.shortest(missing);
  const uint32_t bits = bits_of_marks(head.marks, head.shift, positions);
  // A bit for each place is what the mask has already; and these bits may be overwritten before they are stored.
  if (head.shift == shift_of_bits || bits >= below) return false;
  marking.list(head, memory->marks);
  if (leader()) {
    memory->head = head;
    memory->bits = bits;
    memory->chunk.count = positions;
  }
  sync();
  return true;
}

// LeftOut::leave_out.
template <class T>
ARRCOMP_CALLED int leave_out_elements(MissingMemory<typename T::Word::scalar>* memory, ElementRange chunk,
                                      typename T::Word::scalar* waiting, typename T::Word::scalar fill, int least) {
  return LeftOut<T>(*memory, chunk, waiting).leave_out(fill, least);
}

}  // namespace arrcomp::ARRCOMP_ISA
