#include "tests/fuzz/message_mutator.h"

#include <cstdint>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "tests/fuzz/message_values.h"

namespace aerie {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Mutator : private MessageValues {
 public:
  explicit Mutator(std::mt19937_64* random) : MessageValues(random) {}

  void Change(Message* message) {
    std::vector<Message*> all;
    Collect(message, &all);
    // The outermost as often as all others: the rare fields are there.
    Message* const one = Below(4) == 0 ? message : all[Below(all.size())];
    const auto* descriptor = one->GetDescriptor();
    if (descriptor->field_count() == 0) return;
    const FieldDescriptor* field =
        descriptor->field(static_cast<int>(Below(static_cast<size_t>(descriptor->field_count()))));
    if (field->is_repeated()) {
      ChangeList(one, field);
    } else if (Below(5) == 0) {
      one->GetReflection()->ClearField(one, field);
    } else {
      ChangeSingle(one, field);
    }
  }

 private:
  static void Collect(Message* message, std::vector<Message*>* out) {
    out->push_back(message);
    const Reflection* reflection = message->GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection->ListFields(*message, &fields);
    for (const FieldDescriptor* field : fields) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
      if (!field->is_repeated()) {
        Collect(reflection->MutableMessage(message, field), out);
        continue;
      }
      for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
        Collect(reflection->MutableRepeatedMessage(message, field, i), out);
      }
    }
  }

  int Number(const FieldDescriptor* field) {
    // Those that no version knows too.
    if (Below(4) == 0) return static_cast<int>(Draw());
    return field->enum_type()
        ->value(static_cast<int>(Below(static_cast<size_t>(field->enum_type()->value_count()))))
        ->number();
  }

  std::string TextOrBytes(const FieldDescriptor* field, const std::string& now) {
    return field->type() == FieldDescriptor::TYPE_BYTES ? Bytes(now) : Text(now);
  }

  void ChangeSingle(Message* message, const FieldDescriptor* field) {
    const Reflection* r = message->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return r->SetInt32(message, field, Integer(r->GetInt32(*message, field)));
      case FieldDescriptor::CPPTYPE_INT64:
        return r->SetInt64(message, field, Integer(r->GetInt64(*message, field)));
      case FieldDescriptor::CPPTYPE_UINT32:
        return r->SetUInt32(message, field, Integer(r->GetUInt32(*message, field)));
      case FieldDescriptor::CPPTYPE_UINT64:
        return r->SetUInt64(message, field, Integer(r->GetUInt64(*message, field)));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return r->SetFloat(message, field, Real(r->GetFloat(*message, field)));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return r->SetDouble(message, field,
                            double{Real(static_cast<float>(r->GetDouble(*message, field)))});
      case FieldDescriptor::CPPTYPE_BOOL:
        return r->SetBool(message, field, !r->GetBool(*message, field));
      case FieldDescriptor::CPPTYPE_ENUM:
        return r->SetEnumValue(message, field, Number(field));
      case FieldDescriptor::CPPTYPE_STRING:
        return r->SetString(message, field, TextOrBytes(field, r->GetString(*message, field)));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        r->MutableMessage(message, field);  // there now, and to be filled by later changes
        return;
    }
  }

  void ChangeElement(Message* message, const FieldDescriptor* field, int i) {
    const Reflection* r = message->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return r->SetRepeatedInt32(message, field, i,
                                   Integer(r->GetRepeatedInt32(*message, field, i)));
      case FieldDescriptor::CPPTYPE_UINT32:
        return r->SetRepeatedUInt32(message, field, i,
                                    Integer(r->GetRepeatedUInt32(*message, field, i)));
      case FieldDescriptor::CPPTYPE_UINT64:
        return r->SetRepeatedUInt64(message, field, i,
                                    Integer(r->GetRepeatedUInt64(*message, field, i)));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return r->SetRepeatedFloat(message, field, i,
                                   Real(r->GetRepeatedFloat(*message, field, i)));
      case FieldDescriptor::CPPTYPE_ENUM:
        return r->SetRepeatedEnumValue(message, field, i, Number(field));
      case FieldDescriptor::CPPTYPE_STRING:
        return r->SetRepeatedString(message, field, i,
                                    TextOrBytes(field, r->GetRepeatedString(*message, field, i)));
      default:
        return;  // messages are changed field by field; the contract has no other lists
    }
  }

  void AddElement(Message* message, const FieldDescriptor* field) {
    const Reflection* r = message->GetReflection();
    const int size = r->FieldSize(*message, field);
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return r->AddInt32(message, field, 0);
      case FieldDescriptor::CPPTYPE_UINT32:
        return r->AddUInt32(message, field, 0);
      case FieldDescriptor::CPPTYPE_UINT64:
        return r->AddUInt64(message, field, 0);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return r->AddFloat(message, field, 0.5f);
      case FieldDescriptor::CPPTYPE_ENUM:
        return r->AddEnumValue(message, field, Number(field));
      case FieldDescriptor::CPPTYPE_STRING:
        return r->AddString(message, field, "");
      case FieldDescriptor::CPPTYPE_MESSAGE: {
        // Mostly one that is there already: lists of equals are what decoders forget.
        Message* const added = r->AddMessage(message, field);
        if (size == 0) return;
        const int from = static_cast<int>(Below(static_cast<size_t>(size)));
        added->CopyFrom(r->GetRepeatedMessage(*message, field, from));
        return;
      }
      default:
        return;
    }
  }

  void ChangeList(Message* message, const FieldDescriptor* field) {
    const Reflection* r = message->GetReflection();
    const int size = r->FieldSize(*message, field);
    const auto any = [&] { return static_cast<int>(Below(static_cast<size_t>(size))); };
    switch (size == 0 ? 0 : Below(5)) {
      case 0:
        return AddElement(message, field);
      case 1:
        return r->RemoveLast(message, field);
      case 2:
        return r->SwapElements(message, field, any(), any());
      default:
        return ChangeElement(message, field, any());
    }
  }
};

}  // namespace

void MutateMessage(google::protobuf::Message* message, std::mt19937_64* random) {
  Mutator(random).Change(message);
}

}  // namespace aerie
