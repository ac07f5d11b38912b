// Chunks of few different bytes. The place of a byte is the byte itself, so that nothing is searched; entries are in the
// order of their ranks alone, as bytes have their own order without a dictionary. FORMAT.md, section 3.6.
#pragma once
#include "codecs/grouped/dictionary_order.h"

namespace arrcomp::ARRCOMP_ISA {

template <class T>
class ByteDictionary {
  using Memory = DictionaryMemory<typename T::Word::scalar>;

 public:
  ARRCOMP_METHOD ByteDictionary(Memory& memory, const Element&)
      : memory_(memory), counts_(memory), entries_(memory.entries) {}

  ARRCOMP_METHOD int entries() const { return entries_; }

  // Whether all of these are entries: others have later ranks.
  ARRCOMP_PART bool has(const ElementRange& bytes) const {
    return visit_rows<T>(bytes, [&](int, U32 byte) ARRCOMP_LAMBDA {
      return !any(ge(gather(memory_.ranks, byte), splat<U32>(static_cast<uint32_t>(entries_))));
    });
  }

  ARRCOMP_METHOD void clear() {
    counts_.clear();
    entries_ = 0;
  }

  // Counts them; false where there are more than `most` entries then.
  ARRCOMP_PART bool add(const ElementRange& bytes, int most) {
    counts_.add(element_pointer<T>(bytes.begin, 0), bytes.count);
    entries_ = counts_.different();
    return entries_ <= most;
  }

  // What is counted now is it later, unless others that come are too many.
  ARRCOMP_METHOD void save() {
    copy_counts(memory_.kept, memory_.counts);
    kept_ = entries_;
    sync();  // others count there next
  }
  ARRCOMP_METHOD void restore() {
    sync();  // the counts have been read
    copy_counts(memory_.counts, memory_.kept);
    entries_ = kept_;
    sync();
  }

  // Writes the indices of elements.
  ARRCOMP_PART void index(const ElementRange& bytes, typename T::storage* out) const {
    visit_rows<T>(bytes, [&](int row, U32 byte) ARRCOMP_LAMBDA {
      store(out + row * lanes_per_row, gather(memory_.ranks, byte));
      return true;
    });
    sync();
  }

  ARRCOMP_PART void write(typename T::storage* out) const {
    for (int i = 0; i < entries_; i += lanes_per_row)
      store_row(out + i, load(memory_.by_rank + i), lanes_of_row(entries_, i / lanes_per_row));
  }

 private:
  ARRCOMP_METHOD static void copy_counts(uint32_t* to, const uint32_t* from) {
    for (int i = 0; i < EntryRanks<T>::all_bytes; i += lanes_per_row) store(to + i, load(from + i));
  }

  Memory& memory_;
  EntryRanks<T> counts_;
  int entries_, kept_ = 0;
};

}  // namespace arrcomp::ARRCOMP_ISA
