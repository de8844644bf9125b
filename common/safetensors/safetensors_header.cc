// The header of a safetensors file. Order matters: nothing is allocated, multiplied or subtracted
// on the word of the file before the numbers in it have been bounded.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/safetensors/json_check.h"
#include "common/safetensors/safetensors.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr int kMaxDepth = 4;  // header > tensor > shape, and one to spare
constexpr size_t kMaxDimensions = 16;
constexpr char kRemedy[] =
    "the file is damaged or was not written as safetensors: fetch or convert it again";

struct TypeRow {
  TensorType type;
  absl::string_view name;
  int64_t size;
};

constexpr TypeRow kTypes[] = {
    {TensorType::kBool, "BOOL", 1},      {TensorType::kU8, "U8", 1},
    {TensorType::kI8, "I8", 1},          {TensorType::kF8E4M3, "F8_E4M3", 1},
    {TensorType::kF8E5M2, "F8_E5M2", 1}, {TensorType::kF8E8M0, "F8_E8M0", 1},
    {TensorType::kU16, "U16", 2},        {TensorType::kI16, "I16", 2},
    {TensorType::kF16, "F16", 2},        {TensorType::kBF16, "BF16", 2},
    {TensorType::kU32, "U32", 4},        {TensorType::kI32, "I32", 4},
    {TensorType::kF32, "F32", 4},        {TensorType::kU64, "U64", 8},
    {TensorType::kI64, "I64", 8},        {TensorType::kF64, "F64", 8},
};

const TypeRow& RowOf(TensorType type) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes),
                       [type](const TypeRow& row) { return row.type == type; });
}

std::optional<TensorType> TypeFromName(absl::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

absl::Status Damaged(absl::string_view seen, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(seen, "; expected ", expected, "; ", kRemedy));
}

absl::StatusOr<std::string_view> HeaderText(std::string_view head, uint64_t file_size) {
  if (file_size < kLengthBytes || head.size() < kLengthBytes) {
    return Damaged(absl::StrCat("the file has ", file_size, " bytes"), "at least 8");
  }
  uint64_t length = 0;
  for (uint64_t i = 0; i < kLengthBytes; ++i) {
    length |= uint64_t{static_cast<unsigned char>(head[i])} << (8 * i);
  }
  const uint64_t room = file_size - kLengthBytes;
  if (length > room) {
    return Damaged(absl::StrCat("the header claims ", length, " bytes"),
                   absl::StrCat("at most the ", room, " that follow its length"));
  }
  if (length > kMaxHeaderBytes) {
    return Damaged(absl::StrCat("the header claims ", length, " bytes"),
                   absl::StrCat("at most ", kMaxHeaderBytes));
  }
  if (length > head.size() - kLengthBytes) {
    return Damaged(absl::StrCat("only ", head.size(), " bytes of the file were given"),
                   absl::StrCat("its whole header, ", kLengthBytes + length));
  }
  return head.substr(kLengthBytes, length);
}

absl::Status CheckMetadata(const Json& metadata) {
  if (!metadata.is_object()) return Damaged("__metadata__ is no object", "names and strings");
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string()) {
      return Damaged(absl::StrCat("__metadata__ entry ", Quoted(key), " is no string"), "a string");
    }
  }
  return absl::OkStatus();
}

// The element count of `shape` times the element size. INVALID_ARGUMENT past 2^63 - 1.
absl::StatusOr<uint64_t> ByteCount(const std::vector<int64_t>& shape, TensorType type,
                                   absl::string_view name) {
  int64_t bytes = TensorTypeSize(type);
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      return Damaged(absl::StrCat("the shape of tensor ", Quoted(name), " is too large to count"),
                     "a product below 2^63 bytes");
    }
  }
  return static_cast<uint64_t>(bytes);
}

