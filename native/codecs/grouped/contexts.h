// The contexts of the entropy coder: each word has the table that the three words above it in its lane choose. A lane has
// the words of neighbours, so that where a chunk changes slowly these say much. FORMAT.md, section 4.4.
#pragma once
#include "codecs/grouped/context_memory.h"
#include "codecs/grouped/rans.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr int words_above = 3;

ARRCOMP_SHARED constexpr int context_of_sum(int sum) { return sum < 2 ? sum : sum < 4 ? 2 : 3; }
ARRCOMP_INLINE U32 context_of_sum(U32 sum) {
  return min(sum, splat<U32>(2)) + select(ge(sum, splat<U32>(4)), splat<U32>(1), splat<U32>(0));
}

// Of words: half of them, rounded up, at most 4.
template <class Word>
ARRCOMP_INLINE U32 size_of(Word words) {
  return (symbol_of(words, 7) + splat<U32>(1)) >> 1;
}

// The sizes of the three words above the next row, from the chunk's first row on.
class SizesAbove {
 public:
  ARRCOMP_METHOD SizesAbove() : sizes_{splat<U32>(0), splat<U32>(0), splat<U32>(0)} {}

  ARRCOMP_METHOD U32 sum() const { return sizes_[0] + sizes_[1] + sizes_[2]; }

  template <class Word>
  ARRCOMP_METHOD void add(Word words) {
    sizes_[2] = sizes_[1];
    sizes_[1] = sizes_[0];
    sizes_[0] = size_of(words);
  }

 private:
  U32 sizes_[words_above];
};

// Notes the tables of contexts, table_of(context) in all `tables`, by sums.
template <class Table, class TableOf>
ARRCOMP_INLINE void note_tables(TablesOfSums* of_sums, const Table* tables, TableOf table_of) {
  constexpr uint32_t size = sizeof(Table) / sizeof(uint32_t);
  sync();  // those of the chunk before have been read
  if (leader())
    for (int sum = 0; sum < TablesOfSums::count; ++sum) {
      const int table = table_of(context_of_sum(sum));
      of_sums->starts[sum] = static_cast<uint32_t>(table) * size;
      of_sums->escapes[sum] = tables[table].escape;
    }
  sync();
}

// Decodes rows, each with the table of every lane's own context.
class ContextDecoder {
 public:
  // `of_sums` is memory for what table_of(context) says.
  template <class TableOf>
  ARRCOMP_METHOD ContextDecoder(const DecodeTable* tables, TablesOfSums* of_sums, TableOf table_of)
      : slots_(tables->slot), of_sums_(of_sums) {
    note_tables(of_sums, tables, table_of);
    if constexpr (wide_permutations)
      for (int context = 0; context < context_count; ++context)
        aliases_[context] = alias_table(tables[table_of(context)].alias);
  }

  ARRCOMP_METHOD void start_row() {
    const U32 sum = above_.sum();
    escapes_ = lookup<TablesOfSums::count>(of_sums_->escapes, sum);
    if constexpr (wide_permutations) {
      contexts_ = context_of_sum(sum);
    } else {
      starts_ = lookup<TablesOfSums::count>(of_sums_->starts, sum);
    }
  }
  // What the row was.
  template <class Word>
  ARRCOMP_METHOD void end_row(Word words) {
    above_.add(words);
  }

  ARRCOMP_METHOD U32 step(U32& x) const {
    if constexpr (wide_permutations) return SymbolDecoder::take_slot(lookup_alias(aliases_, contexts_, x), x);
    return SymbolDecoder::take_slot(gather(slots_, starts_ + (x & splat<U32>(slot_count - 1))), x);
  }
  ARRCOMP_METHOD Mask is_escape(U32 symbol) const { return eq(symbol, escapes_); }

 private:
  const uint32_t* slots_;
  const TablesOfSums* of_sums_;
  SizesAbove above_;
  U32 starts_, escapes_;
  AliasTable aliases_[wide_permutations ? context_count : 1];
  U32 contexts_;
};

// Encodes rows in the same way.
class ContextEncoder {
 public:
  template <class TableOf>
  ARRCOMP_METHOD ContextEncoder(const EncodeTable* tables, TablesOfSums* of_sums, TableOf table_of)
      : first_(*tables), of_sums_(of_sums) {
    note_tables(of_sums, tables, table_of);
    if constexpr (wide_permutations)
      for (int context = 0; context < context_count; ++context) {
        const EncodeTable& own = tables[table_of(context)];
        divisions_[context] = table(own.division);
        reciprocals_[context] = table(own.reciprocal);
      }
  }

  // `sum`: of the sizes above the row.
  ARRCOMP_METHOD void start_row(U32 sum) {
    starts_ = lookup<TablesOfSums::count>(of_sums_->starts, sum);
    escapes_ = lookup<TablesOfSums::count>(of_sums_->escapes, sum);
    if constexpr (wide_permutations) contexts_ = context_of_sum(sum);
  }

  ARRCOMP_METHOD SymbolFields<false> fields_of(U32 symbol) const {
    if constexpr (!wide_permutations) {
      const U32 at = starts_ + symbol;
      return {gather(first_.division, at), gather(first_.reciprocal, at)};
    }
    U32 division = lookup(divisions_[0], symbol), reciprocal = lookup(reciprocals_[0], symbol);
    for (int context = 1; context < context_count; ++context) {
      const Mask own = eq(contexts_, splat<U32>(static_cast<uint32_t>(context)));
      division = select(own, lookup(divisions_[context], symbol), division);
      reciprocal = select(own, lookup(reciprocals_[context], symbol), reciprocal);
    }
    return {division, reciprocal};
  }
  ARRCOMP_METHOD U32 slot(U32 place) const { return gather(first_.entries.slot, (starts_ << 1) + place); }

  ARRCOMP_METHOD U32 symbol_of(U32 value) const { return min(value, escapes_); }
  ARRCOMP_METHOD Mask is_escape(U32 symbol) const { return eq(symbol, escapes_); }
  ARRCOMP_METHOD U32 rest_of(U32 value) const { return value - escapes_; }

 private:
  const EncodeTable& first_;
  const TablesOfSums* of_sums_;
  U32 starts_, escapes_, contexts_;
  Table64 divisions_[wide_permutations ? context_count : 1], reciprocals_[wide_permutations ? context_count : 1];
};

}  // namespace arrcomp::ARRCOMP_ISA
