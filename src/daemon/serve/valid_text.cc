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

// The texts of a field; none if it holds no texts.
std::vector<std::string> texts_of(const Message& message, const FieldDescriptor* field) {
  if (field->type() != FieldDescriptor::TYPE_STRING) return {};
  const Reflection& fields = *message.GetReflection();
  if (!field->is_repeated()) return {fields.GetString(message, field)};
  std::vector<std::string> texts;
  for (int i = 0; i < fields.FieldSize(message, field); ++i) {
    texts.push_back(fields.GetRepeatedString(message, field, i));
  }
  return texts;
}

// The messages in a field; none if it holds no messages.
std::vector<const Message*> messages_in(const Message& message, const FieldDescriptor* field) {
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return {};
  const Reflection& fields = *message.GetReflection();
  if (!field->is_repeated()) return {&fields.GetMessage(message, field)};
  std::vector<const Message*> messages;
  for (int i = 0; i < fields.FieldSize(message, field); ++i) {
    messages.push_back(&fields.GetRepeatedMessage(message, field, i));
  }
  return messages;
}

}  // namespace

// NOLINTNEXTLINE(misc-no-recursion): as deep as kymo.proto
Result<void> check_texts(std::string_view verb, const Message& request) {
  std::vector<const FieldDescriptor*> present;
  request.GetReflection()->ListFields(request, &present);
  for (const FieldDescriptor* field : present) {
    for (const std::string& text : texts_of(request, field)) {
      if (text.find('\0') == std::string::npos) continue;
      return Error{Code::invalid_argument, "cannot " + std::string(verb) + ": " +
                                               std::string(field->name()) +
                                               " has a NUL byte in it; give a text without one"};
    }
    for (const Message* inner : messages_in(request, field)) {
      if (Result<void> valid = check_texts(verb, *inner); !valid) return valid;
    }
  }
  return {};
}

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