absl::StatusOr<TensorEntry> ParseEntry(const std::string& name, const Json& json,
                                       uint64_t data_begin, uint64_t file_size) {
  const std::string subject = absl::StrCat("tensor ", Quoted(name));
  if (!json.is_object()) return Damaged(absl::StrCat(subject, " is no object"), "an object");
  for (const auto& [key, value] : json.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return Damaged(absl::StrCat(subject, " has the field ", Quoted(key)),
                     "only dtype, shape and data_offsets");
    }
  }
  TensorEntry entry;
  entry.name = name;

  const auto type = json.find("dtype");
  if (type == json.end() || !type->is_string()) {
    return Damaged(absl::StrCat(subject, " has no dtype that is a string"), "one, e.g. \"BF16\"");
  }
  const auto known = TypeFromName(type->get_ref<const std::string&>());
  if (!known.has_value()) {
    return Damaged(absl::StrCat(subject, " has the element type ",
                                Quoted(type->get_ref<const std::string&>())),
                   "one of the format's, e.g. \"BF16\"");
  }
  entry.type = *known;

  const auto shape = json.find("shape");
  if (shape == json.end() || !shape->is_array() || shape->size() > kMaxDimensions) {
    return Damaged(absl::StrCat(subject, " has no usable shape"),
                   absl::StrCat("an array of at most ", kMaxDimensions, " extents"));
  }
  for (const Json& extent : *shape) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > uint64_t{INT64_MAX}) {
      return Damaged(absl::StrCat(subject, " has an extent that is no whole number in 0..2^63-1"),
                     "one");
    }
    entry.shape.push_back(extent.get<int64_t>());
  }

  const auto range = json.find("data_offsets");
  if (range == json.end() || !range->is_array() || range->size() != 2 ||
      !(*range)[0].is_number_unsigned() || !(*range)[1].is_number_unsigned()) {
    return Damaged(absl::StrCat(subject, " has no data_offsets of two whole numbers"),
                   "[begin, end]");
  }
  const uint64_t begin = (*range)[0].get<uint64_t>();
  const uint64_t end = (*range)[1].get<uint64_t>();
  const uint64_t data_size = file_size - data_begin;
  if (begin > end || end > data_size) {
    return Damaged(absl::StrCat(subject, " lies at bytes ", begin, " to ", end),
                   absl::StrCat("an ordered range within the ", data_size, " bytes of data"));
  }
  AERIE_ASSIGN_OR_RETURN(const uint64_t needed, ByteCount(entry.shape, entry.type, name));
  if (end - begin != needed) {
    return Damaged(absl::StrCat(subject, " holds ", end - begin, " bytes"),
                   absl::StrCat(needed, " by its shape and type"));
  }
  entry.begin = data_begin + begin;
  entry.end = data_begin + end;
  return entry;
}

// The data is covered exactly once, from its first byte to its last.
absl::Status CheckCover(const std::vector<TensorEntry>& sorted, uint64_t data_begin,
                        uint64_t file_size) {
  uint64_t covered = data_begin;
  for (const TensorEntry& entry : sorted) {
    if (entry.begin != covered) {
      return Damaged(
          absl::StrCat("tensor ", Quoted(entry.name), " starts at byte ", entry.begin,
                       entry.begin < covered
                           ? std::string(", inside the tensor before it")
                           : absl::StrCat(", behind a hole of ", entry.begin - covered, " bytes")),
          absl::StrCat("byte ", covered));
    }
    covered = entry.end;
  }
  if (covered != file_size) {
    return Damaged(absl::StrCat(file_size - covered, " bytes follow the last tensor"), "none");
  }
  return absl::OkStatus();
}

}  // namespace

int64_t TensorTypeSize(TensorType type) { return RowOf(type).size; }
absl::string_view TensorTypeName(TensorType type) { return RowOf(type).name; }

absl::StatusOr<std::vector<TensorEntry>> ParseSafetensorsHeader(std::string_view head,
                                                                uint64_t file_size) {
  AERIE_ASSIGN_OR_RETURN(const std::string_view text, HeaderText(head, file_size));
  if (absl::Status json = CheckJsonObject({text.data(), text.size()}, kMaxDepth); !json.ok()) {
    return Damaged(absl::StrCat("in the header ", json.message()), "a safetensors header");
  }
  const Json header = Json::parse(text.begin(), text.end());
  const uint64_t data_begin = kLengthBytes + text.size();

  std::vector<TensorEntry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      AERIE_RETURN_IF_ERROR(CheckMetadata(value));
      continue;
    }
    AERIE_ASSIGN_OR_RETURN(TensorEntry entry, ParseEntry(name, value, data_begin, file_size));
    entries.push_back(std::move(entry));
  }
  // By range, so that empty tensors stand in front of the one that starts where they do.
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  AERIE_RETURN_IF_ERROR(CheckCover(entries, data_begin, file_size));
  return entries;
}

}  // namespace aerie
