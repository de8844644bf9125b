// The levels of instructions that this machine runs, as parameters of a test.
#pragma once

#include <string>
#include <vector>

#include "server/kernels/attention.h"

namespace aerie {

struct NamedLevel {
  std::string name;
  CpuLevel level;
};

inline std::vector<NamedLevel> Levels() {
  std::vector<NamedLevel> levels = {{"Baseline", CpuLevel::kBaseline}};
  if (BestCpuLevel() >= CpuLevel::kAvx2) levels.push_back({"Avx2", CpuLevel::kAvx2});
  if (BestCpuLevel() >= CpuLevel::kAvx512) levels.push_back({"Avx512", CpuLevel::kAvx512});
  if (BestCpuLevel() >= CpuLevel::kAvx512Vnni)
    levels.push_back({"Avx512Vnni", CpuLevel::kAvx512Vnni});
  if (BestCpuLevel() >= CpuLevel::kAvx512Bf16)
    levels.push_back({"Avx512Bf16", CpuLevel::kAvx512Bf16});
  return levels;
}

struct LevelAndElement {
  std::string name;
  CpuLevel level;
  KvElement element;
};

// Whether attention rounds queries and weights to bfloat16.
inline bool RoundsQueries(CpuLevel level, KvElement element) {
  return level == CpuLevel::kAvx512Bf16 && element == KvElement::kBFloat16;
}

inline std::vector<LevelAndElement> LevelsAndElements() {
  std::vector<LevelAndElement> all;
  for (const NamedLevel& level : Levels()) {
    all.push_back({level.name + "Float32", level.level, KvElement::kFloat32});
    all.push_back({level.name + "BFloat16", level.level, KvElement::kBFloat16});
  }
  return all;
}

}  // namespace aerie
