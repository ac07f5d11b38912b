// Codes, or elements in another order, on their way to and from groups: made and used a few groups at a time, in memory
// that a cache holds, as an array of all of them would be as large as the elements.
#pragma once
#include <atomic>
#include <vector>

#include "cpu/driver.h"
#include "cpu/in_order.h"
#include "cpu/scratch.h"
#include "cpu/select.h"

namespace arrcomp::cpu {

// Groups that an instruction set codes side by side, at most.
constexpr uint64_t encoded_at_once = 2, decoded_at_once = 4;

// Memory for a few groups of codes, one for each thread.
class CodeBuffers {
 public:
  CodeBuffers(const Plan& plan, uint64_t groups, int threads) : buffers_(static_cast<size_t>(threads)) {
    const uint64_t most = std::min(plan.count, groups * plan.group_size());
    for (Scratch& buffer : buffers_) buffer = scratch_memory(most * (plan.element.width / 8), "codes");
  }
  uint8_t* operator[](int worker) const { return buffers_[static_cast<size_t>(worker)].get(); }

 private:
  std::vector<Scratch> buffers_;
};

// Encodes an array of codes that is made from its first one on, to `out`.
class CodeGroupsEncoder {
 public:
  // `bound`: absolute, 0 without loss. `at_once`: groups that are made at a time.
  CodeGroupsEncoder(const Plan& plan, const GroupSettings& settings, uint8_t* out, int threads, double bound = 0,
                    uint64_t at_once = encoded_at_once)
      : plan_(plan),
        settings_(settings),
        bound_(bound),
        at_once_(at_once),
        threads_(std::max(threads, 1)),
        item_(plan.element.width / 8),
        out_(out),
        sizes_(plan.groups),
        buffers_(plan, at_once, threads_),
        pending_(scratch_memory(std::min(plan.count, plan.group_size()) * item_, "codes")) {
    for (int worker = 0; worker < threads_; ++worker)
      scratch_.push_back(scratch_memory(isa().scratch_bytes(plan.element), "a group"));
  }

  // The next `count` codes: make(begin, end, to) writes some of these, counted from the first of them.
  template <class Make>
  void add(uint64_t count, Make make) {
    const uint64_t size = plan_.group_size();
    uint64_t made = 0;
    if (pending() > 0) {
      made = std::min(count, size - pending());
      add_pending(0, made, make);
    }
    const uint64_t groups = (count - made) / size, first = done_ / size;
    if (groups > 0) {
      const Shares shares = Shares::of(groups, threads_, at_once_ / encoded_at_once);
      const auto encode = [&](int worker, uint64_t begin, uint64_t end, uint8_t* to) {
        uint64_t bytes = 0;
        for (uint64_t g = begin; g < end && !is_interrupted(); g += at_once_) {
          const uint64_t last = std::min(g + at_once_, end);
          make(made + g * size, made + last * size, buffers_[worker]);
          bytes += encode_groups(worker, buffers_[worker], first + g, first + last, to + bytes);
        }
        return bytes;
      };
      written_ +=
          encode_in_order(shares, plan_.group_capacity(), out_ + written_, encode, [](uint64_t, uint64_t, uint64_t) {});
      done_ += groups * size;
      made += groups * size;
    }
    if (made < count) add_pending(made, count, make);
  }

  // Writes what stands before the groups, once all codes have been added; returns the payload's length.
  uint64_t finish(uint8_t* payload) const { return write_payload_head(plan_, bound_, sizes_, payload); }

 private:
  uint64_t pending() const { return done_ % plan_.group_size(); }

  template <class Make>
  void add_pending(uint64_t begin, uint64_t end, Make make) {
    make(begin, end, pending_.get() + pending() * item_);
    const uint64_t group = done_ / plan_.group_size();
    done_ += end - begin;
    if (pending() != 0 && done_ != plan_.count) return;
    written_ += encode_groups(0, pending_.get(), group, group + 1, out_ + written_);
  }

