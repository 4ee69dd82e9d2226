#include "daemon/serve/valid_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/json_text.h"

namespace kymo::daemon {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

void make_texts_valid(Message& message, const Reflection& fields, const FieldDescriptor* field) {
  if (!field->is_repeated()) {
    const std::string text = fields.GetString(message, field);
    if (!is_ascii(text)) fields.SetString(&message, field, valid_utf8(text));
    return;
  }
  for (int i = 0; i < fields.FieldSize(message, field); ++i) {
    const std::string text = fields.GetRepeatedString(message, field, i);
    if (!is_ascii(text)) fields.SetRepeatedString(&message, field, i, valid_utf8(text));
  }
}

void make_messages_valid(Message& message, const Reflection& fields, const FieldDescriptor* field) {
  if (!field->is_repeated()) return make_valid_utf8(*fields.MutableMessage(&message, field));
  for (int i = 0; i < fields.FieldSize(message, field); ++i) {
    make_valid_utf8(*fields.MutableRepeatedMessage(&message, field, i));
  }
}

}  // namespace

void make_valid_utf8(Message& message) {  // NOLINT(misc-no-recursion): as deep as kymo.proto
  const Reflection& fields = *message.GetReflection();
  std::vector<const FieldDescriptor*> present;
  fields.ListFields(message, &present);
  for (const FieldDescriptor* field : present) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      make_messages_valid(message, fields, field);
    } else if (field->type() == FieldDescriptor::TYPE_STRING) {
      make_texts_valid(message, fields, field);
    }
  }
}

}  // namespace kymo::daemon
