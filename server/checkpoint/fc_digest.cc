#include "server/checkpoint/fc_digest.h"

#include <openssl/evp.h>

#include <memory>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/check.h"

namespace aerie {

std::string FcDigest(const Checkpoint& checkpoint) {
  const HeadSpec& spec = checkpoint.spec;
  if (!spec.use_aux_hidden_state.value || spec.norm_before_fc.value || spec.fc_norm.value) {
    return "";
  }
  const auto fc = checkpoint.tensors.find(HeadTensor::kFc);
  AERIE_CHECK(fc != checkpoint.tensors.end()) << "checked at load";
  const TensorSpan& matrix = fc->second;
  if (matrix.type != TensorType::kF32 && matrix.type != TensorType::kF16 &&
      matrix.type != TensorType::kBF16) {
    return "";
  }
  const std::string head = absl::StrCat(TensorTypeName(matrix.type), " ", matrix.shape.at(0), " ",
                                        matrix.shape.at(1), "\n");
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const bool done =
      context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1 &&
      EVP_DigestUpdate(context.get(), head.data(), head.size()) == 1 &&
      EVP_DigestUpdate(context.get(), matrix.bytes.data(), matrix.bytes.size()) == 1 &&
      EVP_DigestFinal_ex(context.get(), digest, &size) == 1;
  AERIE_CHECK(done) << "SHA-256 is always there";
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace aerie