  uint64_t encode_groups(int worker, uint8_t* codes, uint64_t begin, uint64_t end, uint8_t* to) {
    const void* const source = array_with(codes, begin * plan_.group_size(), item_);
    const int rounded_bits = settings_.rounded_bits(plan_.element);
    const EncodeJob job{plan_, source, bound_, rounded_bits, settings_, tables(), nullptr, 0};
    return isa().encode_groups(job, begin, end, to, sizes_.data(), scratch_[static_cast<size_t>(worker)].get());
  }

  const Plan& plan_;
  const GroupSettings settings_;
  double bound_;
  uint64_t at_once_;
  int threads_;
  uint64_t item_;
  uint8_t* out_;
  std::vector<uint32_t> sizes_;
  CodeBuffers buffers_;
  Scratch pending_;  // the codes of a group that is not whole
  std::vector<Scratch> scratch_;
  uint64_t done_ = 0, written_ = 0;  // codes, and bytes of whole groups
};

// Decodes an array of codes from its first one on.
class CodeGroupsDecoder {
 public:
  CodeGroupsDecoder(const Plan& plan, const Codec& codec, const Groups& groups, int threads,
                    uint64_t at_once = decoded_at_once)
      : plan_(plan),
        codec_(codec),
        groups_(groups),
        at_once_(at_once),
        threads_(std::max(threads, 1)),
        item_(plan.element.width / 8),
        buffers_(plan, at_once, threads_),
        pending_(scratch_memory(std::min(plan.count, plan.group_size()) * item_, "codes")) {}

  // The next `count` codes: use(begin, end, from) gets some of these, counted from the first of them. False where groups
  // are corrupt.
  template <class Use>
  bool take(uint64_t count, Use use) {
    return take_groups(count, [&](int worker, uint64_t) { return buffers_[worker]; }, use);
  }

  // The same, to `codes`.
  bool take_to(uint64_t count, uint8_t* codes) {
    const auto at = [&](uint64_t begin) { return codes + begin * item_; };
    return take_groups(
        count, [&](int, uint64_t begin) { return at(begin); },
        [&](uint64_t begin, uint64_t end, const uint8_t* from) {
          if (from != at(begin)) memcpy(at(begin), from, (end - begin) * item_);
        });
  }

 private:
  // Whole groups are decoded to place(worker, begin).
  template <class Place, class Use>
  bool take_groups(uint64_t count, Place place, Use use) {
    const uint64_t size = plan_.group_size();
    uint64_t used = 0;
    if (taken_ % size != 0) {
      used = std::min(count, size - taken_ % size);
      use(uint64_t{0}, used, pending_.get() + taken_ % size * item_);
      taken_ += used;
    }
    const uint64_t groups = (count - used) / size, first = taken_ / size;
    if (groups > 0) {
      std::atomic<bool> ok{true};
      const Shares shares = Shares::of(groups, threads_, at_once_);
      PiecesOfShares pieces(shares);
      run(shares.workers, [&](int worker) {
        pieces.each_for(worker, [&](uint64_t begin, uint64_t end) {
          for (uint64_t g = begin; g < end && !is_interrupted(); g += at_once_) {
            const uint64_t last = std::min(g + at_once_, end);
            uint8_t* const codes = place(worker, used + g * size);
            if (!decode_groups(first + g, first + last, codes)) ok = false;
            use(used + g * size, used + last * size, codes);
          }
        });
      });
      if (!ok) return false;
      taken_ += groups * size;
      used += groups * size;
    }
    if (used == count) return true;
    if (!decode_groups(taken_ / size, taken_ / size + 1, pending_.get())) return false;
    use(used, count, pending_.get());
    taken_ += count - used;
    return true;
  }

  bool decode_groups(uint64_t begin, uint64_t end, uint8_t* to) const {
    return isa().decode_groups(groups_.job(plan_, codec_, array_with(to, begin * plan_.group_size(), item_), false),
                               begin, end);
  }

  const Plan& plan_;
  const Codec& codec_;
  const Groups& groups_;
  uint64_t at_once_;
  int threads_;
  uint64_t item_;
  CodeBuffers buffers_;
  Scratch pending_;  // the codes of a group that is used in parts
  uint64_t taken_ = 0;
};

}  // namespace arrcomp::cpu
