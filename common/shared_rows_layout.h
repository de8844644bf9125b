// How rows lie in a shared memory segment, which a worker writes and a server reads. The words are
// those of RegisterSharedMemory in proto/aerie/v1/draft.proto.
//
//   0          "AERIESHM", the key, zeroes up to 64
//   n x 64     a slot: its stamp (uint64, little-endian), zeroes up to 64, the rows
//
// What one would get wrong: a slot's rows are those of a call only while its stamp is the call's.
// Who writes a slot anew makes the stamp 0 first, and who reads one looks at the stamp last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace aerie {

inline constexpr std::string_view kSegmentMagic = "AERIESHM";
inline constexpr size_t kSegmentKeyBytes = 32;
inline constexpr int64_t kSegmentHeaderBytes = 64;
inline constexpr int64_t kSlotHeaderBytes = 64;
inline constexpr int64_t kSlotAlignment = 64;
// One that holds nothing but a byte of rows.
inline constexpr int64_t kLeastSegmentBytes = kSegmentHeaderBytes + kSlotHeaderBytes + 1;

// Of names, as shm_open takes them; 1 to kMostNameBytes letters, digits, '.', '-', '_' follow.
inline constexpr std::string_view kSegmentNamePrefix = "/aerie-";
inline constexpr size_t kMostNameBytes = 64;

}  // namespace aerie
