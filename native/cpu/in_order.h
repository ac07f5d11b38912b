// Encoding by several threads to bytes that stand one after the other, whoever makes them.
#pragma once
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>

#include "cpu/threads.h"

namespace arrcomp::cpu {

// Where pieces begin whose sizes become known in any order.
class PlacesInOrder {
 public:
  explicit PlacesInOrder(uint64_t pieces) : sizes_(pieces, unknown), begins_(pieces + 1) {}

  void set_size(uint64_t piece, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    sizes_[piece] = bytes;
    for (; known_ < sizes_.size() && sizes_[known_] != unknown; ++known_)
      begins_[known_ + 1] = begins_[known_] + sizes_[known_];
    changed_.notify_all();
  }

  // Whether all pieces before it have a size.
  bool is_known(uint64_t piece) {
    const std::lock_guard lock(mutex_);
    return piece <= known_;
  }

  // Waits until they have one.
  uint64_t begin_of(uint64_t piece) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return piece <= known_; });
    return begins_[piece];
  }

 private:
  static constexpr uint64_t unknown = ~uint64_t{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<uint64_t> sizes_, begins_;
  size_t known_ = 0;  // pieces whose sizes, and those of all before, are known
};

// The pieces of one worker that are encoded and wait for their places, in memory of the worker's.
class WaitingPieces {
 public:
  WaitingPieces(PlacesInOrder& places, uint64_t piece_bytes, uint8_t* out) : places_(places), out_(out) {
    for (auto& buffer : buffers_) buffer.reset(new uint8_t[piece_bytes]);
  }

  uint8_t* free_buffer() { return buffers_[taken_ % depth].get(); }

  // What was encoded to the free buffer. placed(piece, begin) is called for each that gets its place.
  template <class Placed>
  void add(uint64_t piece, uint64_t bytes, Placed placed) {
    places_.set_size(piece, bytes);
    waiting_.push_back({piece, bytes, free_buffer()});
    ++taken_;
    while (!waiting_.empty() && (waiting_.size() == depth || places_.is_known(waiting_.front().number)))
      place_first(placed);
  }

  template <class Placed>
  void place_all(Placed placed) {
    while (!waiting_.empty()) place_first(placed);
  }

 private:
  static constexpr size_t depth = 3;  // a worker goes on while another takes longer

  struct Piece {
    uint64_t number, bytes;
    const uint8_t* from;
  };

  template <class Placed>
  void place_first(Placed placed) {
    const Piece piece = waiting_.front();
    waiting_.pop_front();
    const uint64_t begin = places_.begin_of(piece.number);
    memcpy(out_ + begin, piece.from, piece.bytes);
    placed(piece.number, begin);
  }

  PlacesInOrder& places_;
  uint8_t* out_;
  std::unique_ptr<uint8_t[]> buffers_[depth];
  std::deque<Piece> waiting_;
  size_t taken_ = 0;
};

// Encodes all items to `out`, and returns their bytes. encode(worker, begin, end, out) encodes some, of which each takes
// at most `item_bytes`; it throws nothing. placed(begin, end, bytes) then says how many bytes are before those.
template <class Encode, class Placed>
uint64_t encode_in_order(const Shares& shares, uint64_t item_bytes, uint8_t* out, Encode encode, Placed placed) {
  if (shares.workers == 1) {
    uint64_t written = 0;
    run(1, [&](int worker) { written = encode(worker, 0, shares.items, out); });
    return written;
  }
  const uint64_t size = shares.piece_size(), pieces = shares.pieces();
  PlacesInOrder places(pieces);
  std::atomic<uint64_t> next{0};
  run(shares.workers, [&](int worker) {
    WaitingPieces waiting(places, size * item_bytes, out);
    const auto end_of = [&](uint64_t piece) { return std::min((piece + 1) * size, shares.items); };
    const auto on_placed = [&](uint64_t piece, uint64_t begin) { placed(piece * size, end_of(piece), begin); };
    for (uint64_t piece = next++; piece < pieces; piece = next++)
      waiting.add(piece, encode(worker, piece * size, end_of(piece), waiting.free_buffer()), on_placed);
    waiting.place_all(on_placed);
  });
  return places.begin_of(pieces);
}

}  // namespace arrcomp::cpu
