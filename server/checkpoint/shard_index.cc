#include "server/checkpoint/shard_index.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/safetensors/json_check.h"

namespace aerie {
namespace {

using Json = nlohmann::json;

}  // namespace

absl::Status BadIndex(const std::string& path, absl::string_view seen, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", seen, "; expected ", expected, "; fetch the model's files again"));
}

absl::StatusOr<std::map<std::string, std::string>> ParseShardIndex(absl::string_view text,
                                                                   const std::string& path) {
  if (absl::Status json = CheckJsonObject(text, 8); !json.ok()) {
    return BadIndex(path, json.message(), "an index of shards");
  }
  const Json index = Json::parse(text.begin(), text.end());
  const auto weight_map = index.find("weight_map");
  if (weight_map == index.end() || !weight_map->is_object() || weight_map->empty()) {
    return BadIndex(path, "there is no weight_map with an entry",
                    "one that names a shard for every tensor");
  }
  std::map<std::string, std::string> shard_of;
  for (const auto& [tensor, shard] : weight_map->items()) {
    if (!shard.is_string()) {
      return BadIndex(path, absl::StrCat("the entry of ", Quoted(tensor), " is no string"),
                      "a file name");
    }
    const auto& name = shard.get_ref<const std::string&>();
    // A name that is a path would let an index open files elsewhere and read them as weights.
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of(std::string("/\\\0", 3)) != std::string::npos) {
      return BadIndex(path, absl::StrCat("the shard ", Quoted(name), " is a path"),
                      "a plain file name beside the index");
    }
    shard_of.emplace(tensor, name);
  }
  return shard_of;
}

}  // namespace aerie
